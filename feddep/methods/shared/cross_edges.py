"""The edges that lead from a client's subgraph to other clients: lost in the benchmark, known in
some published settings.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph, normalised
from feddep.graph.halo import halo
from feddep.training.task import Task


@dataclass(frozen=True, eq=False)
class CrossEdges:
    """Knowledge of one client of its edges to other clients.

    Attributes:
        nodes: global ids of the client's nodes, ascending; int64, shape (n,).
        outside: those of the nodes elsewhere that they are joined to, ascending; int64, shape (h,).
        links: which of its nodes is joined to which of those; float32 CSR of ones, shape (n, h).
    """

    nodes: np.ndarray
    outside: np.ndarray
    links: sp.csr_matrix

    @property
    def endpoints(self) -> np.ndarray:
        """The client's own nodes that are joined to others', in its own node ids, ascending; int64,
        shape (b,).
        """
        return np.flatnonzero(np.diff(self.links.indptr))


def cross_edges(task: Task) -> list[CrossEdges]:
    """The edges of every client to others, in the order of
    :meth:`feddep.training.task.Task.subgraphs`.
    """
    found = []
    for client in range(task.ownership.num_clients):
        nodes = task.ownership.nodes(client)
        outside = halo(task.graph, nodes, 1)
        found.append(CrossEdges(nodes, outside, task.graph.adjacency[nodes][:, outside]))
    return found


def normalised_rows(task: Task, own: CrossEdges, degrees: np.ndarray) -> sp.csr_matrix:
    """The rows of the global D̂^(−1/2) (A + I) D̂^(−1/2) that belong to a client's nodes.

    Args:
        task: the task; of A the rows of the client's nodes are read.
        own: the client's edges to others.
        degrees: of its nodes, then of those elsewhere, shape (n + h,).

    Returns:
        float32, shape (n, n + h): columns are its nodes, then those elsewhere.
    """
    n, known = len(own.nodes), np.concatenate([own.nodes, own.outside])
    loops = sp.csr_matrix(
        (np.ones(n, dtype=np.float32), own.nodes, np.arange(n + 1)),
        shape=(n, task.graph.num_nodes),
    )
    return normalised((task.graph.adjacency[own.nodes] + loops)[:, known], degrees)


def expand(graph: Graph, links: sp.csr_matrix) -> Graph:
    """A client's subgraph with a stand-in for each node outside, to draw neighbours from.

    Nodes 0 … n − 1 are the client's, n … n + h − 1 the stand-ins: they have no features, no label
    that means anything, and no neighbours of their own, as a client knows nothing of what lies
    behind them.  ``links`` has the shape (n, h).
    """
    none = sp.csr_matrix(links.shape[::-1], dtype=np.float32)
    return graph.extended(
        sp.bmat([[graph.adjacency, links], [none, None]], format="csr", dtype=np.float32)
    )
