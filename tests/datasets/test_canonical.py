"""The canonical order depends on content alone, on symmetric graphs above all."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from feddep.datasets.canonical import canonical, canonical_order
from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph


@st.composite
def small_graphs(draw: st.DrawFn) -> Graph:
    """Up to 10 nodes with so few labels and features that many nodes look alike, some of them
    isolated.
    """
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
    graph = Graph.from_edges(
        np.array(edges).reshape(-1, 2), np.array(words).reshape(n, 2), np.array(labels), 3
    )
    owners = draw(st.none() | st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return graph if owners is None else replace(graph, client=np.array(owners))


def plain(graph: nx.Graph) -> Graph:
    """A graph of nodes that all look the same."""
    graph = nx.convert_node_labels_to_integers(graph)
    n = len(graph)
    return Graph.from_edges(
        np.array(graph.edges).reshape(-1, 2), sp.csr_matrix((n, 1)), np.zeros(n), 1
    )


def shrikhande() -> nx.Graph:
    steps = [(0, 1), (1, 0), (1, 1)]
    return nx.Graph(
        [((a, b), ((a + c) % 4, (b + d) % 4)) for a in range(4) for b in range(4) for c, d in steps]
    )


SYMMETRIC = {
    "no edges": nx.empty_graph(20),
    "clique": nx.complete_graph(12),
    "cycle": nx.cycle_graph(24),
    "star": nx.star_graph(30),
    "cocktail party": nx.complement(nx.from_edgelist((2 * k, 2 * k + 1) for k in range(10))),
    "hypercube": nx.hypercube_graph(4),
    "grid": nx.grid_2d_graph(6, 6),
    "one hexagon and two triangles": nx.disjoint_union_all(
        [nx.cycle_graph(6), nx.cycle_graph(3), nx.cycle_graph(3)]
    ),
    "equal components": nx.disjoint_union_all([nx.path_graph(4)] * 8),
    "two that refinement cannot tell apart": nx.disjoint_union(
        nx.line_graph(nx.complete_bipartite_graph(4, 4)), shrikhande()
    ),
}


@given(small_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_numbering_does_not_matter(graph: Graph, random) -> None:
    permutation = list(range(graph.num_nodes))
    random.shuffle(permutation)
    assert (
        canonical(graph.subgraph(np.array(permutation))).fingerprint == canonical(graph).fingerprint
    )


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


def test_the_order_is_fixed() -> None:
    """On all platforms and by all versions: the registry knows the public graphs by fingerprints in
    this order.
    """
    graph = planted_partition(60, 3, 6, 30, 4.0, 0.5, 5, 0.6, seed=1)
    assert (
        canonical(graph).fingerprint
        == "25a23ec84a07fc454cad1ef2f0f9b71a069072e4ddcc90ac7b4dbe27ffb7b2c5"
    )
    symmetric = canonical(plain(SYMMETRIC["two that refinement cannot tell apart"]))
    assert (
        symmetric.fingerprint == "7ce590f2ed39bcb2cf35aec335c852486ab805dd11cc614e375a15aaccb63ff7"
    )
