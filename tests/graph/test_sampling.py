"""The sampler's law is the privacy mechanism: it is tested as a law, not only as a program."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from feddep.graph.sampling import PAD, sample_neighbours, sample_trees
from graphs import graphs, neighbours, star, tree_width
from sampling_laws import sequences

DRAWS = 40_000
SIGNIFICANCE = 1e-4


@pytest.mark.parametrize(
    ("degree", "fanout"),
    [(6, 3), (7, 1), (6, 5), (5, 4), (4, 2), (9, 4), (40, 2), (3, 3), (2, 5), (1, 4), (4, 5)],
)
def test_the_law_is_that_of_the_enumeration(degree, fanout):
    """Without replacement every subset is equally likely, in ascending order; with replacement
    every sequence.
    """
    expected = sequences(range(1, degree + 1), fanout)
    drawn = sample_neighbours(
        star(degree), np.zeros(DRAWS, dtype=np.int64), fanout, np.random.default_rng(0)
    )
    counts = Counter(map(tuple, drawn.tolist()))
    assert set(counts) <= set(expected)
    if len(expected) > 1:
        frequencies = [float(share) * DRAWS for share in expected.values()]
        assert (
            chisquare([counts[outcome] for outcome in expected], frequencies).pvalue > SIGNIFICANCE
        )


def test_hops_are_drawn_independently():
    trees = sample_trees(
        star(3), np.zeros(DRAWS, dtype=np.int64), (1,) * 2, np.random.default_rng(5)
    ).nodes
    # The root's draw for the upper layer, and for the lower one.
    first = trees[:, 1]
    second = trees[:, 2]
    table = np.array([[((first == a) & (second == b)).sum() for b in (1, 2, 3)] for a in (1, 2, 3)])
    assert chi2_contingency(table).pvalue > SIGNIFICANCE
    assert table.min() > 0


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
                    assert child in neighbours(graph, parent)


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
