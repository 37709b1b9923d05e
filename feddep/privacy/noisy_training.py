"""What DP-SGD guarantees of a training: how a client's training nodes are sampled, who reads an edge, and ε on both levels.

The mathematics is in :mod:`feddep.privacy.dpsgd_accounting`.  Here it meets a run: the sampling rate q and the number of steps T
are those of :class:`feddep.privacy.dpsgd.PrivateLearner`; the number of roots k, and how likely an edge changes their trees, are
those of the client's own graph.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from feddep.graph import Graph
from feddep.partition import Partition
from feddep.privacy.accountant import PrivacyError, require_count
from feddep.privacy.changed_trees import most_changed, tree_changes
from feddep.privacy.clients import divided, name_of
from feddep.privacy.dpsgd_accounting import Epsilons, changed_level, edge_level, example_level, noise_for
from feddep.privacy.text import number
from feddep.splits import Split

Level = Literal["example", "edge"]
"""What is hidden: a training node with its sampled tree, or an edge."""

Bound = Literal["trees", "simple"]
"""How an edge is accounted for: by how likely it changes each tree, or simply by how many trees it may change."""

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


@dataclass(frozen=True, eq=False)
class Edge:
    """What the account of an edge starts from, or of the worst one of many.

    Attributes:
        roots: number k of training nodes whose trees may depend on it.
        shares: probability that it changes j = 0 … k trees of a batch, shape (k + 1,), for the bound by trees; without it, the
            simple bound is taken.
    """

    roots: int
    shares: np.ndarray | None = field(default=None, repr=False)

    @property
    def bound(self) -> Bound:
        """Which bound is taken."""
        return "simple" if self.shares is None else "trees"

    def epsilons(self, sigma: float, rate: float, steps: int, delta: float) -> Epsilons:
        """ε of T steps; ``rate`` is that of ``shares``."""
        if self.shares is None:
            return edge_level(sigma, rate, steps, delta, self.roots)
        return changed_level(sigma, self.shares, steps, delta)


def hidden(edge: Edge | None) -> str:
    """What is hidden, in words, and by which bound."""
    if edge is None:
        return "a training node with its sampled tree"
    bound = {"trees": "bound by trees", "simple": "simple bound"}[edge.bound]
    return f"an edge in the trees of up to {edge.roots} training nodes ({bound})"


@dataclass(frozen=True)
class Spending:
    """ε on one level.

    Attributes:
        edge: the edge that is hidden; none on the example level.
        sigma: noise multiplier σ.
        step: ε of a single step, as FedDEP quotes the ε of a single sampling of neighbours.
        training: ε of all T steps.
    """

    edge: Edge | None
    sigma: float
    step: Epsilons
    training: Epsilons

    @property
    def level(self) -> Level:
        """What kind of thing is hidden."""
        return "example" if self.edge is None else "edge"

    @property
    def bound(self) -> Bound | None:
        """By which bound, on the edge level."""
        return None if self.edge is None else self.edge.bound

    @property
    def roots(self) -> int | None:
        """Number k of training nodes that may read the edge; none on the example level."""
        return None if self.edge is None else self.edge.roots

    def remark(self) -> str | None:
        """A plain sentence, without its full stop, if the guarantee says nothing."""
        if self.sigma == 0 and self.training.least > 0:
            return f"{hidden(self.edge)}: without noise there is no ε at all"
        if self.training.least > VACUOUS:
            likely = f"what is sent may be e^{number(self.training.least)} times as likely with it as without"
            return f"{hidden(self.edge)}: {likely}: the guarantee is vacuous"
        return None

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {
            "level": self.level,
            "bound": self.bound,
            "sigma": self.sigma,
            "roots": self.roots,
            "one_step": self.step.as_dict(),
            "all_steps": self.training.as_dict(),
            "remark": self.remark(),
        }


def spent(sigma: float, sampling: Sampling, delta: float, edge: Edge | None = None) -> Spending:
    """ε of a training with given noise.

    Args:
        sigma: noise multiplier σ.
        sampling: how batches are drawn.
        delta: δ of one step, and of all steps together.
        edge: for the edge level, the edge to hide; none for the example level.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    epsilons = example_level if edge is None else edge.epsilons
    of_steps = [epsilons(sigma, sampling.rate, steps, delta) for steps in (min(1, sampling.steps), sampling.steps)]
    return Spending(edge, sigma, *of_steps)


def within(epsilon: float, sampling: Sampling, delta: float, edge: Edge | None = None) -> Spending:
    """The same with the least noise that keeps ε, see :func:`feddep.privacy.dpsgd_accounting.noise_for`.

    Raises:
        PrivacyError: if no noise does; names the least ε that can be kept.
    """
    epsilons = example_level if edge is None else edge.epsilons
    purpose = f"with δ = {delta:g} for {sampling.steps} steps at the sampling rate {sampling.rate:g} to hide {hidden(edge)}"
    sigma = noise_for(epsilon, lambda sigma: epsilons(sigma, sampling.rate, sampling.steps, delta), purpose)
    return spent(sigma, sampling, delta, edge)


@dataclass(frozen=True, eq=False)
class Trained:
    """What a client trains on, as far as it matters to DP-SGD.

    Attributes:
        client: number of the client; none for a graph that is not divided.
        nodes: number of its nodes.
        edges: number of edges among them.
        training: number n of its training nodes.
        roots: the most training nodes whose trees may depend on one and the same of its edges, k; 0 without edges.
        changes: bound on the probability that an edge changes a training node's tree, shape (edges, training), see
            :func:`feddep.privacy.changed_trees.tree_changes`.  Below, each edge once more for lists with stand-ins for neighbours
            at other clients, which FedGNN's clients draw from.
    """

    client: int | None
    nodes: int
    edges: int
    training: int
    roots: int
    changes: sp.csr_array = field(repr=False)

    @property
    def name(self) -> str:
        """``client 3``, or ``the graph``."""
        return name_of(self.client)

    @property
    def changed(self) -> float:
        """How many of all training nodes' trees one edge changes in the mean, at most."""
        return float(self.changes.sum(axis=1).max(initial=0))

    def edge(self, rate: float) -> Edge:
        """The worst edge, or a worse one, for batches of that sampling rate, see :func:`most_changed`."""
        return Edge(self.roots, most_changed(self.changes, rate))

    def as_dict(self) -> dict[str, int | float | None]:
        """Ready for JSON."""
        counts = {name: getattr(self, name) for name in ("client", "nodes", "edges", "training", "roots")}
        return {**counts, "changed": self.changed}


def trained(graph: Graph, partition: Partition | None, split: Split, layers: int, fanout: int) -> list[Trained]:
    """What each client, or whoever holds the whole graph, trains on.

    Args:
        graph: the graph.
        partition: which client holds which node.
        split: whose training nodes count.
        layers: number of hops L of the trees.
        fanout: number of neighbours d that are drawn from a list.

    Raises:
        PrivacyError: if partition or split are of another graph, there are no nodes, or a count is out of range.
    """
    size = sum(len(part) for part in (split.train, split.val, split.test))
    if max((int(part.max()) for part in (split.train, split.val, split.test) if len(part)), default=-1) >= graph.num_nodes:
        raise PrivacyError(
            f"the split has {size} nodes, some beyond the {graph.num_nodes} that the graph has; they must belong together"
        )
    found = []
    for client, nodes, part in divided(graph, partition):
        roots, elsewhere = split.restrict(nodes).train, graph.degrees[nodes] - part.degrees
        lists = [None, elsewhere] if elsewhere.any() else [None]
        changes = [tree_changes(part, roots, layers, fanout, stand_ins) for stand_ins in lists]
        most = int(np.diff(changes[0].indptr).max(initial=0))
        counts = (client, part.num_nodes, part.num_edges, len(roots), most)
        found.append(Trained(*counts, sp.csr_array(sp.vstack(changes, format="csr"))))
    return found


def worst(spendings: Iterable[Spending]) -> Spending:
    """The one with the largest ε of the whole training."""
    return max(spendings, key=lambda spending: spending.training.least)
