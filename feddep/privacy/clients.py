"""What the guarantee comes to on a real graph: least degrees, isolated nodes, and how often a list is really read."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feddep.graph import Graph
from feddep.partition import Partition
from feddep.privacy.accountant import VACUOUS, Account, Guarantee, PrivacyError, Terms, account
from feddep.privacy.profile import contradicts, exact


@dataclass(frozen=True, eq=False)
class Facts:
    """One client's graph, or the whole one, and what its neighbour lists are worth.

    Attributes:
        client: number of the client; none for a graph that is not divided.
        terms: how lists are read.
        degree_counts: how many nodes have 0, 1, 2, … neighbours in this client's graph.
        published: Theorem 3.1 at the least degree; none if there are isolated nodes, for which it has no ε.
        one: the exact guarantee of one sampling, for the node it protects least, by :func:`feddep.privacy.profile.exact`.
        all: the same after L·N samplings.
        mean_delta: the exact δ of one sampling for the loss of one neighbour, in the mean over all neighbours in all lists;
            0 where there are none.
        samplings: how often each list is read in an epoch, by :func:`expected_samplings`; shape (n,).
    """

    client: int | None
    terms: Terms
    degree_counts: np.ndarray
    published: Account | None
    one: Guarantee
    all: Guarantee
    mean_delta: float
    samplings: np.ndarray

    @property
    def name(self) -> str:
        """``client 3``, or ``the graph``."""
        return name_of(self.client)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.degree_counts.sum())

    @property
    def isolated(self) -> int:
        """Number of nodes without neighbours."""
        return int(self.degree_counts[0])

    @property
    def least_degree(self) -> int:
        """The least degree."""
        return int(np.flatnonzero(self.degree_counts)[0])

    @property
    def mean_degree(self) -> float:
        """The mean degree."""
        return float(self.degree_counts @ np.arange(len(self.degree_counts)) / self.nodes)

    def share_below(self, degree: int) -> float:
        """Share of the nodes with fewer than ``degree`` neighbours, in 0 … 1."""
        return float(self.degree_counts[:degree].sum() / self.nodes)

    def share_contradicted(self) -> float:
        """Share of the nodes for which Lemma B.1 is wrong, see :func:`feddep.privacy.profile.contradicts`; in 0 … 1."""
        wrong = [contradicts(degree, self.terms.fanout) for degree in range(len(self.degree_counts))]
        return float(self.degree_counts[wrong].sum() / self.nodes)

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {
            "client": self.client,
            "nodes": self.nodes,
            "mean_degree": self.mean_degree,
            "least_degree": self.least_degree,
            "isolated": self.isolated,
            "degree_counts": self.degree_counts.tolist(),
            "share_below": [self.share_below(degree) for degree in range(len(self.degree_counts) + 1)],
            "share_contradicted": self.share_contradicted(),
            "published": None if self.published is None else self.published.as_dict(),
            "exact_one": self.one.as_dict(),
            "exact_all": self.all.as_dict(),
            "exact_mean_delta": self.mean_delta,
            "samplings_per_epoch": {"mean": float(self.samplings.mean()), "max": float(self.samplings.max())},
            "remark": self.remark(),
        }

    def remark(self) -> str | None:
        """A plain sentence, without its full stop, if the guarantee says nothing."""
        if self.least_degree == 0:
            return (
                f"{self.name}: {self.isolated} of {self.nodes} nodes are isolated; the theorem has no ε for them, and one "
                "sampling shows with certainty whether such a node has an edge: the guarantee is vacuous"
            )
        if self.one.delta == 1:
            return (
                f"{self.name}: {self.degree_counts[1]} of {self.nodes} nodes have one neighbour, which every sampling shows: "
                "δ is 1, the guarantee is vacuous"
            )
        if self.all.delta >= VACUOUS:
            times = self.terms.samplings
            when = f"{times} samplings" if times > 1 else "one sampling"
            return f"{self.name}: after {when} an edge may be known with probability {VACUOUS} or more: the guarantee is vacuous"
        return None


def name_of(client: int | None) -> str:
    """``client 3``, or ``the graph``."""
    return "the graph" if client is None else f"client {client}"


def facts(graph: Graph, partition: Partition | None, terms: Terms) -> list[Facts]:
    """Work the guarantee out for each client's own graph, or for the whole graph if it is not divided.

    Raises:
        PrivacyError: if the partition is of another graph, or there are no nodes.
    """
    return [_facts(client, part, terms) for client, _, part in divided(graph, partition)]


def divided(graph: Graph, partition: Partition | None) -> Iterator[tuple[int | None, np.ndarray, Graph]]:
    """Each client's number, its nodes' ids in ``graph`` and its own graph; or the whole graph once, without a number.

    Raises:
        PrivacyError: if the partition is of another graph, or there are no nodes.
    """
    if partition is None:
        if graph.num_nodes == 0:
            raise PrivacyError("the graph has no nodes; there is nothing to protect")
        yield None, np.arange(graph.num_nodes), graph
        return
    if len(partition.client) != graph.num_nodes:
        raise PrivacyError(
            f"the partition divides {len(partition.client)} nodes and the graph has {graph.num_nodes}; they must belong together"
        )
    for client in range(partition.num_clients):
        nodes = partition.nodes(client)
        yield client, nodes, graph.subgraph(nodes)


def _facts(client: int | None, graph: Graph, terms: Terms) -> Facts:
    counts = np.bincount(graph.degrees)
    present: list[int] = np.flatnonzero(counts).tolist()
    shorter = {length for degree in present for length in (degree - 1, degree) if length >= 0}  # an edge less, or one more
    worst = min(shorter, key=lambda length: exact(length, terms.fanout).log_rest)
    neighbours = {degree: degree * int(counts[degree]) for degree in present if degree}
    deltas = [number * exact(degree - 1, terms.fanout).delta for degree, number in neighbours.items()]
    return Facts(
        client=client,
        terms=terms,
        degree_counts=counts,
        published=account(present[0], terms) if present[0] else None,
        one=exact(worst, terms.fanout),
        all=exact(worst, terms.fanout, terms.samplings),
        mean_delta=sum(deltas) / max(sum(neighbours.values()), 1),
        samplings=expected_samplings(graph, terms.fanout, terms.layers),
    )


def expected_samplings(graph: Graph, fanout: int, layers: int) -> np.ndarray:
    """How often each node's list is read in an epoch in which every node is trained on once.

    Lemma B.2 counts L samplings an epoch, those of a root.  But :func:`feddep.sampling.sample_trees` reads a node's list
    again at every place of every tree where the node was drawn as somebody's neighbour.  In expectation, a node stands
    m_h(v) times among the nodes that are needed h hops from the top, m_0 = 1 and m_(h+1)(v) = m_h(v) + Σ_u m_h(u) d / deg(u)
    over the neighbours u of v; its list is read Σ_(h<L) m_h(v) times.

    Args:
        graph: n nodes.
        fanout: number of neighbours d that are drawn at a time.
        layers: number of hops L.

    Returns:
        Expected number of samplings; float64, shape (n,).
    """
    adjacency = graph.adjacency.astype(np.float64)
    chance = fanout / np.maximum(graph.degrees, 1)
    places = np.ones(graph.num_nodes)
    total = np.zeros(graph.num_nodes)
    for _ in range(layers):
        total += places
        places = places + adjacency @ (places * chance)
    return total
