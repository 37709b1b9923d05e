"""Descriptive statistics of a graph."""

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from feddep.graph.graph import Graph


def statistics(graph: Graph) -> dict[str, Any]:
    """Size, degrees, classes and connected components of a graph, as JSON values.

    ``edge_homophily`` is the share of edges that join two nodes of one class, of the edges between
    labelled nodes (Zhu et al., NeurIPS 2020), null without any; ``words_per_node`` is the mean
    number of non-zero features of a node.
    """
    ends = graph.labels[graph.edges()]
    ends = ends[(ends >= 0).all(axis=1)]
    alike = ends[:, 0] == ends[:, 1]
    components, component = connected_components(graph.adjacency, directed=False)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "fingerprint": graph.fingerprint,
        "mean_degree": float(graph.degrees.mean()),
        "max_degree": int(graph.degrees.max()),
        "isolated_nodes": int(np.count_nonzero(graph.degrees == 0)),
        "components": int(components),
        "largest_component": int(np.bincount(component).max()),
        "edge_homophily": float(alike.mean()) if len(ends) else None,
        "label_counts": np.bincount(
            graph.labels[graph.labels >= 0], minlength=graph.num_classes
        ).tolist(),
        "words_per_node": graph.features.nnz / graph.num_nodes,
    }
