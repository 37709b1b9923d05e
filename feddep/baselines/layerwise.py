"""Training with a fan-out for each layer, and with stand-ins for other clients' nodes in some of the layers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from feddep import seeding
from feddep.baselines.expansion import ExpandedSAGE, ExpandedSubgraph
from feddep.graph import Graph
from feddep.problem import Problem
from feddep.sampling import sample_neighbours


def sample_layerwise(graphs: Sequence[Graph], roots: np.ndarray, fanouts: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """:func:`feddep.sampling.sample_trees` with a graph and a fan-out of its own for each hop, the roots' hop first.

    Returns:
        Node ids, int32, shape ``(len(roots), (1 + f_1) … (1 + f_L))``, laid out as :class:`OpenSAGE` reads them.
    """
    trees = np.asarray(roots, dtype=np.int32)[:, None]
    for graph, fanout in zip(graphs, fanouts, strict=True):
        drawn = sample_neighbours(graph, trees, fanout, rng)
        trees = np.concatenate([trees, drawn.reshape(len(trees), trees.shape[1] * fanout)], axis=1)
    return trees


class LayerwiseLearner:
    """Trains an :class:`ExpandedSAGE`, as a :class:`feddep.training.Learner` trains a GraphSAGE, draw for draw.

    Attributes:
        fanouts: neighbours to draw for a node in each hop from the roots; may change between epochs.
    """

    def __init__(self, problem: Problem, subgraph: ExpandedSubgraph, nodes: np.ndarray, levels: Sequence[int], name: str) -> None:
        """Prepare for training.

        Args:
            problem: the run; its setting, seed and device are used.
            subgraph: what to train on.
            nodes: training nodes.
            levels: the convolutions that stand-ins take part in.
            name: names the learner's streams, for example ``client3``.
        """
        setting, seed, device = problem.setting, problem.seed, problem.device
        self.fanouts = (setting.fanout,) * setting.layers
        # The roots' hop belongs to the last convolution.
        self._graphs = [subgraph.wide if k in levels else subgraph.narrow for k in reversed(range(setting.layers))]
        self._table = subgraph.table
        self._nodes = nodes
        self._batch_size = setting.batch_size
        self._labels = torch.from_numpy(subgraph.wide.labels).to(device)
        self._sampling = seeding.generator(seed, name, "sampling")
        self._dropout = torch.Generator(device).manual_seed(seeding.derive_seed(seed, name, "dropout"))

    @property
    def size(self) -> int:
        """Number of training nodes."""
        return len(self._nodes)

    def epoch(self, model: ExpandedSAGE, optimizer: torch.optim.Optimizer) -> float:
        """Visit every training node once, in random order, in mini-batches; return the mean loss a node, in nats."""
        model.fanouts = self.fanouts
        order = self._sampling.permutation(self._nodes)
        trees = sample_layerwise(self._graphs, order, self.fanouts, self._sampling)
        labels = self._labels[torch.from_numpy(order).to(self._labels.device)]
        total = torch.zeros((), device=labels.device)
        for start in range(0, self.size, self._batch_size):
            batch = slice(start, start + self._batch_size)
            optimizer.zero_grad()
            loss: Any = cross_entropy(model(trees[batch], self._table, self._dropout), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(trees[batch])
        return float(total) / max(self.size, 1)
