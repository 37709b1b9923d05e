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
LABEL_NOISE = (None, "label_sparsity", "label_noise")
"""Where features and edges are as they are."""
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
    number = max(1, round(noisy_clients * partition.num_clients))
    noisy = generator(seed, "noise").permutation(partition.num_clients)[:number]
    drawing = [(partition.nodes(i), generator(seed, "noise", i)) for i in sorted(noisy.tolist())]
    of, kind = noise.split("_")
    if of == "label":
        return _labels(graph, split, kind, noise_level, drawing)
    change = _features if of == "feature" else _topology
    return replace(change(graph, kind, noise_level, drawing), tested=graph), split


def without_test_nodes(graph: Graph, split: Split) -> Graph:
    """The graph to train on where test nodes are unseen: they have no edges and no features there,
    and models are tested on the graph as it is.
    """
    seen = ~np.isin(np.arange(graph.num_nodes), split.test)
    edges = graph.edges()
    features = sp.csr_matrix(graph.features.multiply(seen[:, None]))
    features.eliminate_zeros()
    changed = _with_edges(graph, edges[seen[edges].all(axis=1)])
    return replace(changed, features=features, tested=graph.tested or graph)


def _with_edges(graph: Graph, edges: np.ndarray) -> Graph:
    """The same nodes with other edges, shape (m, 2)."""
    made = Graph.from_edges(edges, graph.features, graph.labels, graph.num_classes)
    return replace(graph, indptr=made.indptr, indices=made.indices)


def _features(graph: Graph, kind: str, level: float, drawing: Drawing) -> Graph:
    """The graph with sparser or noisy features."""
    if kind == "noise":
        dense = graph.features.toarray()
        for nodes, rng in drawing:
            dense[nodes] += level * rng.standard_normal(dense[nodes].shape, dtype=np.float32)
        return replace(graph, features=sp.csr_matrix(dense))
    features = graph.features.copy()
    for nodes, rng in drawing:
        for start, end in zip(features.indptr[nodes], features.indptr[nodes + 1], strict=True):
            entries = rng.permutation(np.arange(start, end))
            features.data[entries[: int(level * len(entries))]] = 0
    features.eliminate_zeros()
    return replace(graph, features=features)


def _topology(graph: Graph, kind: str, level: float, drawing: Drawing) -> Graph:
    """The graph with fewer or other edges within clients."""
    edges = graph.edges()
    for nodes, rng in drawing:
        inner = np.isin(edges, nodes).all(axis=1)
        own = edges[inner]
        edges = np.concatenate(
            [edges[~inner], rng.permutation(own)[: round((1 - level) * len(own))]]
        )
        if kind == "noise":
            added = _pairs(np.searchsorted(nodes, own), len(nodes), round(level * len(own)), rng)
            edges = np.concatenate([edges, nodes[added]])
    return _with_edges(graph, edges)


def _pairs(edges: np.ndarray, nodes: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """So many pairs of nodes without an edge, uniformly without replacement, or all where there are
    fewer; shape (k, 2).
    """
    number = min(number, nodes * (nodes - 1) // 2 - len(edges))
    found = np.empty(0, dtype=np.int64)
    while len(found) < number:
        pairs = np.sort(rng.integers(nodes, size=(number, 2)), axis=1)
        drawn = pairs[pairs[:, 0] < pairs[:, 1]] @ (nodes, 1)
        found = np.union1d(found, np.setdiff1d(drawn, edges @ (nodes, 1)))
    return np.column_stack(np.divmod(rng.permutation(found)[:number], nodes))


def _labels(
    graph: Graph, split: Split, kind: str, level: float, drawing: Drawing
) -> tuple[Graph, Split]:
    """The graph with wrong labels at training nodes, or the split with fewer of these.

    Raises:
        ConfigError: if none is left.
    """
    labels, train = graph.labels.copy(), split.train
    for nodes, rng in drawing:
        own = rng.permutation(np.intersect1d(split.train, nodes))
        chosen = own[: round(level * len(own))]
        if kind == "noise":
            shifts = rng.integers(1, graph.num_classes, len(chosen))
            labels[chosen] = (labels[chosen] + shifts) % graph.num_classes
        else:
            train = np.setdiff1d(train, chosen)
    if not len(train):
        raise ConfigError(
            f"noise is label_sparsity and noise_level {level:g}, which leaves no training node"
        )
    return replace(graph, labels=labels), replace(split, train=train)
