"""Bounding degrees: one edge more or less of a graph moves few edges of the bounded one."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.degree_bounding import bounded_adjacency, edge_priorities
from feddep.graph.graph import Graph
from graphs import graphs, neighbours


def kept_by_definition(graph: Graph, degree: int, seed: int, keep: str) -> np.ndarray:
    """Row by row, as the docstring says it."""
    n = graph.num_nodes
    lists = np.zeros((n, n))
    for v in range(n):
        heard = np.array(neighbours(graph, v), dtype=np.int64)
        priorities = edge_priorities(np.full(len(heard), v), heard, n, seed)
        lists[v, heard[np.argsort(priorities)][:degree]] = 1
    return lists * lists.T if keep == "both" else lists


@given(graphs(), st.integers(1, 4), st.integers(0, 99), st.sampled_from(["both", "receiver"]))
def test_each_node_keeps_its_first_edges(graph: Graph, degree: int, seed: int, keep: str):
    bounded = bounded_adjacency(graph, degree, seed, keep)
    assert (bounded.toarray() == kept_by_definition(graph, degree, seed, keep)).all()
    assert bounded.has_sorted_indices
    assert bounded.dtype == np.float32


@given(graphs(), st.integers(1, 3), st.integers(0, 99), st.data())
def test_one_edge_moves_at_most_three(graph: Graph, degree: int, seed: int, data: st.DataObject):
    """It is lost itself, and each of its ends takes up one edge at most; no chain of changes
    follows.
    """
    edges = graph.edges()
    if not len(edges):
        return
    gone = data.draw(st.integers(0, len(edges) - 1))
    u, v = edges[gone]
    without = Graph.from_edges(
        np.delete(edges, gone, axis=0), graph.features, graph.labels, graph.num_classes
    )
    for keep in ("both", "receiver"):
        change = bounded_adjacency(graph, degree, seed, keep) - bounded_adjacency(
            without, degree, seed, keep
        )
        change = change.toarray().astype(int)
        lost, taken = np.argwhere(change > 0), np.argwhere(change < 0)
        assert {tuple(sorted(pair)) for pair in lost} <= {(u, v)}
        assert all({u, v} & set(pair) for pair in taken.tolist())
        assert len({tuple(sorted(pair)) for pair in taken.tolist()}) <= 2
        if keep == "receiver":
            assert set(np.flatnonzero(np.abs(change).sum(1))) <= {u, v}
            assert (change > 0).sum(1).max() <= 1
            assert (change < 0).sum(1).max() <= 1


def test_the_order_depends_on_nothing_but_the_pair_and_the_seed():
    pairs = np.array(list(itertools.combinations(range(60), 2)))
    priorities = edge_priorities(pairs[:, 0], pairs[:, 1], 60, 7)
    assert (priorities == edge_priorities(pairs[:, 1], pairs[:, 0], 60, 7)).all()
    assert len(set(priorities.tolist())) == len(pairs)
    assert (priorities != edge_priorities(pairs[:, 0], pairs[:, 1], 60, 8)).all()
