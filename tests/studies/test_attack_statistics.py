"""Statistics of attacks: AUC, TPR, intervals, lower bounds on ε; attack models, and the pairs that
they classify.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binomtest, norm
from sklearn.metrics import roc_auc_score
from small import task_of

from studies.privacy.privacy_audit import attack_statistics
from studies.privacy.privacy_audit.attack_models import attack_each, standardise
from studies.privacy.privacy_audit.attack_statistics import (
    auc,
    clopper_pearson,
    epsilon_lower_bound,
)
from studies.privacy.privacy_audit.pairs import baseline_features, matched_pairs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("successes", "trials"), [(81, 263), (15, 148), (0, 20), (29, 29)])
def test_intervals_are_those_of_scipy(successes, trials):
    expected = tuple(binomtest(successes, trials).proportion_ci(0.95, "exact"))
    assert clopper_pearson(successes, trials, 0.95) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_randomised_response_is_bounded_from_below_and_closely(epsilon):
    rng, true = np.random.default_rng(7), expit(epsilon)
    draws = rng.random((40, 2, 20_000))
    found = [
        epsilon_lower_bound((one < true).astype(float), (other >= true).astype(float), 0.0)
        for one, other in draws
    ]
    assert sum(bound["low"] > epsilon for bound in found) <= 4  # 2.5 % of 40, and room for chance
    assert np.mean([bound["low"] for bound in found]) > epsilon - 0.15
    assert all(bound["low"] <= max(bound["value"], 0) <= max(bound["high"], 0) for bound in found)


def test_gaussian_noise_stays_below_its_epsilon():
    """The pair N(0, 1), N(1, 1) is (ε, δ)-private exactly for δ = Φ(1/2 − ε) − e^ε Φ(−1/2 − ε)."""
    rng, epsilon = np.random.default_rng(3), 1.0
    delta = norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon)
    found = epsilon_lower_bound(rng.normal(size=40_000) + 1, rng.normal(size=40_000), delta)
    assert 0.6 < found["low"] < epsilon


def test_a_certain_tell_is_bounded_by_the_number_of_runs_alone():
    few, many = (epsilon_lower_bound(np.ones(n), np.zeros(n), 1e-5) for n in (50, 5000))
    assert few["value"] == many["value"] == many["high"] == math.inf
    assert few["low"] == pytest.approx(
        math.log((0.0125 ** (1 / 25) - 1e-5) / (1 - 0.0125 ** (1 / 25)))
    )
    assert many["low"] > few["low"] + 4
    assert 0.99 < many["least_delta"] < 1


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.data())
def test_auc_is_that_of_scikit_learn(values, data):
    positive = np.arange(len(values)) < data.draw(st.integers(1, len(values) - 1))
    assert attack_statistics.auc(np.array(values), positive) == pytest.approx(
        roc_auc_score(positive, values)
    )


def test_tpr_at_fpr_allows_one_false_alarm_in_a_hundred():
    positive = np.arange(1100) >= 1000
    values = np.where(positive, 5.0, 0.0)
    values[:10] = 9  # ten of a thousand negatives: exactly 1 %
    assert attack_statistics.tpr_at_fpr(values, positive) == 1
    values[10] = 9  # one more: now the threshold has to be where no positive passes
    assert attack_statistics.tpr_at_fpr(values, positive) == 0


def test_whole_groups_are_drawn():
    group = np.array([0, 0, 1, 1, 1, 2])
    samples = attack_statistics.bootstrap_groups(group, 200, np.random.default_rng(0))
    for sample in samples:
        times = np.bincount(sample, minlength=6)
        assert (times == times[[0, 0, 2, 2, 2, 5]]).all()
        assert times[[0, 2, 5]].sum() == 3
    # Multisets of three out of three.
    assert len({tuple(sorted(sample)) for sample in samples}) == 10


@given(st.integers(1, 12), st.data())
def test_the_p_value_is_that_of_the_theorem(m, data):
    r = data.draw(st.integers(1, m))
    v = data.draw(st.integers(0, r))
    epsilon, delta = data.draw(st.floats(0, 4)), data.draw(st.sampled_from([0.0, 1e-5, 0.01, 0.3]))
    p = expit(epsilon)
    f = [
        sum(math.comb(r, k) * p**k * (1 - p) ** (r - k) for k in range(max(w, 0), r + 1))
        for w in range(-m, r + 1)
    ]
    expected = min(
        1.0, f[v + m] + 2 * m * delta * max((f[v - i + m] - f[v + m]) / i for i in range(1, m + 1))
    )
    assert attack_statistics.one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(
        expected, abs=1e-12
    )


def told(
    epsilon: float, delta: float, canaries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Each coin by itself: certain with probability δ, else by randomised response, as a score of
    ±2 or ±1.
    """
    coins = rng.random(canaries) < 0.5
    certain = rng.random(canaries) < delta
    right = certain | (rng.random(canaries) < expit(epsilon))
    return np.where(coins == right, 1.0, -1.0) * (1 + certain), coins


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 1e-4)])
def test_one_run_bounds_randomised_response_from_below_and_closely(epsilon, delta):
    rng = np.random.default_rng(11)
    found = [
        attack_statistics.one_run_bound(*told(epsilon, delta, 2000, rng), delta)["low"]
        for _ in range(30)
    ]
    assert sum(low > epsilon for low in found) <= 5  # 5 % of 30, and room for chance
    assert np.mean(found) > epsilon - 0.3


@pytest.mark.parametrize(("leak", "low", "high"), [(20.0, 0.999, 1.0), (0.0, 0.44, 0.56)])
def test_what_leaks_fully_is_found_and_what_is_independent_is_not(leak, low, high):
    rng = np.random.default_rng(0)
    positive, group = rng.random(900) < 0.5, np.repeat(np.arange(3), 300)
    features = np.column_stack([rng.normal(size=900), rng.normal(size=900) + leak * positive])
    assert low <= auc(attack_each(features, positive, group, 0).scores, positive) <= high


def test_an_attack_is_not_trained_on_whom_it_attacks():
    """The feature tells only within a group: its meaning is turned round in each, so that others
    mislead.
    """
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
        cosines = [
            a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            for a, b in ((x[u], x[v]), (x[u] * rarity, x[v] * rarity))
        ]
        sizes = sorted([(x[u] > 0).sum(), (x[v] > 0).sum()])
        training = (u in split.train) + (v in split.train)
        expected = [
            *cosines,
            common,
            common / either,
            graph.labels[u] == graph.labels[v],
            training,
            *sizes,
        ]
        assert found == pytest.approx(np.array(expected, dtype=float), abs=1e-5)
