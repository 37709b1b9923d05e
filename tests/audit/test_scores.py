"""AUC, TPR at 1 % FPR, bootstrap intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.audit import scores


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auc_counts_the_pairs_that_are_in_order(given_):
    values, positive = np.array([v for v, _ in given_], dtype=float), np.array([p for _, p in given_])
    if positive.all() or not positive.any():
        return
    wins = [(a > b) + (a == b) / 2 for a in values[positive] for b in values[~positive]]
    assert scores.auc(values, positive) == pytest.approx(np.mean(wins))


def test_sensitivity_allows_one_false_alarm_in_a_hundred():
    positive = np.arange(1100) >= 1000
    values = np.where(positive, 5.0, 0.0)
    values[:10] = 9  # ten of a thousand negatives: exactly 1 %
    assert scores.sensitivity(values, positive) == 1
    values[10] = 9  # one more: now the threshold has to be where no positive passes
    assert scores.sensitivity(values, positive) == 0


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    positive = np.arange(200) < 100
    covered = 0
    for _ in range(100):
        values = rng.normal(size=200) + positive  # AUC Φ(1/√2) = 0.7602
        found = scores.interval(scores.auc, values, positive, scores.resamplings(positive, 200, rng))
        covered += found.low <= 0.7602 <= found.high
        assert found.low <= found.value <= found.high
    assert covered >= 88


def test_no_gain_over_oneself():
    rng = np.random.default_rng(1)
    positive = np.arange(100) < 50
    values = rng.normal(size=100) + positive
    found = scores.gain(scores.auc, values, values, positive, scores.resamplings(positive, 50, rng))
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert scores.gain(scores.auc, values + 3 * positive, values, positive, scores.resamplings(positive, 50, rng)).low > 0
