"""What DP-SGD guarantees of a training: how each client's training nodes are sampled, and ε on the example and edge level.

The accounting is in :mod:`feddep.privacy.dpsgd_accounting`.  The sampling rate q and the number of steps T are those of
:class:`feddep.privacy.dpsgd.PrivateLearner`; how likely edges change trees is that of the client's own graph.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.privacy.accountant import PrivacyError, require_count
from feddep.privacy.changed_trees import most_changed, tree_changes
from feddep.privacy.dpsgd_accounting import Epsilons, binomial_changes, calibrate_noise, edge_level, example_level
from feddep.privacy.formatting import format_number
from feddep.privacy.sampling_guarantees import client_graphs, client_name

VACUOUS_EPSILON = 10.0
"""A larger ε is called vacuous: "weak to no formal privacy guarantees" (Ponomareva et al., 2023, "How to DP-fy ML")."""


@dataclass(frozen=True)
class PoissonSampling:
    """How batches are drawn.

    Attributes:
        rate: probability q that a training node is in a batch.
        steps: number of steps T.
    """

    rate: float
    steps: int

    @classmethod
    def of_training(cls, nodes: int, batch_size: int, epochs: int) -> "PoissonSampling":
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
class EdgeChanges:
    """How many trees of a batch an edge changes, or the worst one of many.

    Attributes:
        bound: ``trees``, by how likely the edge changes each tree, or ``simple``, by how many trees it may change.
        law: probability that it changes j = 0 … k trees of a batch, or a stochastically larger law; shape (k + 1,).
    """

    bound: Literal["trees", "simple"]
    law: np.ndarray = field(repr=False)

    @classmethod
    def simple(cls, roots: int, rate: float) -> "EdgeChanges":
        """The simple bound, see :func:`feddep.privacy.dpsgd_accounting.binomial_changes`."""
        return cls("simple", binomial_changes(roots, rate))

    @property
    def roots(self) -> int:
        """Number k of training nodes whose trees may depend on the edge."""
        return len(self.law) - 1


@dataclass(frozen=True)
class DpsgdGuarantee:
    """ε on one level.

    Attributes:
        level: what is protected: an ``example``, that is a training node with its sampled tree, or an ``edge``.
        bound: of an edge, by which bound, see :class:`EdgeChanges`.
        sigma: noise multiplier σ.
        roots: of an edge, the number k of training nodes whose trees may depend on it.
        one_step: ε of a single step, as FedDEP quotes the ε of a single sampling of neighbours.
        all_steps: ε of the training.
    """

    level: Literal["example", "edge"]
    bound: str | None
    sigma: float
    roots: int | None
    one_step: Epsilons
    all_steps: Epsilons

    def remark(self) -> str | None:
        """A sentence, without its full stop, if the guarantee is vacuous."""
        least = self.all_steps.least
        if self.sigma == 0 and least > 0:
            return f"{protected(self)}: without noise there is no ε at all"
        if least > VACUOUS_EPSILON:
            likely = f"what is sent may be e^{format_number(least)} times as likely with it as without"
            return f"{protected(self)}: {likely}: the guarantee is vacuous"
        return None

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        epsilons = {"one_step": self.one_step.as_dict(), "all_steps": self.all_steps.as_dict()}
        return {**vars(self), **epsilons, "remark": self.remark()}


def protected(by: DpsgdGuarantee | EdgeChanges | None) -> str:
    """What is protected, in words, and by which bound; a training node if there is no edge."""
    if by is None or by.bound is None:
        return "a training node with its sampled tree"
    bound = {"trees": "bound by trees", "simple": "simple bound"}[by.bound]
    return f"an edge in the trees of up to {by.roots} training nodes ({bound})"


def _epsilons(sigma: float, sampling: PoissonSampling, steps: int, delta: float, edge: EdgeChanges | None) -> Epsilons:
    if edge is None:
        return example_level(sigma, sampling.rate, steps, delta)
    return edge_level(sigma, edge.law, steps, delta)


def dpsgd_guarantee(sigma: float, sampling: PoissonSampling, delta: float, edge: EdgeChanges | None = None) -> DpsgdGuarantee:
    """ε of a training with noise multiplier σ, for δ of one step and of all together; of an example without an ``edge``.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    epsilons = [_epsilons(sigma, sampling, steps, delta, edge) for steps in (min(1, sampling.steps), sampling.steps)]
    if edge is None:
        return DpsgdGuarantee("example", None, sigma, None, *epsilons)
    return DpsgdGuarantee("edge", edge.bound, sigma, edge.roots, *epsilons)


def calibrated_guarantee(
    epsilon: float, sampling: PoissonSampling, delta: float, edge: EdgeChanges | None = None
) -> DpsgdGuarantee:
    """The same with the least noise that keeps ε, see :func:`feddep.privacy.dpsgd_accounting.calibrate_noise`.

    Raises:
        PrivacyError: if no noise does; names the least ε that can be kept.
    """
    purpose = f"with δ = {delta:g} for {sampling.steps} steps at the sampling rate {sampling.rate:g} to hide {protected(edge)}"
    sigma = calibrate_noise(epsilon, lambda sigma: _epsilons(sigma, sampling, sampling.steps, delta, edge), purpose)
    return dpsgd_guarantee(sigma, sampling, delta, edge)


@dataclass(frozen=True, eq=False)
class ClientTrees:
    """A client's training nodes, and how likely its edges change their trees.

    Attributes:
        client: number of the client; none for a graph that is not divided.
        nodes: number of its nodes.
        edges: number of edges among them.
        changes: bound on the probability that an edge changes a training node's tree, shape (edges, n), see
            :func:`feddep.privacy.changed_trees.tree_changes`.  Below, each edge once more for lists with stand-ins for neighbours
            at other clients, which FedGNN's clients draw from.
    """

    client: int | None
    nodes: int
    edges: int
    changes: sp.csr_array = field(repr=False)

    @property
    def name(self) -> str:
        """``client 3``, or ``the graph``."""
        return client_name(self.client)

    @property
    def training(self) -> int:
        """Number n of training nodes."""
        return int(self.changes.shape[1])

    @property
    def roots(self) -> int:
        """The most training nodes whose trees may depend on one and the same edge, k; 0 without edges."""
        return int(np.diff(self.changes.indptr).max(initial=0))

    @property
    def changed(self) -> float:
        """How many of all training nodes' trees one edge changes on average, at most."""
        return float(self.changes.sum(axis=1).max(initial=0))

    def worst_edge(self, rate: float) -> EdgeChanges:
        """The worst edge, or a worse one, for batches of that sampling rate, see :func:`most_changed`."""
        return EdgeChanges("trees", most_changed(self.changes, rate))

    def as_dict(self) -> dict[str, int | float | None]:
        """Ready for JSON."""
        return {name: getattr(self, name) for name in ("client", "nodes", "edges", "training", "roots", "changed")}


def client_trees(graph: Graph, partition: Partition | None, split: Split, layers: int, fanout: int) -> list[ClientTrees]:
    """The trees of each client, or of whoever holds the whole graph.

    Args:
        graph: the graph.
        partition: which client holds which node.
        split: whose training nodes count.
        layers: number of hops L of the trees.
        fanout: number of neighbours d that are drawn from a list.

    Raises:
        PrivacyError: if partition or split are of another graph, there are no nodes, or a count is out of range.
    """
    nodes = np.concatenate([split.train, split.val, split.test])
    if nodes.max(initial=-1) >= graph.num_nodes:
        raise PrivacyError(
            f"the split has {len(nodes)} nodes, some beyond the {graph.num_nodes} that the graph has; they must belong together"
        )
    found = []
    for client, nodes, part in client_graphs(graph, partition):
        roots, elsewhere = split.restrict(nodes).train, graph.degrees[nodes] - part.degrees
        lists = [None, elsewhere] if elsewhere.any() else [None]
        changes = [tree_changes(part, roots, layers, fanout, stand_ins) for stand_ins in lists]
        found.append(ClientTrees(client, part.num_nodes, part.num_edges, sp.csr_array(sp.vstack(changes, format="csr"))))
    return found
