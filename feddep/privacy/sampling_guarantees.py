"""What neighbour sampling guarantees on a real graph: at its least degree, for isolated nodes, and how often lists are read."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.privacy.accountant import (
    VACUOUS_DELTA,
    Guarantee,
    PrivacyError,
    PublishedGuarantee,
    SamplingParameters,
    published_guarantee,
)
from feddep.privacy.profile import at_border, exact_at_node, exact_guarantee


@dataclass(frozen=True, eq=False)
class SamplingGuarantee:
    """What neighbour sampling guarantees in one client's graph, or in the whole one.

    Attributes:
        client: number of the client; none for a graph that is not divided.
        parameters: how lists are sampled.
        degree_counts: how many nodes have 0, 1, 2, … neighbours in this client's graph.
        published: Theorem 3.1 at the least degree; none if there are isolated nodes, for which it has no ε.
        one: the exact guarantee of one sampling, for the node it protects least.
        all: the same after L·N samplings.
        mean_delta: the exact δ of one sampling for the loss of one neighbour, averaged over all neighbours in all lists; 0 where
            there are none.
        samplings: how often each list is read in an epoch, by :func:`expected_samplings`; shape (n,).
    """

    client: int | None
    parameters: SamplingParameters
    degree_counts: np.ndarray
    published: PublishedGuarantee | None
    one: Guarantee
    all: Guarantee
    mean_delta: float
    samplings: np.ndarray

    @property
    def name(self) -> str:
        """``client 3``, or ``the graph``."""
        return client_name(self.client)

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
    def median_degree(self) -> int:
        """The median degree, the lower one of two."""
        return int(np.searchsorted(np.cumsum(self.degree_counts), self.nodes / 2))

    @property
    def mean_degree(self) -> float:
        """The mean degree."""
        return float(self.degree_counts @ np.arange(len(self.degree_counts)) / self.nodes)

    def share_below(self, degree: int) -> float:
        """Share of the nodes with fewer than ``degree`` neighbours, in 0 … 1."""
        return float(self.degree_counts[:degree].sum() / self.nodes)

    def share_contradicted(self) -> float:
        """Share of the nodes for which Lemma B.1 is wrong, see :func:`feddep.privacy.profile.at_border`; in 0 … 1."""
        wrong = [at_border(degree, self.parameters.fanout) for degree in range(len(self.degree_counts))]
        return float(self.degree_counts[wrong].sum() / self.nodes)

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {
            **{name: getattr(self, name) for name in ("client", "nodes", "mean_degree", "least_degree", "isolated")},
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
        """A sentence, without its full stop, if the guarantee is vacuous."""
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
        if self.all.delta >= VACUOUS_DELTA:
            times = self.parameters.samplings
            when = f"{times} samplings" if times > 1 else "one sampling"
            likely = f"an edge may be known with probability {VACUOUS_DELTA} or more"
            return f"{self.name}: after {when} {likely}: the guarantee is vacuous"
        return None


def client_name(client: int | None) -> str:
    """``client 3``, or ``the graph``."""
    return "the graph" if client is None else f"client {client}"


def client_graphs(graph: Graph, partition: Partition | None) -> Iterator[tuple[int | None, np.ndarray, Graph]]:
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


def sampling_guarantees(graph: Graph, partition: Partition | None, parameters: SamplingParameters) -> list[SamplingGuarantee]:
    """The guarantee of neighbour sampling in each client's own graph, or in the whole graph if it is not divided.

    Raises:
        PrivacyError: if the partition is of another graph, or there are no nodes.
    """
    fanout, found = parameters.fanout, []
    for client, _, part in client_graphs(graph, partition):
        counts = np.bincount(part.degrees)
        present: list[int] = np.flatnonzero(counts).tolist()
        worst = min(present, key=lambda degree: exact_at_node(degree, fanout).log_rest)
        neighbours = {degree: degree * int(counts[degree]) for degree in present if degree}
        deltas = [number * exact_guarantee(degree - 1, fanout).delta for degree, number in neighbours.items()]
        found.append(
            SamplingGuarantee(
                client=client,
                parameters=parameters,
                degree_counts=counts,
                published=published_guarantee(present[0], parameters) if present[0] else None,
                one=exact_at_node(worst, fanout),
                all=exact_at_node(worst, fanout, parameters.samplings),
                mean_delta=sum(deltas) / max(sum(neighbours.values()), 1),
                samplings=expected_samplings(part, fanout, parameters.layers),
            )
        )
    return found


def expected_samplings(graph: Graph, fanout: int, layers: int) -> np.ndarray:
    """How often each node's list is read in an epoch in which every node is trained on once.

    Lemma B.2 counts L samplings an epoch, those of a root.  But :func:`feddep.graph.sampling.sample_trees` reads a node's list
    again at every place of every tree where the node was drawn as a neighbour.  In expectation, a node stands m_h(v) times
    among the nodes that are needed h hops from the top, m_0 = 1 and m_(h+1)(v) = m_h(v) + Σ_u m_h(u) d / deg(u) over the
    neighbours u of v, where d is ``fanout``; its list is read Σ_(h<L) m_h(v) times for L = ``layers``.

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
