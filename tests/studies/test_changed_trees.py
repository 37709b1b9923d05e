"""How likely an edge changes a tree, and how many trees of a batch, against exact laws on small
graphs.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from feddep.graph.graph import Graph
from feddep.methods.shared.cross_edges import expand
from feddep.privacy.accountant import PrivacyError
from graphs import graphs, random_graph, star
from sampling_laws import (
    SMALL,
    distance,
    law_of_trees,
    roots_of_edges,
    without_edge,
)
from studies.privacy.client_privacy.changed_trees import (
    _poisson_binomial,
    _practical_maximum,
    most_changed,
    tree_changes,
)

HOPS = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]


def held_against_laws(graph: Graph, hops: int, fanout: int, links: np.ndarray) -> None:
    """The bound is no less than the distance of the exact laws, and equal to it where it is said to
    be.

    Args:
        graph: a small graph.
        hops, fanout: of the trees.
        links: which node is joined to which stand-in, shape (n, stand-ins).
    """
    everybody = np.arange(graph.num_nodes)
    lengths = graph.degrees + links.sum(axis=1).astype(int)
    bounds = tree_changes(graph, everybody, hops, fanout, lengths - graph.degrees)
    assert np.diff(bounds.indptr).tolist() == roots_of_edges(graph, everybody, hops).tolist()
    for edge, (u, v) in enumerate(graph.edges()):
        worlds = [
            expand(world, sp.csr_matrix(links)) for world in (graph, without_edge(graph, edge))
        ]
        border = fanout > 1 and (lengths[u] == fanout + 1) != (lengths[v] == fanout + 1)
        for root in everybody:
            exact = distance(*(law_of_trees(world, root, hops, fanout) for world in worlds))
            bound = float(bounds[edge, root])
            assert exact <= bound + 1e-12 <= 1 + 2e-12
            if hops == 1 or not border:
                assert bound == pytest.approx(exact, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    graphs(max_nodes=5), st.sampled_from(HOPS), st.sampled_from([0, 0, 1, 2]), st.integers(0, 2**16)
)
def test_it_bounds_the_distance_of_the_exact_laws(graph, size, stand_ins, seed):
    links = np.random.default_rng(seed).integers(0, 2, (graph.num_nodes, stand_ins))
    held_against_laws(graph, *size, links.astype(np.float32))


DOUBLE_STAR = [[0, 1], [0, 2], [0, 3], [1, 4], [1, 5]]
"""Both ends of the first edge have three neighbours."""


@pytest.mark.parametrize(
    "edges", [*SMALL.values(), DOUBLE_STAR], ids=[*SMALL.keys(), "double star"]
)
@pytest.mark.parametrize(("hops", "fanout"), [*HOPS, (3, 1)])
def test_it_is_the_distance_of_the_exact_laws(edges, hops, fanout):
    n = 1 + max(max(edge) for edge in edges)
    held_against_laws(
        Graph.from_edges(np.array(edges), np.eye(n), np.zeros(n), 1), hops, fanout, np.zeros((n, 0))
    )


def test_many_edges_are_worked_out_in_parts(monkeypatch):
    graph = random_graph(60, 200)
    for hops in (1, 2, 3):
        at_once = tree_changes(graph, np.arange(0, 60, 2), hops, 3)
        monkeypatch.setattr("studies.privacy.client_privacy.changed_trees._MOST_AT_A_TIME", 100)
        in_parts = tree_changes(graph, np.arange(0, 60, 2), hops, 3)
        laws = most_changed(in_parts, 0.2)
        monkeypatch.undo()
        assert (at_once != in_parts).nnz == 0
        assert laws == pytest.approx(most_changed(at_once, 0.2), abs=1e-15)
        assert (
            np.diff(at_once.indptr).tolist()
            == roots_of_edges(graph, np.arange(0, 60, 2), hops).tolist()
        )


def test_graphs_and_clients_with_nothing_to_hide():
    for changes in (
        tree_changes(random_graph(5, 0), np.arange(3), 2, 5),
        tree_changes(star(3), np.arange(0), 2, 5),
    ):
        assert changes.shape in ((0, 3), (3, 0))
        assert most_changed(changes, 0.5).tolist() == [1.0]
    assert most_changed(tree_changes(star(3), np.arange(4), 2, 5), 0.0).tolist() == [
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ]
    for hops, fanout in ((0, 5), (2, 0)):
        with pytest.raises(PrivacyError):
            tree_changes(star(3), np.arange(2), hops, fanout)


def at_least(law: np.ndarray) -> np.ndarray:
    """Probability of j or more, for each j."""
    return law[::-1].cumsum()[::-1]


def enumerated(rates: np.ndarray) -> np.ndarray:
    """The law of the sum of independent Bernoulli variables, outcome by outcome."""
    law = np.zeros(len(rates) + 1)
    for outcome in itertools.product((0, 1), repeat=len(rates)):
        law[sum(outcome)] += math.prod(
            rate if one else 1 - rate for rate, one in zip(rates, outcome, strict=True)
        )
    return law


CHANCES = st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=3).map(
    np.array
)


@settings(max_examples=60)
@given(CHANCES, st.floats(0.001, 1))
def test_one_law_is_above_those_of_all_edges_and_no_higher_than_need_be(changes, rate):
    found = at_least(most_changed(sp.csr_array(changes), rate))
    rates = np.where(changes > 0, rate * changes / np.maximum(1 - rate + rate * changes, 1e-300), 0)
    own = np.array([at_least(enumerated(each)) for each in rates])
    assert found == pytest.approx(own.max(axis=0)[: len(found)], abs=1e-12)
    assert own.max(axis=0)[len(found) :] == pytest.approx(0)


def test_what_every_tree_shows_is_the_simple_bound():
    for roots, rate in ((1, 0.3), (5, 1.0), (40, 0.02), (300, 0.01)):
        law = most_changed(sp.csr_array(np.ones((2, roots))), rate)
        assert law == pytest.approx(binom.pmf(np.arange(roots + 1), roots, rate), abs=1e-15)


def test_sums_from_an_end_on_are_merged():
    law = np.append(enumerated(np.array([0.1, 0.5, 0.7])), 0)
    rates = sp.csr_array([[0.1, 0.5, 0.7]])
    for end in (1, 2, 3, 4):
        assert _poisson_binomial(rates, end)[0] == pytest.approx([*law[:end], law[end:].sum()])


def test_what_is_as_good_as_impossible_counts_as_all():
    rates = sp.csr_array(np.full((1, 2000), 1e-3))
    end = _practical_maximum(2.0)
    assert end < 100
    tail = _poisson_binomial(rates, end)[0, -1]
    assert 0 < tail < 1e-40
    law = most_changed(sp.csr_array(np.ones((1, 2000))), 1e-3)
    assert law[-1] == pytest.approx(tail, rel=1e-6)
    assert not law[end:-1].any()
