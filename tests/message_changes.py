"""What one edge changes in the sums of message passing: all small graphs, and a search for the
worst rows.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from feddep.graph.degree_bounding import bounded_adjacency
from feddep.graph.graph import Graph


def small_graphs(nodes: int) -> Iterator[list[tuple[int, int]]]:
    """Every graph on so many nodes with at least one edge, as lists of edges."""
    pairs = list(itertools.combinations(range(nodes), 2))
    for chosen in range(1, 2 ** len(pairs)):
        yield [pair for place, pair in enumerate(pairs) if chosen >> place & 1]


def featureless(nodes: int, edges: list[tuple[int, int]]) -> Graph:
    """The graph with these edges."""
    return Graph.from_edges(
        np.array(edges).reshape(-1, 2), np.zeros((nodes, 1)), np.zeros(nodes), 1
    )


def adjacency(nodes: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """The 0/1 matrix; float64, shape (n, n)."""
    sums = np.zeros((nodes, nodes))
    for u, v in edges:
        sums[u, v] = sums[v, u] = 1
    return sums


def bounded_pairs(
    nodes: int, degree: int, share: float, tries: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random graphs, bounded, with and without an edge."""
    rng = np.random.default_rng(degree)
    for seed in range(tries):
        edges = [
            pair
            for pair in itertools.combinations(range(nodes), 2)
            if rng.random() < share * degree
        ] or [(0, 1)]
        one, other = (
            bounded_adjacency(featureless(nodes, each), degree, seed).toarray().astype(float)
            for each in (edges, edges[1:])
        )
        yield one, other


def gin(a: np.ndarray) -> np.ndarray:
    """GIN's weights of each neighbour and of the node itself."""
    return a + np.eye(len(a))


def gcn(a: np.ndarray) -> np.ndarray:
    """GCN's weights."""
    scale = 1 / np.sqrt(a.sum(1) + 1)
    return gin(a) * np.outer(scale, scale)


def worst_square(
    change: np.ndarray, nonnegative: bool = False, tries: int = 6, seed: int = 0
) -> float:
    """The largest ‖ΔH‖² found for rows of norm 1: every choice of signs, then ascent row by row
    from random vectors.

    ‖ΔH‖² is convex in each row, so that the best row with the others fixed lies where the gradient
    points, and no step makes it less.  With ``nonnegative``, rows have no negative entry.
    """
    nodes = change.shape[1]
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=nodes))).T
    best = float(((change @ (np.abs(signs) if nonnegative else signs)) ** 2).sum(0).max())
    gram = change.T @ change
    rng = np.random.default_rng(seed)
    for _ in range(tries):
        rows = rng.normal(size=(nodes, nodes))
        rows = np.abs(rows) if nonnegative else rows
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for _ in range(60):
            before = rows.copy()
            for u in range(nodes):
                direction = gram[u] @ rows - gram[u, u] * rows[u]
                if nonnegative:
                    direction = (
                        np.maximum(direction, 0)
                        if direction.max() > 0
                        else np.eye(nodes)[direction.argmax()]
                    )
                if (length := np.linalg.norm(direction)) > 1e-12:
                    rows[u] = direction / length
            if np.abs(rows - before).max() < 1e-12:
                break
        best = max(best, float(((change @ rows) ** 2).sum()))
    return best
