"""Mini-batch training of a classifier on one graph."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from feddep import seeding
from feddep.graph import Graph
from feddep.nn.features import FeatureTable
from feddep.sampling import sample_trees
from feddep.settings import Setting

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, fused=True),
    "adam": partial(torch.optim.Adam, fused=True),  # a step in a half to a quarter of the time of the unfused one
}


def new_optimizer(model: nn.Module, setting: Setting) -> torch.optim.Optimizer:
    """The optimiser that the setting names."""
    return OPTIMIZERS[setting.optimizer](model.parameters(), lr=setting.learning_rate, weight_decay=setting.weight_decay)


class Learner:
    """Trains a GraphSAGE, or what reads sampled trees like one, on the training nodes of one graph.

    Draws come from the learner's own streams, so that what one client draws does not depend on any other.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: np.ndarray,
        setting: Setting,
        seed: int,
        name: str,
        device: str = "cpu",
        table: Any = None,
    ) -> None:
        """Prepare for training.

        Args:
            graph: the graph that neighbours are drawn from.
            nodes: training nodes.
            setting: batch size, fan-out and number of layers are used.
            seed: the run's seed.
            name: names the learner's streams, for example ``client3``.
            device: where tensors live.
            table: the inputs of nodes, as the models to come look them up; without one, the graph's features.
        """
        self._graph = graph
        self._nodes = nodes
        self._setting = setting
        self._table = FeatureTable(graph.features, setting.fanout, device) if table is None else table
        self._labels = torch.from_numpy(graph.labels).to(device)
        self._sampling = seeding.generator(seed, name, "sampling")
        self._dropout = torch.Generator(device).manual_seed(seeding.derive_seed(seed, name, "dropout"))

    @property
    def size(self) -> int:
        """Number of training nodes."""
        return len(self._nodes)

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """Visit every training node once, in random order, in mini-batches; return the mean loss a node, in nats.

        All neighbourhoods of the epoch are drawn at once: the draws do not depend on the weights, and one vectorised
        call costs a fraction of one call a batch.
        """
        size, setting = self.size, self._setting
        order = self._sampling.permutation(self._nodes)
        trees = sample_trees(self._graph, order, setting.fanout, setting.layers, self._sampling)
        labels = self._labels[torch.from_numpy(order).to(self._labels.device)]
        total = torch.zeros((), device=labels.device)
        for start in range(0, size, setting.batch_size):
            batch = slice(start, start + setting.batch_size)
            optimizer.zero_grad()
            loss = cross_entropy(model(trees[batch], self._table, self._dropout), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(trees[batch])
        return float(total) / max(size, 1)
