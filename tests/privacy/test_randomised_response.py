"""Randomised response: its probabilities, and the bound on their ratio."""

import math

import numpy as np
import pytest

from feddep.privacy.randomised_response import keep_probability, randomised_response


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("classes", [2, 100])
def test_the_true_answer_is_e_to_the_epsilon_times_as_likely_as_a_false_one(epsilon, classes):
    keep = keep_probability(epsilon, classes)
    assert keep == pytest.approx((1 - keep) / (classes - 1) * math.exp(epsilon), rel=1e-6)


def test_answers_are_distributed_as_they_should_be():
    true = np.full(200_000, 2)
    found = np.bincount(randomised_response(true, 4, 1.0, np.random.default_rng(0)), minlength=4) / len(true)
    keep = math.e / (math.e + 3)
    np.testing.assert_allclose(found, [(1 - keep) / 3, (1 - keep) / 3, keep, (1 - keep) / 3], atol=0.005)
    assert np.array_equal(randomised_response(true, 4, 1000.0, np.random.default_rng(0)), true)
    assert not randomised_response(np.zeros(5, dtype=np.int64), 1, 1.0, np.random.default_rng(0)).any()  # nothing to hide
