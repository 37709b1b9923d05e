"""DP-SGD (Abadi et al., 2016, Algorithm 1) for the classifiers of this benchmark, and noise on a
whole update.

A step samples every training node with probability q (Poisson sampling, which the accounting
assumes), clips the gradient g_e of each example e, a node with its sampled tree, to norm C
(:mod:`feddep.privacy.ghost_clipping`), and gives the optimiser

    (Σ_e g_e · min(1, C / ‖g_e‖) + N(0, σ²C² I)) / (q n).

Noise comes from the run's seed, by a generator that is not cryptographic, in single precision:
results can be reproduced, and for the same reason this implementation must not be used to protect
real data.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.graph.sampling import SampledTrees, sample_trees
from feddep.nn.feature_table import FeatureTable
from feddep.privacy.ghost_clipping import add_clipped, recorded
from feddep.training.config import TrainingConfig
from feddep.training.learner import Learner
from feddep.utils import seeding


@dataclass(frozen=True)
class Privacy:
    """Clipping norm and noise.

    Attributes:
        sigma: noise multiplier σ: the noise's standard deviation as a multiple of ``clip``; 0 only
            clips.
        clip: clipping norm C.
    """

    sigma: float = 2.0
    clip: float = 1.0


class PrivateLearner(Learner):
    """Trains a classifier on the training nodes of one graph by DP-SGD.

    The classifier is a :class:`~feddep.nn.sage.GraphSAGE`, or an embedding-fused one where there
    are mended embeddings.  The guarantee covers its weights, but not the loss that :meth:`epoch`
    returns, which is exact.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: np.ndarray,
        setting: TrainingConfig,
        seed: int,
        name: str,
        device: str = "cpu",
        table: FeatureTable | None = None,
        *,
        privacy: Privacy,
    ) -> None:
        """Prepare for training.

        Arguments are as of :class:`feddep.training.learner.Learner`, whose batch size is here the
        expected one, and clipping norm and noise.
        """
        super().__init__(graph, nodes, setting, seed, name, device, table)
        self._num_nodes = graph.num_nodes
        self._privacy = privacy
        self._noise = seeding.torch_generator(seed, name, "noise", device=device)
        self.steps = 0
        """Steps taken so far, those on an empty batch included: the T of the accounting."""

    @property
    def rate(self) -> float:
        """Probability q that a training node is in a batch: the batch size as a share of n, at most
        1; 0 without nodes.
        """
        return self._expected / max(self.size, 1)

    @property
    def _expected(self) -> int:
        """Expected number of examples in a batch, q n."""
        return min(self._setting.batch_size, self.size)

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """Take the steps of one epoch; return the mean loss of the examples that were sampled, in
        nats; 0 if none was.
        """
        batches = [self._draw_batch() for _ in range(self.steps_per_epoch)]
        roots = np.concatenate([self._nodes[:0], *batches])
        trees = sample_trees(self._graph, roots, self.fanouts, self._sampling)
        labels = self._labels[torch.from_numpy(roots).to(self._labels.device)]
        total, start = torch.zeros((), device=labels.device), 0
        for batch in batches:
            members = slice(start, start + len(batch))
            total += self._step(model, trees[members], labels[members])
            optimizer.step()
            self.steps += 1
            start += len(batch)
        return self.finish(total, model.parameters(), len(roots))

    def _draw_batch(self) -> np.ndarray:
        """The training nodes of one batch, each of which is in it with probability exactly q."""
        return self._nodes[self._sampling.integers(self.size, size=self.size) < self._expected]

    def _step(self, model: nn.Module, trees: SampledTrees, labels: Tensor) -> Tensor:
        """Set the gradients of the parameters for one batch; returns the sum of its losses."""
        privacy, scale = self._privacy, 1 / self._expected
        start_gradients(model, privacy.sigma * privacy.clip * scale, self._noise)
        if not len(trees):
            return labels.new_zeros((), dtype=torch.float32)
        logits, outputs = recorded(model, trees, self._table, self._num_nodes, self._dropout)
        losses = cross_entropy(logits, labels, reduction="none")
        add_clipped(model, outputs, losses, privacy.clip, scale)
        return losses.detach().sum()


def start_gradients(model: nn.Module, deviation: float, generator: torch.Generator) -> None:
    """Set the gradient of every parameter to noise N(0, ``deviation``²), or to zero for a deviation
    of 0.
    """
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter)
        if deviation > 0:
            parameter.grad.normal_(0, deviation, generator=generator)
        else:
            parameter.grad.zero_()
