"""Candidate pairs for edge membership inference: a client's edges, as many matched non-edges, and
their baseline features.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.split import Split

_ATTEMPTS = 50
"""Number of times that invalid non-edges are drawn again; edges that have none then are left out.
"""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes of one client, half of them edges.

    Attributes:
        nodes: the two nodes, int64, shape (N, 2).
        is_edge: whether they are joined, shape (N,).
    """

    nodes: np.ndarray
    is_edge: np.ndarray


def matched_pairs(graph: Graph, rng: np.random.Generator) -> Pairs:
    """Each edge {u, v} and a non-edge {u, v'}, where v' is the second end of another edge and of
    the class of v.

    Both halves have the same classes and degrees, each as often, so that neither tells them apart.
    Edges without such a v' are left out.
    """
    edges = graph.edges()
    flipped = rng.random(len(edges)) < 0.5
    edges[flipped] = edges[flipped, ::-1]
    u, v = edges[:, 0], edges[:, 1].copy()
    invalid = np.ones(len(edges), dtype=bool)
    for _ in range(_ATTEMPTS):
        if not invalid.any():
            break
        # Some valid ones take part: else the last ones might only be exchangeable with each other.
        chosen = invalid | (rng.random(len(edges)) < 0.2)
        v[chosen] = _permute_within(graph.labels[v[chosen]], v[chosen], rng)
        invalid = _invalid(graph, u, v)
    kept = ~invalid
    nodes = np.concatenate([edges[kept], np.column_stack([u[kept], v[kept]])]).astype(np.int64)
    return Pairs(nodes, np.arange(len(nodes)) < kept.sum())


def _permute_within(classes: np.ndarray, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The nodes in a random order within each class."""
    by_class = np.argsort(classes, kind="stable")
    drawn = np.lexsort((rng.random(len(nodes)), classes))
    permuted = np.empty_like(nodes)
    permuted[by_class] = nodes[drawn]
    return permuted


def _invalid(graph: Graph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether u and v are joined, or the same node, or a repetition of an earlier pair."""
    joined = np.asarray(graph.adjacency[u, v]).ravel() > 0
    code = np.minimum(u, v) * graph.num_nodes + np.maximum(u, v)
    _, first = np.unique(code, return_index=True)
    repeated = np.ones(len(u), dtype=bool)
    repeated[first] = False
    return joined | (u == v) | repeated


def baseline_features(graph: Graph, split: Split, pairs: Pairs) -> np.ndarray:
    """What the adversary knows of pairs before any message; shape (N, 8).

    Cosine similarity of features, plain and weighted by rarity; features in common, as number and
    as share; whether the classes are the same; how many of the two are training nodes; and how many
    features each has.
    """
    x = graph.features
    present = sp.csr_matrix(x, copy=True)
    present.data = np.ones_like(present.data)
    rarity = np.log((1 + graph.num_nodes) / (1 + np.asarray(present.sum(axis=0)).ravel()))
    u, v = pairs.nodes.T
    sizes = np.asarray(present.sum(axis=1)).ravel()
    common = _products(present, u, v)
    train = np.isin(pairs.nodes, split.train).sum(axis=1)
    columns = [
        _cosine(x, u, v),
        _cosine(x @ sp.diags_array(rarity), u, v),
        common,
        common / np.maximum(sizes[u] + sizes[v] - common, 1),
        graph.labels[u] == graph.labels[v],
        train,
        np.minimum(sizes[u], sizes[v]),
        np.maximum(sizes[u], sizes[v]),
    ]
    return np.column_stack(columns).astype(np.float64)


def _products(x: sp.csr_matrix, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(x[u].multiply(x[v]).sum(axis=1)).ravel()


def _cosine(x: sp.spmatrix, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    x = sp.csr_matrix(x)
    lengths = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    return _products(x, u, v) / np.maximum(lengths[u] * lengths[v], 1e-12)
