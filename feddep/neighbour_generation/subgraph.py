"""A mended subgraph: the client's nodes 0 … n − 1, then the generated ones, each a neighbour of the node it was made for."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph import Graph
from feddep.nn.sparse import SparseMatrix

_ROWS = 2048
"""So many rows of generated features are multiplied at once."""


def attach(graph: Graph, owner: np.ndarray) -> Graph:
    """A graph with g more nodes, the k-th of which has one neighbour, ``owner[k]``.

    The new nodes have no stored features, since generated ones are dense and are kept elsewhere (:class:`Stacked`), and the
    label 0, which means nothing: they are training, validation or test nodes to nobody.

    Args:
        graph: the client's subgraph, n nodes.
        owner: node that each new one is attached to, shape (g,).
    """
    nodes, new = graph.num_nodes, len(owner)
    ones = np.ones(new, dtype=np.float32)
    links = sp.csr_matrix((ones, (owner, np.arange(new))), shape=(nodes, new))
    adjacency = sp.bmat([[graph.adjacency, links], [links.T, None]], format="csr") if new else graph.adjacency
    adjacency.sort_indices()
    x = graph.features
    ends = np.concatenate([x.indptr, np.full(new, x.indptr[-1], dtype=x.indptr.dtype)])
    return Graph(
        adjacency.indptr.astype(np.int64),
        adjacency.indices.astype(np.int32),
        sp.csr_matrix((x.data, x.indices, ends), shape=(nodes + new, x.shape[1])),
        np.concatenate([graph.labels, np.zeros(new, dtype=np.int64)]),
        graph.num_classes,
    )


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
