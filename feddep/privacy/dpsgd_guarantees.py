"""What DP-SGD guarantees of a training: how each client's training nodes are sampled, and ε on the example, edge and node level.

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
from feddep.privacy.changed_trees import most_changed, roots_of_nodes, tree_changes
from feddep.privacy.dpsgd_accounting import NO_GUARANTEE, Epsilons, binomial_changes, calibrate_noise, edge_level, example_level
from feddep.privacy.formatting import format_number
from feddep.privacy.sampling_guarantees import client_graphs, client_name

VACUOUS_EPSILON = 10.0
"""A larger ε is called vacuous: "weak to no formal privacy guarantees" (Ponomareva et al., 2023, "How to DP-fy ML")."""


Adjacency = Literal["added or removed", "replaced", "removed"]
"""How two graphs differ in one node: it is there or not; it has other features, another label and other edges; or it is a node of
one given graph and not there in the other."""


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
class TreeChanges:
    """How many trees of a batch an edge or a node changes, or the worst one of many.

    Attributes:
        bound: ``trees``, by how likely the edge changes each tree, or ``simple``, by how many trees it may change.
        law: probability that it changes j = 0 … k trees of a batch, or a stochastically larger law; shape (k + 1,).  None where
            nothing bounds how many.
        node: how graphs differ in a node and all its edges; None where they differ in an edge.
    """

    bound: Literal["trees", "simple"]
    law: np.ndarray | None = field(repr=False)
    node: Adjacency | None = None

    @classmethod
    def simple(cls, roots: int | None, rate: float, node: Adjacency | None = None) -> "TreeChanges":
        """The simple bound, see :func:`feddep.privacy.dpsgd_accounting.binomial_changes`; without ``roots`` no bound at all."""
        return cls("simple", None if roots is None else binomial_changes(roots, rate), node)

    @property
    def roots(self) -> int | None:
        """Number k of training nodes whose trees may depend on the edge or node; None if there is no bound."""
        return None if self.law is None else len(self.law) - 1


@dataclass(frozen=True)
class DpsgdGuarantee:
    """ε on one level.

    Attributes:
        level: what is protected: an ``example``, that is a training node with its sampled tree, an ``edge`` or a ``node``.
        bound: of an edge or node, by which bound, see :class:`TreeChanges`.
        sigma: noise multiplier σ.
        roots: of an edge or node, the number k of training nodes whose trees may depend on it; None without a bound.
        one_step: ε of a single step, as FedDEP quotes the ε of a single sampling of neighbours.
        all_steps: ε of the training.
        node: of a node, how graphs differ in it.
    """

    level: Literal["example", "edge", "node"]
    bound: str | None
    sigma: float
    roots: int | None
    one_step: Epsilons
    all_steps: Epsilons
    node: Adjacency | None = None

    def remark(self) -> str | None:
        """A sentence, without its full stop, if the guarantee is vacuous."""
        least = self.all_steps.least
        if self.level == "node" and self.roots is None and least > 0:
            return f"{protected(self)}: without a bound on degrees there is no ε at all"
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


def protected(by: DpsgdGuarantee | TreeChanges | None) -> str:
    """What is protected, in words, and by which bound; a training node if there is neither an edge nor a node."""
    if by is None or by.bound is None:
        return "a training node with its sampled tree"
    if by.node is not None:
        trees = "any number of" if by.roots is None else f"up to {by.roots}"
        return f"a node that is {by.node}, in the trees of {trees} training nodes"
    bound = {"trees": "bound by trees", "simple": "simple bound"}[by.bound]
    return f"an edge in the trees of up to {by.roots} training nodes ({bound})"


def _epsilons(sigma: float, sampling: PoissonSampling, steps: int, delta: float, changes: TreeChanges | None) -> Epsilons:
    if changes is None:
        return example_level(sigma, sampling.rate, steps, delta)
    if changes.law is None:
        nothing = steps == 0 or sampling.rate == 0
        return edge_level(sigma, np.ones(1), steps, delta) if nothing else NO_GUARANTEE
    return edge_level(sigma, changes.law, steps, delta)


def dpsgd_guarantee(sigma: float, sampling: PoissonSampling, delta: float, changes: TreeChanges | None = None) -> DpsgdGuarantee:
    """ε of a training with noise multiplier σ, for δ of one step and of all together; of an example without ``changes``.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    one, every = (_epsilons(sigma, sampling, steps, delta, changes) for steps in (min(1, sampling.steps), sampling.steps))
    if changes is None:
        return DpsgdGuarantee("example", None, sigma, None, one, every)
    level: Literal["edge", "node"] = "edge" if changes.node is None else "node"
    return DpsgdGuarantee(level, changes.bound, sigma, changes.roots, one, every, changes.node)


def calibrated_guarantee(
    epsilon: float, sampling: PoissonSampling, delta: float, changes: TreeChanges | None = None
) -> DpsgdGuarantee:
    """The same with the least noise that keeps ε, see :func:`feddep.privacy.dpsgd_accounting.calibrate_noise`.

    Raises:
        PrivacyError: if no noise does; names the least ε that can be kept.
    """
    purpose = f"with δ = {delta:g} for {sampling.steps} steps at the sampling rate {sampling.rate:g} to hide {protected(changes)}"
    sigma = calibrate_noise(epsilon, lambda sigma: _epsilons(sigma, sampling, sampling.steps, delta, changes), purpose)
    return dpsgd_guarantee(sigma, sampling, delta, changes)


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
        node_roots: the most training nodes whose trees may depend on one and the same node.
    """

    client: int | None
    nodes: int
    edges: int
    changes: sp.csr_array = field(repr=False)
    node_roots: int = 0

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

    def worst_edge(self, rate: float) -> TreeChanges:
        """The worst edge, or a worse one, for batches of that sampling rate, see :func:`most_changed`."""
        return TreeChanges("trees", most_changed(self.changes, rate))

    def as_dict(self) -> dict[str, int | float | None]:
        """Ready for JSON."""
        return {name: getattr(self, name) for name in ("client", "nodes", "edges", "training", "roots", "changed", "node_roots")}


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
        of_nodes = int(roots_of_nodes(part, roots, layers).max())
        found.append(
            ClientTrees(client, part.num_nodes, part.num_edges, sp.csr_array(sp.vstack(changes, format="csr")), of_nodes)
        )
    return found
