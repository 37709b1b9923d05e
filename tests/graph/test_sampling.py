"""The sampler's law is the privacy mechanism: it is tested as a law, not only as a program."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from feddep.graph.sampling import PAD, sample_neighbours, sample_trees
from graphs import graphs, star, tree_width

DRAWS = 40_000
SIGNIFICANCE = 1e-4


def draws(degree: int, fanout: int, seed: int = 0) -> np.ndarray:
    """Many independent draws from the centre of a star, as leaf numbers 0 … degree − 1."""
    centre = np.zeros(DRAWS, dtype=np.int64)
    return sample_neighbours(star(degree), centre, fanout, np.random.default_rng(seed)) - 1


def is_uniform(counts: Counter, support: list) -> bool:
    assert set(counts) <= set(support)
    return len(support) == 1 or chisquare([counts[outcome] for outcome in support]).pvalue > SIGNIFICANCE


@pytest.mark.parametrize(("degree", "fanout"), [(6, 3), (7, 1), (6, 5), (4, 2)])
def test_without_replacement_every_subset_is_equally_likely(degree, fanout):
    counts = Counter(tuple(sorted(row)) for row in draws(degree, fanout).tolist())
    assert is_uniform(counts, list(itertools.combinations(range(degree), fanout)))


def test_without_replacement_the_order_tells_nothing():
    rows = draws(9, 4)
    assert (np.diff(rows, axis=1) > 0).all()


@pytest.mark.parametrize(("degree", "fanout"), [(3, 3), (2, 5), (1, 4), (4, 5)])
def test_with_replacement_every_sequence_is_equally_likely(degree, fanout):
    counts = Counter(map(tuple, draws(degree, fanout).tolist()))
    assert is_uniform(counts, list(itertools.product(range(degree), repeat=fanout)))


@pytest.mark.parametrize("fanout", [1, 2, 5])
@pytest.mark.parametrize("degree", [1, 2, 4, 5, 6, 9, 40])
def test_inclusion_frequency_meets_the_closed_form(degree, fanout):
    expected = fanout / degree if degree > fanout else 1 - (1 - 1 / degree) ** fanout
    rows = draws(degree, fanout, seed=degree * 10 + fanout)
    for leaf in range(degree):
        frequency = (rows == leaf).any(axis=1).mean()
        error = np.sqrt(expected * (1 - expected) / DRAWS)
        assert abs(frequency - expected) <= 4.5 * error  # 84 comparisons, at most 1 in 1,700 goes wrong by chance


def test_hops_are_drawn_independently():
    trees = sample_trees(star(3), np.zeros(DRAWS, dtype=np.int64), (1,) * 2, np.random.default_rng(5)).nodes
    first, second = trees[:, 1], trees[:, 2]  # the root's draw for the upper layer, and for the lower one
    table = np.array([[((first == a) & (second == b)).sum() for b in (1, 2, 3)] for a in (1, 2, 3)])
    assert chi2_contingency(table).pvalue > SIGNIFICANCE
    assert table.min() > 0


@given(graphs(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_what_is_drawn_is_a_neighbour(graph, fanout, seed):
    nodes = np.arange(graph.num_nodes)
    drawn = sample_neighbours(graph, nodes, fanout, np.random.default_rng(seed))
    assert drawn.shape == (graph.num_nodes, fanout)
    for node, row in zip(nodes, drawn, strict=True):
        neighbours = set(graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist())
        if not neighbours:
            assert (row == PAD).all()
            continue
        assert set(row.tolist()) <= neighbours
        if len(neighbours) > fanout:
            assert len(set(row.tolist())) == fanout


@given(graphs(), st.integers(1, 3), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_a_tree_holds_neighbours_where_they_belong(graph, fanout, hops, seed):
    roots = np.arange(graph.num_nodes)
    trees = sample_trees(graph, roots, (fanout,) * hops, np.random.default_rng(seed)).nodes
    assert trees.shape == (len(roots), tree_width(fanout, hops))
    assert (trees[:, 0] == roots).all()
    for hop in range(hops):
        inner = tree_width(fanout, hop)
        for node, j in itertools.product(range(inner), range(fanout)):
            parents, children = trees[:, node], trees[:, inner + node * fanout + j]
            for parent, child in zip(parents, children, strict=True):
                if parent == PAD or graph.degrees[parent] == 0:
                    assert child == PAD
                else:
                    assert child in graph.indices[graph.indptr[parent] : graph.indptr[parent + 1]]


@given(graphs(), st.integers(0, 2**32 - 1))
def test_same_generator_same_draws(graph, seed):
    first, second = (sample_trees(graph, np.arange(graph.num_nodes), (3,) * 2, np.random.default_rng(seed)) for _ in range(2))
    assert (first.nodes == second.nodes).all()


@given(graphs(), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 2**16))
def test_trees_are_split_into_inner_nodes_and_the_draws_of_each(graph, fanouts, seed):
    trees = sample_trees(graph, np.arange(graph.num_nodes), fanouts, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    shorter = sample_trees(graph, np.arange(graph.num_nodes), fanouts[:-1], rng)
    own, drawn = trees.split(trees.nodes)
    assert trees.inner.fanouts == shorter.fanouts == tuple(fanouts[:-1])
    assert (own == shorter.nodes).all()
    assert (trees.inner.nodes == shorter.nodes).all()
    assert (drawn == sample_neighbours(graph, shorter.nodes, fanouts[-1], rng)).all()
    assert (trees.has_neighbours == ((own != PAD) & (graph.degrees[own] > 0))).all()
    assert (trees[1:].nodes == trees.nodes[1:]).all()
    assert trees[1:].fanouts == trees.fanouts


def test_a_fanout_below_one_is_refused():
    with pytest.raises(ValueError):  # noqa: PT011
        sample_neighbours(star(2), np.array([0]), 0, np.random.default_rng(0))
