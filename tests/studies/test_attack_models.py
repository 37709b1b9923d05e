"""Attack models, and the pairs that they classify."""

import numpy as np
import pytest
from small import task_of

from studies.privacy_audit.attack_models import attack_each, standardise
from studies.privacy_audit.attack_statistics import auc
from studies.privacy_audit.pairs import baseline_features, matched_pairs


@pytest.mark.parametrize(("leak", "low", "high"), [(20.0, 0.999, 1.0), (0.0, 0.44, 0.56)])
def test_what_leaks_fully_is_found_and_what_is_independent_is_not(leak, low, high):
    rng = np.random.default_rng(0)
    positive, group = rng.random(900) < 0.5, np.repeat(np.arange(3), 300)
    features = np.column_stack([rng.normal(size=900), rng.normal(size=900) + leak * positive])
    assert low <= auc(attack_each(features, positive, group, 0).scores, positive) <= high


def test_an_attack_is_not_trained_on_whom_it_attacks():
    """The feature tells only within a group: its meaning is turned round in each, so that others mislead."""
    rng = np.random.default_rng(0)
    positive, group = rng.random(600) < 0.5, np.repeat(np.arange(3), 200)
    features = (np.where(group == 0, 1, -1) * positive)[:, None] + 0.1 * rng.normal(size=(600, 1))
    found = attack_each(features, positive, group, 0).scores
    assert auc(found[group == 0], positive[group == 0]) < 0.1


def test_standardised_within_each_group():
    features = np.array([[1.0, np.nan], [3.0, 5.0], [10.0, 1.0], [30.0, 3.0]])
    found = standardise(features, np.array([0, 0, 1, 1]))
    np.testing.assert_array_equal(found, [[-1, np.nan], [1, 0], [-1, -1], [1, 1]])


def test_pairs_that_are_no_edges_have_the_classes_and_degrees_of_edges_and_what_is_known_of_them():
    task = task_of()
    graph, split = task.graph, task.split
    pairs = matched_pairs(graph, np.random.default_rng(0))
    u, v = pairs.nodes.T
    assert (np.asarray(graph.adjacency[u, v]).ravel() == pairs.is_edge).all()
    assert (u != v).all()
    assert pairs.is_edge.sum() == (~pairs.is_edge).sum() > 0.9 * graph.num_edges
    assert len(np.unique(np.sort(pairs.nodes, axis=1), axis=0)) == len(u)
    edges, others = (pairs.nodes[pairs.is_edge == wanted] for wanted in (True, False))
    assert (edges[:, 0] == others[:, 0]).all()
    assert (graph.labels[edges[:, 1]] == graph.labels[others[:, 1]]).all()
    assert graph.degrees[others].mean() == pytest.approx(graph.degrees[edges].mean(), rel=0.03)

    known, x = baseline_features(graph, split, pairs), graph.features.toarray()
    rarity = np.log((1 + graph.num_nodes) / (1 + (x > 0).sum(axis=0)))
    for (u, v), found in list(zip(pairs.nodes, known, strict=True))[::50]:
        common, either = ((x[u] > 0) & (x[v] > 0)).sum(), ((x[u] > 0) | (x[v] > 0)).sum()
        cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in ((x[u], x[v]), (x[u] * rarity, x[v] * rarity))]
        sizes = sorted([(x[u] > 0).sum(), (x[v] > 0).sum()])
        training = (u in split.train) + (v in split.train)
        expected = [*cosines, common, common / either, graph.labels[u] == graph.labels[v], training, *sizes]
        assert found == pytest.approx(np.array(expected, dtype=float), abs=1e-5)
