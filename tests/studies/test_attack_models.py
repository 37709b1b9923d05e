"""Attack models, and the pairs that they classify."""

import numpy as np
import pytest

from feddep.datasets.synthetic import planted_partition
from feddep.graph.split import random_split
from studies.privacy_audit.attack_models import attack_each, standardise
from studies.privacy_audit.attack_statistics import auc
from studies.privacy_audit.pairs import baseline_features, matched_pairs


def candidates(leak: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    positive, group = rng.random(900) < 0.5, np.repeat(np.arange(3), 300)
    return np.column_stack([rng.normal(size=900), rng.normal(size=900) + leak * positive]), positive, group


def test_what_leaks_fully_is_found_and_what_is_independent_is_not():
    features, positive, group = candidates(20.0)
    assert auc(attack_each(features, positive, group, 0).scores, positive) > 0.999
    features, positive, group = candidates(0.0)
    assert abs(auc(attack_each(features, positive, group, 0).scores, positive) - 0.5) < 0.06


def test_an_attack_is_not_trained_on_whom_it_attacks():
    """The feature tells only within a group: its meaning is turned round in each, so that others mislead."""
    rng = np.random.default_rng(0)
    positive, group = rng.random(600) < 0.5, np.repeat(np.arange(3), 200)
    sign = np.where(group == 0, 1, -1)
    features = (sign * positive)[:, None] + 0.1 * rng.normal(size=(600, 1))
    found = attack_each(features, positive, group, 0).scores
    assert auc(found[group == 0], positive[group == 0]) < 0.1


def test_standardised_within_each_group():
    features = np.array([[1.0, np.nan], [3.0, 5.0], [10.0, 1.0], [30.0, 3.0]])
    found = standardise(features, np.array([0, 0, 1, 1]))
    assert found[:, 0].tolist() == [-1, 1, -1, 1]
    assert np.isnan(found[0, 1])
    assert found[1, 1] == 0


def test_pairs_that_are_no_edges_have_the_classes_and_degrees_of_edges():
    graph = planted_partition(300, 3, 6, 64, 6.0, 1.0, 8, 0.8, 0)
    pairs = matched_pairs(graph, np.random.default_rng(0))
    joined = np.asarray(graph.adjacency[pairs.nodes[:, 0], pairs.nodes[:, 1]]).ravel() > 0
    assert (joined == pairs.is_edge).all()
    assert (pairs.nodes[:, 0] != pairs.nodes[:, 1]).all()
    assert pairs.is_edge.sum() == (~pairs.is_edge).sum() > 0.9 * graph.num_edges
    code = np.sort(pairs.nodes, axis=1) @ np.array([1000, 1])
    assert len(np.unique(code)) == len(code)
    edges, others = (pairs.nodes[pairs.is_edge == wanted] for wanted in (True, False))
    assert (edges[:, 0] == others[:, 0]).all()
    assert (graph.labels[edges[:, 1]] == graph.labels[others[:, 1]]).all()
    means = [graph.degrees[half].mean() for half in (edges, others)]
    assert means[1] == pytest.approx(means[0], rel=0.03)


def test_what_is_known_before():
    graph = planted_partition(200, 4, 8, 64, 6.0, 1.0, 8, 0.8, 0)
    split = random_split(200, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    pairs = matched_pairs(graph, np.random.default_rng(1))
    names = ("cosine", "weighted cosine", "common", "jaccard", "same class", "training nodes", "fewer", "more")
    found = dict(zip(names, baseline_features(graph, split, pairs).T, strict=True))
    x = graph.features.toarray()
    for k in (0, 7, len(pairs.nodes) - 1):
        u, v = pairs.nodes[k]
        assert found["cosine"][k] == pytest.approx(x[u] @ x[v] / np.linalg.norm(x[u]) / np.linalg.norm(x[v]), abs=1e-5)
        assert found["common"][k] == ((x[u] > 0) & (x[v] > 0)).sum()
        assert found["jaccard"][k] == pytest.approx(found["common"][k] / ((x[u] > 0) | (x[v] > 0)).sum())
        assert found["training nodes"][k] == (u in split.train) + (v in split.train)
    edges = pairs.is_edge
    assert found["same class"][edges].mean() == pytest.approx(found["same class"][~edges].mean())
