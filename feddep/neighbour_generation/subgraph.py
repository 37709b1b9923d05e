"""A mended subgraph: the client's nodes 0 … n − 1, then the generated ones, each a neighbour of the node it was made for."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.appended import append_nodes
from feddep.graph import Graph
from feddep.nn.sparse import SparseMatrix

_ROWS = 2048
"""So many rows of generated features are multiplied at once."""


def attach(graph: Graph, owner: np.ndarray) -> Graph:
    """A graph with g more nodes, the k-th of which has one neighbour, ``owner[k]``.

    The new nodes have no stored features, since generated ones are dense and are kept elsewhere (:class:`Stacked`).

    Args:
        graph: the client's subgraph, n nodes.
        owner: node that each new one is attached to, shape (g,).
    """
    new = len(owner)
    if not new:
        return append_nodes(graph, graph.adjacency)
    links = sp.csr_matrix((np.ones(new, dtype=np.float32), (owner, np.arange(new))), shape=(graph.num_nodes, new))
    return append_nodes(graph, sp.bmat([[graph.adjacency, links], [links.T, None]], format="csr"))


class Stacked:
    """The features of a mended subgraph, sparse for the client's nodes and dense for the generated ones, as one matrix.

    ``X @ W`` is a dense tensor of shape (n + g, outputs), differentiable in W and in the generated features.
    """

    def __init__(self, real: SparseMatrix, generated: Tensor) -> None:
        """Stack features.

        Args:
            real: features of the client's nodes, shape (n, F).
            generated: features of the generated nodes, of any precision, shape (g, F).
        """
        self._real = real
        self._generated = generated

    def __matmul__(self, dense: Tensor) -> Tensor:
        """X @ dense."""
        below = [block.to(dense.dtype) @ dense for block in self._generated.split(_ROWS)]
        return torch.cat([self._real @ dense, *below])
