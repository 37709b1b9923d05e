"""Noise and sparsity of what clients train on: the six kinds of OpenFGL (Li et al., 2024; code,
``openfgl/data/processing.py``), with its parameter.

Models are tested on the graph as it is, as there; labels change at training nodes alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.utils.errors import ConfigError
from feddep.utils.seeding import generator

REVISION = 1
"""Raised when the same options give another graph."""

Noise = Literal[
    "feature_sparsity",
    "feature_noise",
    "topology_sparsity",
    "topology_noise",
    "label_sparsity",
    "label_noise",
]
NOISE_OPTIONS = ("noise", "noise_level", "noisy_clients")
"""The options of a dataset that :func:`with_noise` takes."""
Drawing = Sequence[tuple[np.ndarray, np.random.Generator]]
"""The nodes of each noisy client, and what its draws come from."""


def with_noise(
    graph: Graph,
    split: Split,
    partition: Partition,
    seed: int,
    noise: Noise,
    noise_level: float = 0.1,
    noisy_clients: float = 1.0,
) -> tuple[Graph, Split]:
    """What clients train on where the data of some are noisy; edges between clients stay.

    Args:
        graph: the graph, features as models read them.
        split: its split.
        partition: who owns which node; each has one owner.
        seed: seed of the run.  The noise of client i is of the stream "noise", i: the same whoever
            else is noisy.
        noise: ``feature_sparsity``: of the features of a node that are not 0, the share p is 0,
            rounded down.  ``feature_noise``: a normal number with the standard deviation p is added
            to each feature.  ``topology_sparsity``: a client lacks the share p of the edges between
            its nodes.  ``topology_noise``: it lacks them and has as many others.
            ``label_sparsity``: it lacks the share p of its training nodes.  ``label_noise``: these
            have another class, any with the same probability.
        noise_level: p.
        noisy_clients: share of the clients that are noisy, at least one.

    Returns:
        The graph and the split to train on; where features or edges differ, the graph has the given
        one as :attr:`feddep.graph.graph.Graph.tested`.

    Raises:
        ConfigError: if no training node is left.
    """
    number, level = max(1, round(noisy_clients * partition.num_clients)), noise_level
    noisy = generator(seed, "noise").permutation(partition.num_clients)[:number]
    drawing = [(partition.nodes(i), generator(seed, "noise", i)) for i in sorted(noisy.tolist())]
    if noise in ("feature_sparsity", "feature_noise"):
        features = _features(graph.features, noise == "feature_sparsity", level, drawing)
        return replace(graph, features=features, tested=graph), split
    if noise in ("topology_sparsity", "topology_noise"):
        edges = _edges(graph.edges(), noise == "topology_noise", level, drawing)
        return replace(graph.with_edges(edges), tested=graph), split
    own = [(np.intersect1d(split.train, nodes), rng) for nodes, rng in drawing]
    chosen = [rng.permutation(nodes)[: round(level * len(nodes))] for nodes, rng in own]
    if noise == "label_sparsity":
        train = np.setdiff1d(split.train, np.concatenate(chosen))
        if not len(train):
            raise ConfigError(
                f"noise is label_sparsity and noise_level {level:g}, which leaves no training node"
            )
        return graph, replace(split, train=train)
    labels, classes = graph.labels.copy(), graph.num_classes
    for nodes, (_, rng) in zip(chosen, own, strict=True):
        labels[nodes] = (labels[nodes] + rng.integers(1, classes, len(nodes))) % classes
    return replace(graph, labels=labels), split


def without_test_nodes(graph: Graph, split: Split) -> Graph:
    """The graph to train on where test nodes are unseen: they have no edges and no features there,
    and models are tested on the graph as it is.
    """
    hidden = np.isin(np.arange(graph.num_nodes), split.test)
    edges = graph.edges()
    features = sp.csr_matrix(graph.features.multiply(~hidden[:, None]))
    features.eliminate_zeros()
    seen = graph.with_edges(edges[~hidden[edges].any(axis=1)])
    return replace(seen, features=features, tested=graph.tested or graph)


def _features(
    features: sp.csr_matrix, sparse: bool, level: float, drawing: Drawing
) -> sp.csr_matrix:
    """Features of all nodes, of which those of noisy clients are drawn; shape (n, F)."""
    change = _thinned if sparse else _blurred
    changed = [change(features[nodes], level, rng) for nodes, rng in drawing]
    rows = np.concatenate([nodes for nodes, _ in drawing])
    rest = np.setdiff1d(np.arange(features.shape[0]), rows)
    stacked = sp.vstack([*changed, features[rest]], format="csr")
    return stacked[np.argsort(np.concatenate([rows, rest]))]


def _thinned(rows: sp.csr_matrix, level: float, rng: np.random.Generator) -> sp.csr_matrix:
    """The share ``level`` of each row's entries is gone, rounded down."""
    count = np.diff(rows.indptr)
    row = np.repeat(np.arange(len(count)), count)
    shuffled = np.lexsort((rng.random(rows.nnz), row))
    place = np.arange(rows.nnz) - rows.indptr[row]
    rows.data[shuffled[place < np.floor(level * count)[row]]] = 0
    rows.eliminate_zeros()
    return rows


def _blurred(rows: sp.csr_matrix, level: float, rng: np.random.Generator) -> sp.csr_matrix:
    """Normal noise of the standard deviation ``level`` is in every entry."""
    noise = level * rng.standard_normal(rows.shape, dtype=np.float32)
    return sp.csr_matrix(rows.toarray() + noise)


def _edges(edges: np.ndarray, replaced: bool, level: float, drawing: Drawing) -> np.ndarray:
    """Edges of the graph, shape (m, 2), of which those within noisy clients are drawn."""
    for nodes, rng in drawing:
        inner = np.isin(edges, nodes).all(axis=1)
        own = edges[inner]
        kept = rng.permutation(own)[: round((1 - level) * len(own))]
        edges = np.concatenate([edges[~inner], kept])
        if replaced:
            pairs = _pairs_without(np.searchsorted(nodes, own), len(nodes), level, rng)
            edges = np.concatenate([edges, nodes[pairs]])
    return edges


def _pairs_without(
    edges: np.ndarray, nodes: int, level: float, rng: np.random.Generator
) -> np.ndarray:
    """Pairs of nodes without an edge, uniformly without replacement: the share ``level`` of the
    number of edges, or all where there are fewer; shape (k, 2).
    """
    taken = edges[:, 0] * nodes + edges[:, 1]
    number = min(round(level * len(edges)), nodes * (nodes - 1) // 2 - len(edges))
    found = np.empty(0, dtype=np.int64)
    while len(found) < number:
        pairs = np.sort(rng.integers(nodes, size=(number, 2)), axis=1)
        codes = pairs[pairs[:, 0] < pairs[:, 1]] @ (nodes, 1)
        found = np.union1d(found, np.setdiff1d(codes, taken))
    return np.column_stack(np.divmod(rng.permutation(found)[:number], nodes))
