"""Statistics of attacks: AUC and TPR with bootstrap intervals, Clopper–Pearson intervals, and lower
bounds on ε.

If a mechanism is (ε, δ)-differentially private, P(S) ≤ e^ε Q(S) + δ for every set S of outputs, P
and Q being the distributions with and without one record, in either order.  So every S shows ε ≥
ln((P(S) − δ) / Q(S)) (Kairouz, Oh and Viswanath, 2015; as an audit: Jagielski, Ullman and Oprea,
2020; Nasr et al., 2021).  S is chosen on one half of the runs; its probabilities are bounded on the
other half by Clopper–Pearson intervals, which hold for any number of runs.

Many records with a coin each in *one* run show ε as well (Steinke, Nasr and Jagielski, 2023,
"Privacy auditing with one (1) training run", Theorem 5.2): under (ε, δ) the number of coins guessed
right is no larger than if each were told by randomised response, but for a term in δ.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import beta, binom, rankdata

FPR = 0.01
"""False positive rate at which the true positive rate is reported."""

CONFIDENCE = 0.95
"""Of lower bounds on ε."""

GUESSED = (1.0, 0.3, 0.1, 0.03)
"""Shares of the canaries of one run whose coins are guessed, the others being left out; each gets
its part of the error.
"""

Metric = Callable[[np.ndarray, np.ndarray], float]
"""From scores, shape (N,), and whether each is positive, shape (N,)."""


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve: probability that a positive has the larger score than a negative,
    ties counting half.
    """
    n = int(positive.sum())
    wins = rankdata(scores)[positive].sum() - n * (n + 1) / 2
    return float(wins / (n * (len(scores) - n)))


def tpr_at_fpr(scores: np.ndarray, positive: np.ndarray) -> float:
    """Share of the positives above a threshold that at most the share :data:`FPR` of the negatives
    exceeds.
    """
    negatives = np.sort(scores[~positive])[::-1]
    threshold = negatives[int(FPR * len(negatives))]
    return float((scores[positive] > threshold).mean())


class Interval(NamedTuple):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """Three columns of a table: ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def bootstrap_samples(positive: np.ndarray, times: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of bootstrap samples, stratified by class; shape (times, N)."""
    strata = [np.flatnonzero(positive == wanted) for wanted in (True, False)]
    return np.concatenate(
        [stratum[rng.integers(len(stratum), size=(times, len(stratum)))] for stratum in strata],
        axis=1,
    )


def bootstrap_groups(group: np.ndarray, times: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Positions of bootstrap samples of whole groups, shape (N,), such as all pairs of a client,
    which are not independent.
    """
    members = [np.flatnonzero(group == number) for number in np.unique(group)]
    return [
        np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])
        for _ in range(times)
    ]


def interval(
    metric: Metric,
    scores: np.ndarray,
    positive: np.ndarray,
    samples: Iterable[np.ndarray],
    baseline: np.ndarray | None = None,
) -> Interval:
    """A metric with its percentile bootstrap interval from samples; that of other scores,
    ``baseline``, may be subtracted.
    """

    def value(at: np.ndarray) -> float:
        subtracted = 0.0 if baseline is None else metric(baseline[at], positive[at])
        return metric(scores[at], positive[at]) - subtracted

    low, high = np.percentile([value(at) for at in samples], [2.5, 97.5])
    return Interval(value(np.arange(len(scores))), float(low), float(high))


def clopper_pearson(
    successes: int | np.ndarray, trials: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval for a probability that covers it at least with probability ``confidence``
    (Clopper and Pearson, 1934).
    """
    tail, successes = (1 - confidence) / 2, np.asarray(successes)
    failures = trials - successes
    low = np.where(successes == 0, 0.0, beta.ppf(tail, np.maximum(successes, 1), failures + 1))
    high = np.where(failures == 0, 1.0, beta.ppf(1 - tail, successes + 1, np.maximum(failures, 1)))
    return low, high


class ThresholdTest(NamedTuple):
    """S: the statistic is above (``above``) or not above ``threshold``; P is with the edge
    (``with_edge``), or without.
    """

    threshold: float
    above: bool
    with_edge: bool

    def count(self, statistic: np.ndarray) -> int:
        """Number of runs in which S happened."""
        return int(((statistic > self.threshold) == self.above).sum())


def epsilon_lower_bound(present: np.ndarray, absent: np.ndarray, delta: float) -> dict[str, float]:
    """A lower bound on ε with confidence :data:`CONFIDENCE`, as :func:`evaluate_test` returns it.

    ``present`` is the statistic in runs with the edge, in random order, shape (R,), ``absent`` in
    those without it, shape (R',).
    """
    test = choose_test(present[::2], absent[::2], delta)
    return evaluate_test(test, present[1::2], absent[1::2], delta)


def choose_test(present: np.ndarray, absent: np.ndarray, delta: float) -> ThresholdTest:
    """The test with the largest lower bound on these runs; thresholds are the midpoints between
    observed values.
    """
    values = np.unique(np.concatenate([present, absent]))
    thresholds = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    best, chosen = (-np.inf, -np.inf), ThresholdTest(float(thresholds[0]), True, True)
    exceeding = [
        (len(runs) - np.searchsorted(np.sort(runs), thresholds, "right"), len(runs))
        for runs in (present, absent)
    ]
    for above in (True, False):
        rates = [
            _rate_interval(count if above else runs - count, runs) for count, runs in exceeding
        ]
        for with_edge in (True, False):
            (p_low, _), (_, q_high) = rates if with_edge else rates[::-1]
            bounds = _log_ratio(p_low - delta, q_high)
            k = int(np.lexsort((p_low - q_high, bounds))[-1])
            if (quality := (float(bounds[k]), float(p_low[k] - q_high[k]))) > best:
                best, chosen = quality, ThresholdTest(float(thresholds[k]), above, with_edge)
    return chosen


def evaluate_test(
    test: ThresholdTest, present: np.ndarray, absent: np.ndarray, delta: float
) -> dict[str, float]:
    """What a test shows of ε, on runs that it was not chosen on.

    Returns:
        low: lower end of the confidence interval of ln((P(S) − δ) / Q(S)), at least 0: with that
            confidence ε is no less.
        value: the same from the observed rates; ∞ where S never happened under Q.
        high: upper end; a statement on this test, not on ε.
        delta, confidence: δ, and the probability with which the interval holds.
        likely, unlikely: observed P(S) and Q(S), the true and the false positive rate.
        least_delta: lower end for the δ that ε = 0 needs, P(S) − Q(S), with the same confidence.
        trials: number of runs, with and without the edge each, that the rates are observed in.
    """
    worlds = (present, absent) if test.with_edge else (absent, present)
    counts = [(test.count(runs), len(runs)) for runs in worlds]
    p, q = (count / runs for count, runs in counts)
    (p_low, p_high), (q_low, q_high) = (
        [float(end) for end in _rate_interval(*each)] for each in counts
    )
    return {
        "low": max(0.0, float(_log_ratio(p_low - delta, q_high))),
        "value": float(_log_ratio(p - delta, q)),
        "high": float(_log_ratio(p_high - delta, q_low)),
        "delta": delta,
        "confidence": CONFIDENCE,
        "likely": p,
        "unlikely": q,
        "least_delta": max(0.0, p_low - q_high),
        "trials": min(len(present), len(absent)),
    }


def _rate_interval(count: int | np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """The interval of one of two rates; each gets half of the error probability."""
    return clopper_pearson(count, runs, (1 + CONFIDENCE) / 2)


def _log_ratio(numerator: float | np.ndarray, denominator: float | np.ndarray) -> np.ndarray:
    """ln(numerator / denominator); −∞ where the numerator is not positive, ∞ where it is and the
    denominator is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            np.asarray(numerator) <= 0,
            -math.inf,
            np.log(np.maximum(numerator, 0)) - np.log(denominator),
        )


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """The probability of so many correct guesses or more under (ε, δ), at most (Steinke et al.,
    2023, Theorem 5.2).

    With f(v) = Pr[Bin(r, e^ε / (1 + e^ε)) ≥ v] it is f(v) + 2 m δ max_i (f(v − i) − f(v)) / i, i =
    1 … m.

    Args:
        canaries: number m of canaries, each of which is there or not by a fair coin of its own.
        guesses: number r of coins that are guessed, fixed in advance; which ones may depend on what
            is seen.
        correct: number v of correct guesses.
        epsilon: ε ≥ 0.
        delta: δ.
    """
    chance = expit(epsilon)
    # f(v − i) − f(v); constant from i = v on.
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, chance))
    excess = float((below / np.arange(1, correct + 1)).max(initial=0.0))
    return min(1.0, float(binom.sf(correct - 1, guesses, chance)) + 2 * canaries * delta * excess)


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """The largest ε, to a thousandth, that so many correct guesses refute at the level ``error``; 0
    if they refute none.
    """

    def refuted(epsilon: float) -> bool:
        return one_run_p_value(canaries, guesses, correct, epsilon, delta) < error

    low, high = 0.0, 1.0
    if not refuted(low):
        return low
    while refuted(high):
        low, high = high, 2 * high
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def one_run_bound(scores: np.ndarray, joined: np.ndarray, delta: float) -> dict[str, float]:
    """A lower bound on ε with confidence :data:`CONFIDENCE` from the canaries of one run.

    Half of the guesses are that the canaries with the largest scores are there, half that those
    with the smallest are not.  The number of guesses is the best of :data:`GUESSED`, each of which
    has its share of the error probability.

    Args:
        scores: the larger, the likelier a canary is there; shape (m,).
        joined: whether it is, by a fair coin of its own; shape (m,).
        delta: δ.

    Returns:
        low, the bound; delta; confidence; canaries (m), guesses (r) and correct (v); most, the
        bound if all of them were correct.
    """
    order, error = np.argsort(scores, kind="stable"), (1 - CONFIDENCE) / len(GUESSED)
    found = []
    for share in GUESSED:
        half = max(1, int(share * len(scores) / 2))
        correct = int(joined[order[-half:]].sum() + (~joined[order[:half]]).sum())
        counts = {"canaries": len(scores), "guesses": 2 * half, "correct": correct}
        bounds = (
            one_run_epsilon(len(scores), 2 * half, each, delta, error)
            for each in (correct, 2 * half)
        )
        found.append(
            {
                **dict(zip(("low", "most"), bounds, strict=True)),
                "delta": delta,
                "confidence": CONFIDENCE,
                **counts,
            }
        )
    return {**max(found, key=lambda each: each["low"]), "most": max(each["most"] for each in found)}
