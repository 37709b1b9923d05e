"""How good an attack is: AUC and the share of edges found at a small share of false alarms, with bootstrap intervals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

FALSE_ALARMS = 0.01
"""The false positive rate at which true positives are counted."""

Measure = Callable[[np.ndarray, np.ndarray], float]
"""From scores, shape (N,), and whether each is positive, shape (N,)."""


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % confidence interval.

    Attributes:
        value: what was measured.
        low: the interval's lower end.
        high: its upper end.
    """

    value: float
    low: float
    high: float


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Probability that a positive has the larger score than a negative, ties counting half."""
    n = int(positive.sum())
    wins = rankdata(scores)[positive].sum() - n * (n + 1) / 2
    return float(wins / (n * (len(scores) - n)))


def sensitivity(scores: np.ndarray, positive: np.ndarray) -> float:
    """TPR at 1 % FPR: share of the positives above a threshold that at most a hundredth of the negatives exceeds."""
    negatives = np.sort(scores[~positive])[::-1]
    threshold = negatives[int(FALSE_ALARMS * len(negatives))]
    return float((scores[positive] > threshold).mean())


def resamplings(positive: np.ndarray, times: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of ``times`` bootstrap samples, positives and negatives apart, each as many as there are; shape (times, N)."""
    parts = [np.flatnonzero(positive == wanted) for wanted in (True, False)]
    return np.concatenate([part[rng.integers(len(part), size=(times, len(part)))] for part in parts], axis=1)


def interval(measure: Measure, scores: np.ndarray, positive: np.ndarray, samples: np.ndarray) -> Interval:
    """A measure with its percentile bootstrap interval.

    Args:
        measure: what to measure.
        scores: the attack's scores, shape (N,).
        positive: the truth, shape (N,).
        samples: what :func:`resamplings` gives.
    """
    drawn = [measure(scores[sample], positive[sample]) for sample in samples]
    return _interval(measure(scores, positive), drawn)


def gain(measure: Measure, scores: np.ndarray, baseline: np.ndarray, positive: np.ndarray, samples: np.ndarray) -> Interval:
    """By how much an attack exceeds another on the same pairs; both are measured on the same samples."""

    def both(at: np.ndarray) -> float:
        return measure(scores[at], positive[at]) - measure(baseline[at], positive[at])

    return _interval(both(np.arange(len(scores))), [both(sample) for sample in samples])


def _interval(value: float, drawn: list[float]) -> Interval:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(value, float(low), float(high))
