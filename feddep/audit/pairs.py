"""Pairs of nodes to tell apart: a client's edges, and as many pairs that are none but look like edges otherwise."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.graph import Graph
from feddep.splits import Split

_ATTEMPTS = 50
"""So often the second ends of what is still an edge are exchanged anew; what remains then is left out on both sides."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes of one client, half of them edges.

    Attributes:
        nodes: the two nodes, int64, shape (N, 2).
        is_edge: whether they are joined, shape (N,).
    """

    nodes: np.ndarray
    is_edge: np.ndarray


def matched(graph: Graph, rng: np.random.Generator) -> Pairs:
    """Each edge {u, v} beside a pair {u, v'} that is none, where v' is the second end of another edge and of the class of v.

    So both halves have the same pairs of classes and the same degrees, each as often: neither homophily nor popularity tells
    them apart.  Edges for which there is no such v' are left out.
    """
    edges = graph.edges()
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned, ::-1]
    u, v = edges[:, 0], edges[:, 1].copy()
    open_ = np.ones(len(edges), dtype=bool)  # still joined, or equal, or a repetition
    for _ in range(_ATTEMPTS):
        if not open_.any():
            break
        # Those that are settled take part, too: else the last ones might only be exchangeable with each other.
        chosen = open_ | (rng.random(len(edges)) < 0.2)
        v[chosen] = _exchanged(v[chosen], graph.labels[v[chosen]], rng)
        open_ = _unfit(graph, u, v)
    kept = ~open_
    others = np.column_stack([u[kept], v[kept]])
    nodes = np.concatenate([edges[kept], others]).astype(np.int64)
    return Pairs(nodes, np.arange(len(nodes)) < kept.sum())


def _exchanged(ends: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same ends in a random order within each class."""
    by_class, drawn = np.argsort(classes, kind="stable"), np.lexsort((rng.random(len(ends)), classes))
    found = np.empty_like(ends)
    found[by_class] = ends[drawn]
    return found


def _unfit(graph: Graph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    joined = np.asarray(graph.adjacency[u, v]).ravel() > 0
    code = np.minimum(u, v) * graph.num_nodes + np.maximum(u, v)
    _, first = np.unique(code, return_index=True)
    repeated = np.ones(len(u), dtype=bool)
    repeated[first] = False
    return joined | (u == v) | repeated


BASELINE = ("cosine", "weighted cosine", "common", "jaccard", "same class", "training nodes", "fewer", "more")
"""Names of the columns of :func:`known_before`."""


def known_before(graph: Graph, split: Split, pairs: Pairs) -> np.ndarray:
    """What the attacker can say of pairs before anything is sent; shape (N, len(BASELINE)).

    Similarity of features, plain and with rare ones weighing more; features in common, as number and as share; whether the
    classes are the same; how many of the two nodes are trained on; and how many features each has.
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
