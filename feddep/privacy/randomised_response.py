"""Randomised response over C classes (Warner, 1965; Kairouz, Oh and Viswanath, 2016, Section 2)."""

import math

import numpy as np


def keep_probability(epsilon: float, classes: int) -> float:
    """Probability e^ε / (e^ε + C − 1) with which the true one of C classes is answered."""
    return 1 / (1 + (classes - 1) * math.exp(-epsilon))


def kernel(classes: int, epsilon: float | None) -> np.ndarray:
    """The probability K(a | c) that a is answered where c is true, shape (C, C); with no ε answers
    are true.

    A row each class c and a column each answer a; it is symmetric, and its rows sum to 1.
    """
    if epsilon is None or classes == 1:
        return np.eye(classes)
    keep = keep_probability(epsilon, classes)
    return np.where(np.eye(classes, dtype=bool), keep, (1 - keep) / (classes - 1))


def randomised_response(
    true: np.ndarray, classes: int, epsilon: float, random: np.random.Generator
) -> np.ndarray:
    """An answer for each of the ``true`` classes, int64, shape (k,): the true one, or any of the
    others with equal probability.

    An answer is ε-locally differentially private: whatever the true class, an answer is at most e^ε
    times as likely as if another were true.  So it is for everything that the true class was
    computed from.
    """
    lies = random.random(len(true)) >= keep_probability(epsilon, classes)
    others = (true + random.integers(1, max(classes, 2), size=len(true))) % classes
    return np.where(lies, others, true)
