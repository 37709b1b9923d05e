"""Every way to partition a graph among M clients: along communities, at random, with skewed labels,
with few classes, or by a balanced cut; or into clients that overlap.
"""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, along_communities, louvain
from feddep.utils.errors import Notice, PartitionError
from feddep.utils.seeding import derive_seed, generator

REVISION = 1
"""Raised when the same options give another partition, by other means than python-louvain
(:mod:`feddep.graph.partition`).
"""
METHODS = ("louvain", "random", "dirichlet", "shards", "metis", "overlap", "given")
"""The built-in methods."""
ADDED: dict[str, Callable[[Graph, int, int], np.ndarray]] = {}
"""Methods of plugins: from the graph, the number of clients M and the seed of the run to the owner
of each node, int64, shape (n,).
"""
_LARGE = 20_000
"""Nodes above which python-louvain takes minutes and more."""
_TRIES = 1000
"""How often the shares of a Dirichlet partition are drawn."""
_FEW = 10
"""A client of a Dirichlet partition has at least so many nodes (Li et al. 2022, code)."""
_EACH = 5
"""Clients of a METIS part, where they overlap (FED-PUB, paper and code)."""


def partition(
    graph: Graph,
    clients: int | None,
    seed: int,
    method: str = "louvain",
    delta: int = 20,
    engine: str | None = None,
    beta: float = 1.0,
    shards: int = 2,
) -> Partition:
    """Partition a graph among ``clients`` clients.

    Args:
        graph: the graph, n nodes.
        clients: number of clients M; None for as many as a ``given`` partition has.
        seed: seed of the run; all draws come from its stream "partition".
        method: one of :func:`methods`.  ``louvain``:
            :func:`feddep.graph.partition.assign_communities`; ``random``: :func:`random_partition`;
            ``dirichlet``: :func:`dirichlet_partition`; ``shards``: :func:`shard_partition`;
            ``metis``: :func:`metis_partition`; ``overlap``: :func:`overlapping_partition`;
            ``given``: :func:`given_partition`.
        delta: of ``louvain``, see :func:`feddep.graph.partition.louvain`.
        engine: of ``louvain``: ``python-louvain``, or ``igraph`` (:func:`igraph_communities`),
            which is for large graphs; by default :func:`engine_for` the graph, with a notice where
            it is large.
        beta: of ``dirichlet``, see :func:`dirichlet_partition`.
        shards: of ``shards``, see :func:`shard_partition`.

    Raises:
        PartitionError: if the graph has too few nodes for so many clients and these options, or is
            given to others.
    """
    if method == "given":
        return given_partition(graph, clients)
    if clients is None:
        raise PartitionError(f"clients is missing; a partition by {method} needs their number")
    n = graph.num_nodes
    if not 1 <= clients <= n:
        raise PartitionError(
            f"clients is {clients}; a graph of {n} nodes can be partitioned among 1 to {n} clients"
        )
    if method == "louvain" and engine is None and n > _LARGE:
        warnings.warn(
            f"igraph finds the communities of {n} nodes; partition.engine: python-louvain finds "
            "those of the papers' code, in some twenty times the time",
            Notice,
            stacklevel=2,
        )
    engine = engine or engine_for(n)
    if method == "louvain" and engine == "python-louvain":
        return louvain(graph, clients, seed, delta)
    facts: dict[str, Any] = {"method": method, "cut_nodes": 0}
    if method == "louvain":
        found = along_communities(graph, igraph_communities(graph, seed), clients, delta)
        return Partition(found.client, clients, {**facts, "engine": engine, **found.facts})
    if method == "overlap":
        owner, copies = overlapping_partition(graph, clients, seed)
        return Partition(owner, clients, facts, copies)
    if method == "dirichlet":
        owner = dirichlet_partition(graph, clients, seed, beta)
    elif method == "shards":
        owner = shard_partition(graph, clients, seed, shards)
    else:
        divide = {"random": random_partition, "metis": metis_partition, **ADDED}[method]
        owner = np.asarray(divide(graph, clients, seed))
    return Partition(owner, clients, facts).checked(n)


def engine_for(nodes: int) -> str:
    """What finds the communities of a graph of so many nodes where nobody chooses."""
    return "igraph" if nodes > _LARGE else "python-louvain"


def methods() -> list[str]:
    """Every method by name, those of plugins among them."""
    return [*METHODS, *ADDED]


def given_partition(graph: Graph, clients: int | None = None) -> Partition:
    """Owners as the data say (:attr:`feddep.graph.graph.Graph.client`): nobody dealt them.

    Raises:
        PartitionError: if the data say none, or for another number of clients.
    """
    if graph.client is None:
        raise PartitionError(
            "partition is given, but the data of the graph do not say the client of each node"
        )
    among = int(graph.client.max()) + 1
    if clients not in (None, among):
        raise PartitionError(
            f"clients is {clients}, but the data of the graph have its nodes at {among} clients"
        )
    return Partition(graph.client, among, {"cut_nodes": 0}).checked(graph.num_nodes)


def igraph_communities(graph: Graph, seed: int) -> np.ndarray:
    """Communities of high modularity (Blondel et al. 2008, as implemented by igraph), many times
    faster than python-louvain.

    Returns:
        Community of each node, numbered by their smallest nodes; int64, shape (n,).
    """
    import igraph  # here, because only who partitions a graph needs it

    igraph.set_random_number_generator(random.Random(derive_seed(seed, "partition")))
    try:
        found = (
            igraph.Graph(graph.num_nodes, graph.edges())
            .community_multilevel(weights=None)
            .membership
        )
    finally:
        igraph.set_random_number_generator(random)  # igraph's default
    _, first, community = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[community].astype(np.int64)


def random_partition(graph: Graph, clients: int, seed: int) -> np.ndarray:
    """Owners drawn uniformly among the partitions in which the numbers of nodes differ by at most
    one; int64, shape (n,).
    """
    return generator(seed, "partition").permutation(np.arange(graph.num_nodes) % clients)


def dirichlet_partition(graph: Graph, clients: int, seed: int, beta: float) -> np.ndarray:
    """Owners by class, shares from a Dirichlet distribution: the distribution-based label skew of
    Li et al. (2022).

    For each class the shares of the M clients are drawn from Dir(β, …, β), and its nodes, in random
    order, are cut at the sums of these shares, rounded down.  Nodes without a label are a class
    here.  All shares are drawn again until every client has at least 10 nodes, or ⌊n / (2M)⌋ (at
    least 1) where that is less.  Unlike the code of Li et al., no client is passed over for having
    n / M nodes already.

    Args:
        graph: the graph, n nodes.
        clients: number of clients M, at most n.
        seed: seed of the run.
        beta: concentration β; large: every client has the classes' shares of the graph; small: few
            classes.

    Returns:
        Owner of each node; int64, shape (n,).

    Raises:
        PartitionError: if a client had too few nodes in each of 1,000 draws.
    """
    draws = generator(seed, "partition")
    by_class = [
        nodes
        for label in range(-1, graph.num_classes)
        if len(nodes := np.flatnonzero(graph.labels == label))
    ]
    sizes = np.array([[len(nodes)] for nodes in by_class])
    least = max(1, min(_FEW, graph.num_nodes // (2 * clients)))
    for _ in range(_TRIES):
        shares = draws.dirichlet(np.full(clients, beta), len(by_class))
        ends = np.minimum(np.cumsum(shares, axis=1) * sizes, sizes).astype(np.int64)
        counts = np.diff(np.hstack([0 * sizes, ends[:, :-1], sizes]))
        if counts.sum(axis=0).min() >= least:
            break
    else:
        raise PartitionError(
            f"partition.beta is {beta:g}, and in {_TRIES} draws of shares for {clients} clients "
            "there was always one with fewer "
            f"than {least} nodes; a larger beta or fewer clients (key clients) are needed"
        )
    owner = np.empty(graph.num_nodes, dtype=np.int64)
    for nodes, of_clients in zip(by_class, counts, strict=True):
        owner[draws.permutation(nodes)] = np.repeat(np.arange(clients), of_clients)
    return owner


def shard_partition(graph: Graph, clients: int, seed: int, shards: int) -> np.ndarray:
    """Owners of few classes each (McMahan et al. 2017, Section 3, "pathological" division).

    Nodes in the order of their classes, at random within one, are cut into M · k shards whose
    numbers of nodes differ by at most one, and each client is dealt k of these at random.  Nodes
    without a label are a class here.

    Args:
        graph: the graph, n nodes.
        clients: number of clients M.
        seed: seed of the run.
        shards: number of shards a client, k.

    Returns:
        Owner of each node; int64, shape (n,).

    Raises:
        PartitionError: if there are fewer nodes than shards.
    """
    number, n = clients * shards, graph.num_nodes
    if number > n:
        raise PartitionError(
            f"partition.shards is {shards}, which for {clients} clients means {number} shards of "
            f"{n} nodes; each needs one"
        )
    draws = generator(seed, "partition")
    order = np.lexsort((draws.random(n), graph.labels))
    owner = np.empty(n, dtype=np.int64)
    owner[order] = (draws.permutation(number) % clients)[np.arange(n) * number // n]
    return owner


def metis_partition(graph: Graph, clients: int, seed: int) -> np.ndarray:
    """Owners by METIS's multilevel k-way partitioning (Karypis and Kumar 1998), which seeks the
    fewest edges between clients.

    Its tolerance is METIS's own: a client has at most 1.03 n / M nodes where METIS can arrange it.

    Returns:
        Owner of each node; int64, shape (n,).

    Raises:
        PartitionError: if METIS leaves a client without nodes, as it may with few nodes a client.
    """
    import pymetis  # here, because only who partitions a graph needs it

    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices.astype(np.int64))
    options = pymetis.Options(seed=derive_seed(seed, "partition") % 2**31)
    _, parts = pymetis.part_graph(clients, adjacency, recursive=False, options=options)
    owner = np.array(parts, dtype=np.int64)
    empty = np.flatnonzero(np.bincount(owner, minlength=clients) == 0)
    if len(empty):
        raise PartitionError(
            f"METIS partitions {graph.num_nodes} nodes so that {len(empty)} of {clients} "
            "clients have none; "
            "fewer clients (key clients) or another partition.method are needed"
        )
    return owner


def overlapping_partition(graph: Graph, clients: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clients that share nodes and edges (FED-PUB, Baek et al. 2023, Section 5, "overlapping node
    scenario", and code).

    METIS cuts the graph into M / 5 parts (:func:`metis_partition`).  Clients 5p … 5p + 4 each draw
    ⌊n_p / 2⌋ of the n_p nodes of part p, uniformly without replacement and independently of each
    other.  The code does so with the largest component of the graph; here parts are of the whole
    graph.

    Returns:
        Owner of each copy, and which node it is of, ascending within each client; int64, shape
        (k,).

    Raises:
        PartitionError: if M is not divisible by 5, or a part has fewer than two nodes.
    """
    part, draws = metis_partition(graph, parts_of(clients), seed), generator(seed, "partition")
    nodes = [np.flatnonzero(part == number // _EACH) for number in range(clients)]
    if (least := min(map(len, nodes))) < 2:
        raise PartitionError(
            f"clients is {clients}, and a client has half of a METIS part of {least} node; "
            "fewer are needed"
        )
    drawn = [np.sort(draws.choice(of, len(of) // 2, replace=False)) for of in nodes]
    return np.repeat(np.arange(clients), list(map(len, drawn))), np.concatenate(drawn)


def parts_of(clients: int) -> int:
    """Number of parts that overlapping clients draw their nodes from, M / 5.

    Raises:
        PartitionError: if M is not divisible by 5.
    """
    if clients % _EACH:
        raise PartitionError(
            f"clients is {clients}; where partition is overlap, a number divisible by {_EACH} "
            "is needed"
        )
    return clients // _EACH
