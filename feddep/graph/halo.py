"""Parts of the graph that a partition cuts off: a subgraph's halo, and each node's missing
neighbours.

This is the experimenter's knowledge.  It takes the global graph, which no client has.
"""

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition


def within(graph: Graph, nodes: np.ndarray, hops: int) -> np.ndarray:
    """The nodes that are at most ``hops`` edges away from one of ``nodes``, these included, in
    ascending order; int64.
    """
    reached = np.zeros(graph.num_nodes, dtype=bool)
    reached[nodes] = True
    for _ in range(hops):
        reached |= graph.adjacency @ reached.astype(np.float32) > 0
    return np.flatnonzero(reached)


def halo(graph: Graph, nodes: np.ndarray, hops: int) -> np.ndarray:
    """The other nodes that are at most ``hops`` edges away from one of ``nodes``, in ascending
    order; int64.
    """
    return np.setdiff1d(within(graph, nodes, hops), nodes)


def with_halo(graph: Graph, nodes: np.ndarray, hops: int) -> Graph:
    """The subgraph that ``nodes`` and their halo induce.

    Node k of the result is ``nodes[k]``, as in ``graph.subgraph(nodes)``; the halo follows behind.
    A node's ego-graph of ``hops`` hops is complete in it: whoever is less than ``hops`` edges away
    from one of ``nodes`` has all its neighbours.
    """
    return graph.subgraph(np.concatenate([nodes, halo(graph, nodes, hops)]))


def missing_neighbours(graph: Graph, partition: Partition) -> sp.csr_matrix:
    """Row v averages over the neighbours of v that another client owns; empty where there are none;
    float32, shape (n, n).
    """
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    missing = partition.client[rows] != partition.client[graph.indices]
    counts = np.bincount(rows[missing], minlength=graph.num_nodes)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    return sp.csr_matrix(
        (shares, graph.indices[missing], indptr), shape=(graph.num_nodes, graph.num_nodes)
    )
