"""Randomised response: its probabilities, and the bound on their ratio."""

import math

import numpy as np
import pytest

from feddep.privacy.randomised_response import kernel, randomised_response


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("classes", [1, 2, 100])
def test_the_true_answer_is_e_to_the_epsilon_times_as_likely_as_a_false_one(epsilon, classes):
    weights = np.where(np.eye(classes, dtype=bool), math.exp(epsilon), 1)
    np.testing.assert_allclose(kernel(classes, epsilon), weights / weights.sum(axis=1), rtol=1e-6)
    assert np.array_equal(kernel(classes, None), np.eye(classes))


def test_answers_are_distributed_as_they_should_be():
    true = np.full(200_000, 2)
    found = np.bincount(
        randomised_response(true, 4, 1.0, np.random.default_rng(0)), minlength=4
    ) / len(true)
    keep = math.e / (math.e + 3)
    np.testing.assert_allclose(
        found, [(1 - keep) / 3, (1 - keep) / 3, keep, (1 - keep) / 3], atol=0.005
    )
    assert np.array_equal(randomised_response(true, 4, 1000.0, np.random.default_rng(0)), true)
    assert not randomised_response(
        np.zeros(5, dtype=np.int64), 1, 1.0, np.random.default_rng(0)
    ).any()  # nothing to hide
