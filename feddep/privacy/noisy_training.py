"""What DP-SGD guarantees of a training: how a client's training nodes are sampled, who reads an edge, and ε on both levels.

The mathematics is in :mod:`feddep.privacy.dpsgd_accounting`.  Here it meets a run: the sampling rate q and the number of steps T
are those of :class:`feddep.privacy.dpsgd.PrivateLearner`, the number of roots k is that of the client's own graph.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feddep.graph import Graph
from feddep.partition import Partition
from feddep.privacy.accountant import PrivacyError, require_count
from feddep.privacy.clients import divided, name_of
from feddep.privacy.dpsgd_accounting import Epsilons, edge_level, example_level, noise_for, roots_of_edges
from feddep.privacy.text import number
from feddep.splits import Split

Level = Literal["example", "edge"]
"""What is hidden: a training node with its sampled tree, or an edge."""

VACUOUS = 10.0
"""A larger ε is called vacuous: "weak to no formal privacy guarantees" (Ponomareva et al., 2023, "How to DP-fy ML")."""


@dataclass(frozen=True)
class Sampling:
    """How batches are drawn.

    Attributes:
        rate: probability q that a training node is in a batch.
        steps: number of steps T.
    """

    rate: float
    steps: int

    @classmethod
    def of_training(cls, nodes: int, batch_size: int, epochs: int) -> "Sampling":
        """As :class:`feddep.privacy.dpsgd.PrivateLearner` draws them: q = B/n, at most 1, and ⌈n/B⌉ steps an epoch.

        Args:
            nodes: number of training nodes n; without any, nothing is sampled.
            batch_size: expected number of nodes in a batch, B.
            epochs: number of epochs in all rounds together.

        Raises:
            PrivacyError: if a count is out of range.
        """
        if nodes != 0:
            require_count("number of training nodes n", nodes)
        require_count("batch size B", batch_size)
        require_count("number of epochs", epochs)
        return cls(min(batch_size, nodes) / max(nodes, 1), epochs * -(-nodes // batch_size))


@dataclass(frozen=True)
class Spending:
    """ε on one level.

    Attributes:
        level: what is hidden.
        sigma: noise multiplier σ.
        roots: number k of training nodes that may read the edge; none on the example level.
        step: ε of a single step, as FedDEP quotes the ε of a single sampling of neighbours.
        training: ε of all T steps.
    """

    level: Level
    sigma: float
    roots: int | None
    step: Epsilons
    training: Epsilons

    @property
    def hidden(self) -> str:
        """What is hidden, in words."""
        if self.level == "example":
            return "a training node with its sampled tree"
        return f"an edge in the trees of up to {self.roots} training nodes"

    def remark(self) -> str | None:
        """A plain sentence, without its full stop, if the guarantee says nothing."""
        if self.sigma == 0 and self.training.least > 0:
            return f"{self.hidden}: without noise there is no ε at all"
        if self.training.least > VACUOUS:
            epsilon = number(self.training.least)
            return f"{self.hidden}: what is sent may be e^{epsilon} times as likely with it as without: the guarantee is vacuous"
        return None

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {
            "level": self.level,
            "sigma": self.sigma,
            "roots": self.roots,
            "one_step": self.step.as_dict(),
            "all_steps": self.training.as_dict(),
            "remark": self.remark(),
        }


def spent(sigma: float, sampling: Sampling, delta: float, roots: int | None = None) -> Spending:
    """ε of a training with given noise.

    Args:
        sigma: noise multiplier σ.
        sampling: how batches are drawn.
        delta: δ of one step, and of all steps together.
        roots: for the edge level, number k of training nodes that may read an edge; none for the example level.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    of_steps = [_epsilons(sigma, sampling.rate, steps, delta, roots) for steps in (min(1, sampling.steps), sampling.steps)]
    return Spending("example" if roots is None else "edge", sigma, roots, *of_steps)


def _epsilons(sigma: float, rate: float, steps: int, delta: float, roots: int | None) -> Epsilons:
    if roots is None:
        return example_level(sigma, rate, steps, delta)
    return edge_level(sigma, rate, steps, delta, roots)


def within(epsilon: float, sampling: Sampling, delta: float, roots: int | None = None) -> Spending:
    """The same with the least noise that keeps ε, see :func:`feddep.privacy.dpsgd_accounting.noise_for`.

    Raises:
        PrivacyError: if no noise does; names the least ε that can be kept.
    """
    return spent(noise_for(epsilon, delta, sampling.rate, sampling.steps, roots), sampling, delta, roots)


@dataclass(frozen=True)
class Trained:
    """What a client trains on, as far as it matters to DP-SGD.

    Attributes:
        client: number of the client; none for a graph that is not divided.
        nodes: number of its nodes.
        edges: number of edges among them.
        training: number n of its training nodes.
        roots: the most training nodes whose trees may depend on one and the same of its edges, k; 0 without edges.
    """

    client: int | None
    nodes: int
    edges: int
    training: int
    roots: int

    @property
    def name(self) -> str:
        """``client 3``, or ``the graph``."""
        return name_of(self.client)


def trained(graph: Graph, partition: Partition | None, split: Split, layers: int) -> list[Trained]:
    """What each client, or whoever holds the whole graph, trains on.

    Args:
        graph: the graph.
        partition: which client holds which node.
        split: whose training nodes count.
        layers: number of hops L of the trees.

    Raises:
        PrivacyError: if partition or split are of another graph, or there are no nodes.
    """
    size = sum(len(part) for part in (split.train, split.val, split.test))
    if max((int(part.max()) for part in (split.train, split.val, split.test) if len(part)), default=-1) >= graph.num_nodes:
        raise PrivacyError(
            f"the split has {size} nodes, some beyond the {graph.num_nodes} that the graph has; they must belong together"
        )
    return [_trained(client, part, split.restrict(nodes).train, layers) for client, nodes, part in divided(graph, partition)]


def _trained(client: int | None, graph: Graph, roots: np.ndarray, layers: int) -> Trained:
    reading = roots_of_edges(graph, roots, layers)
    return Trained(client, graph.num_nodes, len(reading), len(roots), int(reading.max(initial=0)))


def worst(spendings: Iterable[Spending]) -> Spending:
    """The one with the largest ε of the whole training."""
    return max(spendings, key=lambda spending: spending.training.least)
