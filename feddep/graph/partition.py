"""A partition of one graph among M clients, and the papers' way to make one: communities of the
Louvain method, of similar size.

The procedure is that of the published code (FederatedScope's ``LouvainSplitter``), with one
extension where it would never end, see :func:`assign_communities`.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.utils.errors import PartitionError
from feddep.utils.files import read_arrays, write_arrays
from feddep.utils.seeding import derive_seed

REVISION = 1
"""Raised when the same options give another partition."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Which client owns each node.  Every client owns at least one.

    Where clients overlap, each owns copies of its nodes: a node has one copy, several or none, and
    ``client`` is of copies.

    Attributes:
        client: owner of each node, or of each copy, in 0 … num_clients − 1; int64, shape (n,), or
            (k,) for k copies.
        num_clients: number of clients M.
        facts: what is known only while the partition is made (communities, modularity, cut_nodes),
            for :func:`statistics`; not stored with it.
        copies: where clients overlap, which node each copy is of, ascending within a client; int64,
            shape (k,); else None.
    """

    client: np.ndarray
    num_clients: int
    facts: Mapping[str, int | float | str] = field(default_factory=dict)
    copies: np.ndarray | None = None

    @property
    def is_disjoint(self) -> bool:
        """Whether each node belongs to exactly one client."""
        return self.copies is None

    @property
    def node(self) -> np.ndarray:
        """Which node of the graph each entry of ``client`` is of; int64, of the same shape."""
        return np.arange(len(self.client)) if self.copies is None else self.copies

    def nodes(self, client: int) -> np.ndarray:
        """Ids of the nodes that ``client`` owns, in ascending order; int64."""
        return self.node[self.client == client]

    def checked(self, nodes: int) -> "Partition":
        """The partition of a graph of so many nodes, of owners that somebody wrote by hand;
        NumPy's, PyTorch's or Python's.

        Raises:
            PartitionError: if they are not one integer a node in 0 … M − 1, or a client owns no
                node; or if copies are not of nodes of the graph, or two of one node are at a
                client.
        """
        owner = np.asarray(self.client)
        last = self.num_clients - 1
        entries = f"the graph's {nodes} nodes"
        copies = None if self.copies is None else np.asarray(self.copies)
        if copies is not None:
            if copies.ndim != 1 or copies.dtype.kind not in "iu" or not copies.size:
                found = f"type {copies.dtype} and shape {copies.shape}"
                raise PartitionError(
                    f"partition.copies has {found}; a list of ids of nodes is needed"
                )
            if copies.min() < 0 or copies.max() >= nodes:
                raise PartitionError(
                    f"partition.copies is of nodes {copies.min()} to {copies.max()}; the graph "
                    f"has 0 to {nodes - 1}"
                )
            nodes, entries = len(copies), f"{len(copies)} copies of nodes"
        if owner.shape != (nodes,) or owner.dtype.kind not in "iu":
            found = f"type {owner.dtype} and shape {owner.shape}"
            raise PartitionError(
                f"partition.client has {found}; one integer for each of {entries} is needed"
            )
        if owner.min() < 0 or owner.max() > last:
            raise PartitionError(
                f"partition.client has owners {owner.min()} to {owner.max()}; with {last + 1} "
                f"clients 0 to {last} are allowed"
            )
        owned = np.bincount(owner.astype(np.int64), minlength=last + 1)
        if not owned.all():
            raise PartitionError(
                f"client {owned.argmin()} of the partition owns no node; each of {last + 1} "
                "clients needs one"
            )
        if copies is not None:
            ordered = np.unique(np.column_stack([owner, copies]).astype(np.int64), axis=0)
            if len(ordered) < len(owner):
                raise PartitionError(
                    "a client of the partition has two copies of one node; one is allowed"
                )
            owner, copies = ordered[:, 0].copy(), ordered[:, 1].copy()
        return Partition(owner.astype(np.int64), last + 1, self.facts, copies)

    def save(self, path: str | Path, key: str = "") -> None:
        """Write the owner of each node or copy as safetensors, with the partition's content key if
        it has one.
        """
        write_arrays(
            path,
            {"client": self.client, **({} if self.copies is None else {"copies": self.copies})},
            key,
        )

    @classmethod
    def load(cls, path: str | Path, key: str | None = None) -> "Partition":
        """Read a partition that :meth:`save` wrote.

        Raises:
            DataError: if the file is missing, damaged, or has another key than is asked for.
        """
        arrays = read_arrays(path, key)
        clients = int(arrays["client"].max()) + 1
        return cls(arrays["client"], clients, copies=arrays.get("copies"))


def louvain(graph: Graph, clients: int, seed: int, delta: int = 20) -> Partition:
    """Partition a graph among ``clients`` clients: :func:`find_communities`, then
    :func:`assign_communities`.

    Args:
        graph: the graph, n nodes.
        clients: number of clients M.
        seed: seed of the run; the Louvain method draws from its stream "partition".
        delta: a client has at most ⌊n / M⌋ + delta nodes, a piece of a community at most ⌊n / M⌋ −
            delta.

    Raises:
        PartitionError: if the graph has too few nodes for so many clients and this delta.
    """
    _check(graph.num_nodes, clients, delta)  # before the Louvain method, which takes its time
    return along_communities(graph, find_communities(graph, seed), clients, delta)


def along_communities(graph: Graph, communities: np.ndarray, clients: int, delta: int) -> Partition:
    """Partition a graph by :func:`assign_communities`; the facts have the number of communities and
    their modularity, too.
    """
    assigned = assign_communities(communities, clients, delta)
    found = {
        "communities": int(communities.max()) + 1,
        "modularity": modularity(graph, communities),
    }
    return Partition(assigned.client, clients, {**found, **assigned.facts})


def find_communities(graph: Graph, seed: int) -> np.ndarray:
    """Communities of high modularity (Blondel et al. 2008, as implemented by python-louvain).

    Returns:
        Community of each node, numbered by their smallest nodes; int64, shape (n,).
    """
    # python-louvain; here, because only who partitions a graph should wait for networkx
    import community
    import networkx as nx

    copy = nx.Graph()
    copy.add_nodes_from(range(graph.num_nodes))
    copy.add_edges_from(graph.edges().tolist())
    found = community.best_partition(copy, random_state=derive_seed(seed, "partition") % 2**32)
    numbers: dict[int, int] = {}
    communities = [numbers.setdefault(found[node], len(numbers)) for node in range(graph.num_nodes)]
    return np.array(communities, dtype=np.int64)


def modularity(graph: Graph, communities: np.ndarray) -> float:
    """Modularity Σ_c [ |E_c| / |E| − (Σ_{v in c} deg(v) / (2 |E|))² ] (Newman and Girvan 2004); 0
    for a graph without edges.
    """
    if graph.num_edges == 0:
        return 0.0
    ends = communities[graph.edges()]
    inside = np.mean(ends[:, 0] == ends[:, 1])
    degrees = np.bincount(communities, weights=graph.degrees)
    return float(inside - np.sum((degrees / (2 * graph.num_edges)) ** 2))


def assign_communities(communities: np.ndarray, clients: int, delta: int) -> Partition:
    """Assign communities to clients, so that every client has at most ⌊n / M⌋ + delta nodes and at
    least one.

    1. A community of more than ⌊n / M⌋ − delta nodes is cut, in node order, to pieces of that size
        and a smaller rest.
    2. Pieces are assigned largest first; among equals, first communities or their rests by number,
        then what was cut off them.
    3. A piece goes to the client whose turn it is if it fits; otherwise the turn passes on to the
       first client it fits. The turn then moves to the next client.
    4. Extension: where a piece fits no client, the published procedure looks for one for ever (so
       on MSAcademic with 10 clients).  Here the client with the most room, the first of them in
       turn, gets as many of its nodes as fit, in node order; the others become a piece of their
       own, which is assigned after all pieces that are no smaller.

    The first M pieces go to M different clients, so none is empty: there are at least M pieces,
    since none is larger than ⌊n / M⌋.  Step 4 ends, since the clients together have room for n
    nodes or more if delta is at least 1.

    ``communities`` holds the community of each node, 0 … C − 1, shape (n,).  The partition's facts
    have cut_nodes, the number of nodes in pieces that fitted no client.

    Raises:
        PartitionError: if there are too few nodes for so many clients and this delta.
    """
    n = len(communities)
    _check(n, clients, delta)
    room = np.full(clients, n // clients + delta)
    owner = np.full(n, -1, dtype=np.int64)
    cut = np.zeros(n, dtype=bool)
    turn = 0

    # Sorted by what makes the order: size, then age.
    pieces = [
        (-len(nodes), age, nodes)
        for age, nodes in enumerate(_pieces(communities, n // clients - delta))
    ]
    heapq.heapify(pieces)
    age = len(pieces)
    while pieces:
        _, _, nodes = heapq.heappop(pieces)
        in_turn = (turn + np.arange(clients)) % clients
        fits = in_turn[room[in_turn] >= len(nodes)]
        if len(fits):
            chosen, placed = fits[0], nodes
        else:
            chosen = in_turn[np.argmax(room[in_turn])]
            placed, rest = np.split(nodes, [room[chosen]])
            heapq.heappush(pieces, (-len(rest), age, rest))
            age += 1
            cut[nodes] = True
        owner[placed] = chosen
        room[chosen] -= len(placed)
        turn = (chosen + 1) % clients
    return Partition(owner, clients, {"cut_nodes": int(cut.sum())})


def _pieces(communities: np.ndarray, largest: int) -> list[np.ndarray]:
    """The nodes of each community, or what is left of it when pieces of size ``largest`` were cut
    off, then these pieces.
    """
    rests, cut_off = [], []
    by_community = np.argsort(communities, kind="stable")
    for nodes in np.split(by_community, np.cumsum(np.bincount(communities))[:-1]):
        *first, rest = np.split(nodes, range(largest, len(nodes), largest))
        rests.append(rest)
        cut_off += first
    return rests + cut_off


def _check(n: int, clients: int, delta: int) -> None:
    if n // clients - delta < 1:
        raise PartitionError(
            f"clients is {clients} and partition.delta is {delta}, but clients · "
            "(partition.delta + 1) must not exceed the "
            f"graph's {n} nodes: at most {n // (delta + 1)} clients with this delta, or a delta "
            f"of at most {n // clients - 1} "
            "with so many clients"
        )
    if delta == 0 and n % clients:
        raise PartitionError(
            f"partition.delta is 0, but {n} nodes cannot be partitioned evenly among {clients} "
            "clients (key clients); "
            "it must be at least 1"
        )


def statistics(graph: Graph, partition: Partition) -> dict[str, Any]:
    """How a graph was partitioned.

    Returns:
        JSON-ready: clients; per_client, a list of client, nodes, edges (between two of its nodes)
        and classes (number of nodes of each class); mean_client_nodes and mean_client_edges;
        missing_edges, the undirected edges that no client knows, as none has both ends; and the
        partition's facts: communities and their modularity, and cut_nodes, the number of nodes in
        pieces of communities that fitted no client (see :func:`assign_communities`).
    """
    entries, shape = (partition.node, partition.client), (graph.num_nodes, partition.num_clients)
    held = sp.csr_matrix((np.ones(len(partition.client), dtype=np.int64), entries), shape)
    # Which client knows which edge.
    within = held[graph.edges()[:, 0]].multiply(held[graph.edges()[:, 1]])
    nodes = np.bincount(partition.client, minlength=partition.num_clients)
    edges = np.asarray(within.sum(axis=0)).ravel()
    classes = np.zeros((partition.num_clients, graph.num_classes), dtype=np.int64)
    labels = graph.labels[partition.node]
    np.add.at(classes, (partition.client[labels >= 0], labels[labels >= 0]), 1)
    return {
        **partition.facts,
        "clients": partition.num_clients,
        "per_client": [
            {
                "client": i,
                "nodes": int(nodes[i]),
                "edges": int(edges[i]),
                "classes": classes[i].tolist(),
            }
            for i in range(partition.num_clients)
        ],
        "mean_client_nodes": float(nodes.mean()),
        "mean_client_edges": float(edges.mean()),
        "missing_edges": int((within.getnnz(axis=1) == 0).sum()),
    }
