"""Statistics of graphs small enough to count by hand."""

import json

import numpy as np

from feddep.datasets.graph_statistics import statistics
from feddep.graph.graph import Graph


def test_a_graph_counted_by_hand() -> None:
    features = np.array([[1, 0, 2], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
    graph = Graph.from_edges(
        np.array([(0, 1), (1, 2), (0, 2)]), features, np.array([0, 0, 1, 1, 3]), 4
    )
    assert statistics(graph) == {
        "nodes": 5,
        "edges": 3,
        "features": 3,
        "classes": 4,
        "fingerprint": graph.fingerprint,
        "mean_degree": 1.2,
        "max_degree": 2,
        "isolated_nodes": 2,
        "components": 3,
        "largest_component": 3,
        "edge_homophily": 1 / 3,
        "label_counts": [2, 2, 0, 1],
        "words_per_node": 0.8,
    }
    without = statistics(Graph.from_edges(np.empty((0, 2)), np.ones((2, 1)), np.array([0, 0]), 1))
    assert without["edge_homophily"] is None
    json.dumps(without, allow_nan=False)
