"""Nodes that are inserted into a graph to be found again."""

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph


def with_nodes(graph: Graph, edges: np.ndarray, features: np.ndarray, labels: np.ndarray) -> Graph:
    """A graph with further nodes, each with one feature that no node of the graph has.

    Args:
        graph: the graph.
        edges: edges beside those of the graph, shape (E, 2); the further nodes come after the
            graph's own.
        features: which of the further features each further node has, counted from 0, −1 for none;
            shape (n,).
        labels: labels of the further nodes, shape (n,).
    """
    norms = np.sqrt(np.asarray(graph.features.multiply(graph.features).sum(axis=1)).ravel())
    has = np.flatnonzero(features >= 0)
    values = np.full(len(has), np.median(norms), dtype=np.float32)
    own = sp.csr_array((values, (has, features[has])), shape=(len(features), features.max() + 1))
    all_features = sp.csr_matrix(sp.block_diag([graph.features, own]), dtype=np.float32)
    return Graph.from_edges(
        np.vstack([graph.edges(), edges]),
        all_features,
        np.concatenate([graph.labels, labels]),
        graph.num_classes,
    )
