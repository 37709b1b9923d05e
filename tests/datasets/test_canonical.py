"""The canonical order depends on content alone, on symmetric graphs above all."""

import struct

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from feddep.datasets.canonical import canonical, canonical_order
from feddep.graph.graph import Graph


@st.composite
def small_graphs(draw: st.DrawFn) -> Graph:
    """Up to 10 nodes with so few labels and features that many nodes look alike, some of them isolated."""
    n = draw(st.integers(1, 10))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    edges = (
        [pair for pair in pairs if draw(st.booleans())]
        if draw(st.booleans())
        else draw(st.lists(st.sampled_from(pairs or [(0, 0)])))
    )
    kinds = draw(st.sampled_from([1, 2, 3]))
    labels = draw(st.lists(st.integers(0, kinds - 1), min_size=n, max_size=n))
    words = draw(st.lists(st.sampled_from([0.0, 1.0, 0.5][:kinds]), min_size=2 * n, max_size=2 * n))
    return Graph.from_edges(np.array(edges).reshape(-1, 2), np.array(words).reshape(n, 2), np.array(labels), 3)


def plain(graph: nx.Graph) -> Graph:
    """A graph of nodes that all look the same."""
    graph = nx.convert_node_labels_to_integers(graph)
    n = len(graph)
    return Graph.from_edges(np.array(graph.edges).reshape(-1, 2), sp.csr_matrix((n, 1)), np.zeros(n), 1)


def shrikhande() -> nx.Graph:
    steps = [(0, 1), (1, 0), (1, 1)]
    return nx.Graph([((a, b), ((a + c) % 4, (b + d) % 4)) for a in range(4) for b in range(4) for c, d in steps])


SYMMETRIC = {
    "no edges": nx.empty_graph(20),
    "clique": nx.complete_graph(12),
    "cycle": nx.cycle_graph(24),
    "star": nx.star_graph(30),
    "cocktail party": nx.complement(nx.from_edgelist((2 * k, 2 * k + 1) for k in range(10))),
    "hypercube": nx.hypercube_graph(4),
    "grid": nx.grid_2d_graph(6, 6),
    "one hexagon and two triangles": nx.disjoint_union_all([nx.cycle_graph(6), nx.cycle_graph(3), nx.cycle_graph(3)]),
    "equal components": nx.disjoint_union_all([nx.path_graph(4)] * 8),
    "two that refinement cannot tell apart": nx.disjoint_union(nx.line_graph(nx.complete_bipartite_graph(4, 4)), shrikhande()),
}


@given(small_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_numbering_does_not_matter(graph: Graph, random) -> None:
    permutation = list(range(graph.num_nodes))
    random.shuffle(permutation)
    assert canonical(graph.subgraph(np.array(permutation))).fingerprint == canonical(graph).fingerprint


@pytest.mark.parametrize("name", SYMMETRIC)
def test_numbering_does_not_matter_where_everything_looks_alike(name: str) -> None:
    graph = plain(SYMMETRIC[name])
    expected = canonical(graph).fingerprint
    for seed in range(3):
        shuffled = graph.subgraph(np.random.default_rng(seed).permutation(graph.num_nodes))
        assert canonical(shuffled).fingerprint == expected


@given(small_graphs())
@settings(max_examples=30)
def test_the_graph_stays_the_same_graph(graph: Graph) -> None:
    order = canonical_order(graph)
    assert sorted(order) == list(range(graph.num_nodes))
    restored = canonical(graph).subgraph(np.argsort(order))
    assert restored.fingerprint == graph.fingerprint


def mix(word: int) -> int:
    """SplitMix64's finaliser in exact integers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def test_colours_are_plain_integer_arithmetic() -> None:
    """Recomputed without NumPy: platforms and versions must agree, for fingerprints of this order are kept in the registry."""
    words = [{1: 1.0}, {0: 0.5}, {}, {1: 1.0}, {0: 2.0}, {}]
    labels = [0, 1, 0, 1, 1, 0]
    neighbours: list[list[int]] = [[1], [0, 2], [1, 3], [2, 4], [3], []]
    features = np.array([[row.get(column, 0.0) for column in range(2)] for row in words])
    edges = np.array([(node, other) for node, others in enumerate(neighbours) for other in others])

    def salt(k: int) -> int:
        return k * 0x9E3779B97F4A7C15 % 2**64

    def bits(value: float) -> int:
        return int.from_bytes(struct.pack("<f", value), "little")

    rows = [sum(mix(mix(column + salt(1)) + bits(value) & 2**64 - 1) for column, value in row.items()) for row in words]
    colours = [mix((row + mix(label + salt(2))) % 2**64) for row, label in zip(rows, labels, strict=True)]
    assert len(set(colours)) == 5  # nodes 2 and 5 look alike until their neighbours are seen
    for _ in range(2):  # one round tells them apart, another finds that nothing is left to tell
        sent = [mix((colour + salt(3)) % 2**64) for colour in colours]
        received = [sum(sent[other] for other in others) for others in neighbours]
        colours = [mix((mix(colour) + got) % 2**64) for colour, got in zip(colours, received, strict=True)]
    assert canonical_order(Graph.from_edges(edges, features, labels, 2)).tolist() == sorted(range(6), key=colours.__getitem__)
