"""The graph: simple whatever it is made from, its subgraphs induced, its fingerprint a matter of
content.
"""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.graph import (
    Graph,
    disjoint_union,
    mean_adjacency,
    mean_adjacency_with_self_loops,
    normalised_adjacency,
)
from feddep.utils.errors import DataError
from graphs import graphs, neighbours

NUM_CLASSES = 3


def build(edges, n: int, seed: int = 0) -> Graph:
    """A graph with random sparse features and labels."""
    rng = np.random.default_rng(seed)
    features = sp.random(n, 5, density=0.4, rng=rng, format="csr", dtype=np.float32)
    return Graph.from_edges(
        np.array(edges).reshape(-1, 2), features, rng.integers(0, NUM_CLASSES, n), NUM_CLASSES
    )


@st.composite
def edge_lists(draw):
    """A number of nodes, and pairs of them with repeats, self-loops and both directions."""
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=40))


@given(edge_lists())
def test_simple_and_undirected(pairs):
    n, edges = pairs
    graph = build(edges, n)
    wanted = sorted({(min(pair), max(pair)) for pair in edges if pair[0] != pair[1]})
    assert graph.edges().tolist() == [list(pair) for pair in wanted]
    assert graph.edges().dtype == np.int64
    assert graph.num_edges == len(wanted)
    dense = graph.adjacency.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert set(np.unique(dense)) <= {0, 1}
    np.testing.assert_array_equal(graph.degrees, dense.sum(axis=1))


@pytest.mark.parametrize("repeats", [2, 128, 256])
def test_an_edge_named_often_is_one_edge(repeats):
    """Also as often as makes a small counter overflow to zero."""
    graph = build([[0, 1]] * repeats, 3)
    assert graph.edges().tolist() == [[0, 1]]
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


@given(graphs(max_nodes=12), st.data())
def test_subgraph_is_the_induced_one(graph, data):
    n = graph.num_nodes
    nodes = np.array(
        data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, n))], dtype=np.int64
    )
    part = graph.subgraph(nodes)
    np.testing.assert_array_equal(
        part.adjacency.toarray(), graph.adjacency.toarray()[nodes][:, nodes]
    )
    np.testing.assert_array_equal(part.features.toarray(), graph.features.toarray()[nodes])
    np.testing.assert_array_equal(part.labels, graph.labels[nodes])
    assert part.num_classes == NUM_CLASSES
    assert part.features.has_sorted_indices
    for each in (graph, part):
        assert all(
            neighbours(each, node) == sorted(neighbours(each, node))
            for node in range(each.num_nodes)
        )
        assert (each.indptr.dtype, each.indices.dtype, each.labels.dtype) == (
            np.int64,
            np.int32,
            np.int64,
        )
        assert each.features.dtype == np.float32


@given(graphs(max_nodes=12), st.integers(0, 3), st.integers(0, 2**16))
def test_new_nodes_follow_the_old_ones_without_features(graph, new, seed):
    n = graph.num_nodes
    links = sp.random(
        n, new, 0.5, rng=np.random.default_rng(seed), data_rvs=np.ones, dtype=np.float32
    )
    adjacency = sp.bmat(
        [[graph.adjacency, links], [sp.csr_matrix((new, n)), sp.csr_matrix((new, new))]],
        format="csr",
    )
    extended = graph.extended(adjacency)
    np.testing.assert_array_equal(extended.adjacency.toarray(), adjacency.toarray())
    np.testing.assert_array_equal(
        extended.features.toarray(), np.vstack([graph.features.toarray(), np.zeros((new, 4))])
    )
    np.testing.assert_array_equal(extended.labels, [*graph.labels, *[0] * new])
    assert (extended.num_nodes, extended.num_classes) == (n + new, NUM_CLASSES)


@given(graphs(max_nodes=12))
def test_matrices_of_message_passing(graph):
    dense = graph.adjacency.toarray().astype(np.float64)
    with_self_loops = dense + np.eye(graph.num_nodes)
    scale = np.diag(with_self_loops.sum(axis=1) ** -0.5)
    expected = {
        mean_adjacency: dense / np.maximum(dense.sum(axis=1, keepdims=True), 1),
        mean_adjacency_with_self_loops: with_self_loops
        / with_self_loops.sum(axis=1, keepdims=True),
        normalised_adjacency: scale @ with_self_loops @ scale,
    }
    for function, matrix in expected.items():
        assert function(graph).dtype == np.float32
        np.testing.assert_allclose(function(graph).toarray(), matrix, rtol=1e-6)


def test_features_have_one_form_and_those_that_were_given_keep_theirs():
    """Repeated, stored zero and unsorted entries: the same graph as from the dense matrix."""
    dense, edges = np.array([[0, 3, 1], [0, 0, 2]]), np.array([[0, 1]])
    values = np.array([1, 1, 2, 0, 2], dtype=np.float32)
    columns = np.array([2, 1, 1, 0, 2], dtype=np.int32)
    messy = sp.csr_matrix((values, columns, np.array([0, 3, 5], dtype=np.int32)), shape=(2, 3))
    graph = Graph.from_edges(edges, messy, [0, 1], 2)
    assert graph.fingerprint == Graph.from_edges(edges, dense, [0, 1], 2).fingerprint
    assert (graph.features.nnz, graph.num_features) == (3, 3)
    np.testing.assert_array_equal(messy.toarray(), dense)


def test_a_node_may_have_no_label():
    graph = Graph.from_edges(np.array([(0, 1)]), np.eye(3), np.array([1, -1, np.nan]), 2)
    assert graph.labels.tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([[0, 2]], [0, 1]),
        ([[-1, 0]], [0, 1]),
        ([[0, 1]], [0, 2]),
        ([[0, 1]], [-2, 0]),
        ([[0, 1]], [0, 1, 1]),
    ],
)
def test_what_is_no_graph(edges, labels):
    with pytest.raises(DataError):
        Graph.from_edges(np.array(edges), np.eye(2), labels, 2)


def test_fingerprint_sees_every_change():
    graph = build([[0, 1], [1, 2]], 4)
    scaled = graph.features * np.float32(2)
    wider = sp.csr_matrix(
        (graph.features.data, graph.features.indices, graph.features.indptr), shape=(4, 6)
    )
    others = [
        build([[0, 1], [1, 3]], 4),
        build([[0, 1]], 4),
        dataclasses.replace(graph, features=scaled),
        dataclasses.replace(graph, features=wider),
        dataclasses.replace(graph, labels=(graph.labels + 1) % NUM_CLASSES),
        dataclasses.replace(graph, num_classes=NUM_CLASSES + 1),
        *(
            dataclasses.replace(graph, client=np.array(owners))
            for owners in ([0, 0, 1, 1], [0, 1, 1, 1])
        ),
        graph.subgraph(np.array([0, 1, 2])),
    ]
    assert len({graph.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)


def test_the_fingerprint_is_fixed():
    """The registry knows the public graphs by their fingerprints: whoever changes how it is
    computed changes them all.
    """
    graph = Graph.from_edges(
        np.array([[0, 1], [1, 2]]), np.array([[1, 0], [0, 0.5], [0, 0]]), [0, 1, 1], 2
    )
    assert graph.fingerprint == "108ee2a4ae17c7b9ed646b03c7b11df013b0c662974ddfa7c86d6abcec55784a"


@given(st.lists(graphs(max_nodes=6), min_size=1, max_size=4))
def test_a_disjoint_union_keeps_each_graph(parts):
    parts = [part.subgraph(np.arange(part.num_nodes)) for part in parts]
    narrow = dataclasses.replace(parts[0], features=parts[0].features[:, :1])
    union = disjoint_union([narrow, *parts])
    assert union.num_features == max(part.num_features for part in parts)
    assert union.num_classes == max(part.num_classes for part in parts)
    for client, part in enumerate([narrow, *parts]):
        found = union.subgraph(np.flatnonzero(union.client == client))
        assert found.client.tolist() == [client] * part.num_nodes
        assert found.edges().tolist() == part.edges().tolist()
        assert found.labels.tolist() == part.labels.tolist()
        np.testing.assert_array_equal(
            found.features[:, : part.num_features].toarray(), part.features.toarray()
        )
        assert found.features.nnz == part.features.nnz
    assert union.num_edges == narrow.num_edges + sum(part.num_edges for part in parts)


@given(graph=graphs(max_nodes=12), owned=st.booleans())
def test_save_and_load(tmp_path_factory, graph, owned):
    path = tmp_path_factory.getbasetemp() / "graph.safetensors"
    if owned:
        graph = dataclasses.replace(graph, client=np.arange(graph.num_nodes) % 3)
    graph.save(path)
    loaded = Graph.load(path)
    assert loaded.fingerprint == graph.fingerprint
    assert (loaded.client is not None) == owned
    assert (loaded.indptr.dtype, loaded.indices.dtype, loaded.labels.dtype) == (
        np.int64,
        np.int32,
        np.int64,
    )
