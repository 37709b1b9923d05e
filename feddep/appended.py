"""Graphs with more nodes at the end, about which little is known."""

import numpy as np
import scipy.sparse as sp

from feddep.graph import Graph


def append_nodes(graph: Graph, adjacency: sp.csr_matrix) -> Graph:
    """A graph of more nodes: the old ones come first, the new ones have no features, and the label 0, which means nothing.

    Args:
        graph: n nodes.
        adjacency: who is joined to whom, old and new, float32, shape (n + g, n + g).  Need not be symmetric: where a new node
            has an empty row, it is drawn as a neighbour but has none itself.
    """
    new = adjacency.shape[0] - graph.num_nodes
    adjacency.sort_indices()
    x = graph.features
    ends = np.concatenate([x.indptr, np.full(new, x.indptr[-1], dtype=x.indptr.dtype)])
    return Graph(
        adjacency.indptr.astype(np.int64),
        adjacency.indices.astype(np.int32),
        sp.csr_matrix((x.data, x.indices, ends), shape=(adjacency.shape[0], x.shape[1])),
        np.concatenate([graph.labels, np.zeros(new, dtype=np.int64)]),
        graph.num_classes,
    )
