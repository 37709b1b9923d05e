"""The edges that lead from a client's subgraph to other clients: lost in the benchmark, known in some published settings."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.appended import append_nodes
from feddep.graph import Graph
from feddep.halo import halo
from feddep.problem import Problem


@dataclass(frozen=True, eq=False)
class Border:
    """What one client knows of its edges to other clients.

    Attributes:
        nodes: ids of the client's nodes in the global graph, ascending; int64, shape (n,).
        outside: ids of the nodes elsewhere that they are joined to, ascending; int64, shape (h,).
        links: which of its nodes is joined to which of those; float32 CSR of ones, shape (n, h).
    """

    nodes: np.ndarray
    outside: np.ndarray
    links: sp.csr_matrix

    @property
    def boundary(self) -> np.ndarray:
        """The client's own nodes that are joined to others', in its own node ids, ascending; int64, shape (b,)."""
        return np.flatnonzero(np.diff(self.links.indptr))


def borders(problem: Problem) -> list[Border]:
    """The border of every client, in the order of :meth:`feddep.problem.Problem.subgraphs`."""
    assert problem.partition is not None, "Problem.subgraphs, which comes first, refuses a problem without a partition"
    found = []
    for client in range(problem.partition.num_clients):
        nodes = problem.partition.nodes(client)
        outside = halo(problem.graph, nodes, 1)
        found.append(Border(nodes, outside, problem.graph.adjacency[nodes][:, outside]))
    return found


def expand(graph: Graph, links: sp.csr_matrix) -> Graph:
    """A client's subgraph with a stand-in for each node outside, to draw neighbours from.

    Nodes 0 … n − 1 are the client's, n … n + h − 1 the stand-ins: they have no features, no label that means anything, and
    no neighbours of their own, as a client knows nothing of what lies behind them.

    Args:
        graph: the client's subgraph, n nodes.
        links: which node is joined to which stand-in, shape (n, h).
    """
    below = sp.csr_matrix(links.shape[::-1], dtype=np.float32)
    return append_nodes(graph, sp.bmat([[graph.adjacency, links], [below, None]], format="csr", dtype=np.float32))
