"""Lower bounds on ε, and on δ, from how well runs with and without one edge are told apart.

If a mechanism is (ε, δ)-differentially private, then for every set S of outputs P(S) ≤ e^ε Q(S) + δ, whichever of the two
worlds P and Q belong to.  So every S gives ε ≥ ln((P(S) − δ) / Q(S)) (Kairouz, Oh and Viswanath, 2015; as an audit: Jagielski,
Ullman and Oprea, 2020; Nasr et al., 2021).  S is chosen on one half of the runs, and its two probabilities are bounded on the
other half by Clopper and Pearson's intervals, which hold for any number of runs.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from feddep.audit import AuditError

Counts = int | np.ndarray
Shares = np.ndarray

LEAST_RUNS = 4
"""So many runs of each world are needed at least: two to choose a test on, two to judge it by."""


def clopper_pearson(successes: Counts, trials: int, confidence: float) -> tuple[Shares, Shares]:
    """The interval for a probability that covers it at least with probability ``confidence`` (Clopper and Pearson, 1934)."""
    tail, successes = (1 - confidence) / 2, np.asarray(successes)
    failures = trials - successes
    low = np.where(successes == 0, 0.0, beta.ppf(tail, np.maximum(successes, 1), failures + 1))
    high = np.where(failures == 0, 1.0, beta.ppf(1 - tail, successes + 1, np.maximum(failures, 1)))
    return low, high


@dataclass(frozen=True)
class Bound:
    """What one test S shows of ε for a stated δ.

    Attributes:
        low: lower end of the confidence interval of ln((P(S) − δ) / Q(S)), at least 0: with that confidence ε is no less.
        value: the same with the shares as counted; ∞ where S never happened in the world that should not show it.
        high: upper end; no statement on ε, but on this test.
        delta: δ.
        confidence: probability with which the interval holds.
        likely: share of the runs of the world P in which S happened: the attack's TPR.
        unlikely: share of the runs of the world Q: its FPR.
        least_delta: lower end for the δ that ε = 0 needs, P(S) − Q(S), with the same confidence.
        trials: number of runs of each world that the shares are counted in.
    """

    low: float
    value: float
    high: float
    delta: float
    confidence: float
    likely: float
    unlikely: float
    least_delta: float
    trials: int


@dataclass(frozen=True)
class Tell:
    """S: the statistic is above a threshold, or not above it.

    Attributes:
        threshold: the threshold.
        above: whether S is above it.
        with_edge: whether S is what the world with the edge shows, P, or what the world without shows.
    """

    threshold: float
    above: bool
    with_edge: bool

    def happens(self, statistic: np.ndarray) -> int:
        """In how many runs S happened."""
        return int(((statistic > self.threshold) == self.above).sum())


def lower_bound(present: np.ndarray, absent: np.ndarray, delta: float, confidence: float = 0.95) -> Bound:
    """A lower bound on ε.

    Args:
        present: the statistic in runs with the edge, in an order without meaning, shape (R,).
        absent: the statistic in runs without it, shape (R',).
        delta: δ.
        confidence: of the bound.

    Raises:
        AuditError: if there are fewer than :data:`LEAST_RUNS` runs of a world, or δ is no probability.
    """
    if min(len(present), len(absent)) < LEAST_RUNS:
        raise AuditError(
            f"ε is bounded from {len(present)} runs with and {len(absent)} without an edge; "
            f"at least {LEAST_RUNS} of each are needed"
        )
    if not 0 <= delta < 1:
        raise AuditError(f"δ is {delta}; it must be at least 0 and below 1")
    tell = choose(present[::2], absent[::2], delta, confidence)
    return judge(tell, present[1::2], absent[1::2], delta, confidence)


def choose(present: np.ndarray, absent: np.ndarray, delta: float, confidence: float) -> Tell:
    """The test whose bound on these runs is largest; the middles between two values are the thresholds."""
    values = np.unique(np.concatenate([present, absent]))
    thresholds = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    best, found = (-np.inf, -np.inf), Tell(float(thresholds[0]), True, True)
    counted = [(world, len(world) - np.searchsorted(np.sort(world), thresholds, "right")) for world in (present, absent)]
    for above in (True, False):
        shares = [_shares(count if above else len(world) - count, len(world), confidence) for world, count in counted]
        for with_edge in (True, False):
            (p_low, _), (_, q_high) = shares if with_edge else shares[::-1]
            bounds = _log_ratio(p_low - delta, q_high)
            k = int(np.lexsort((p_low - q_high, bounds))[-1])
            if (quality := (float(bounds[k]), float(p_low[k] - q_high[k]))) > best:
                best, found = quality, Tell(float(thresholds[k]), above, with_edge)
    return found


def judge(tell: Tell, present: np.ndarray, absent: np.ndarray, delta: float, confidence: float) -> Bound:
    """What a test shows that was chosen on other runs."""
    worlds = (present, absent) if tell.with_edge else (absent, present)
    (p, p_low, p_high), (q, q_low, q_high) = (
        (count / len(world), *(float(end) for end in _shares(count, len(world), confidence)))
        for world, count in ((world, tell.happens(world)) for world in worlds)
    )
    return Bound(
        low=max(0.0, float(_log_ratio(p_low - delta, q_high))),
        value=float(_log_ratio(p - delta, q)),
        high=float(_log_ratio(p_high - delta, q_low)),
        delta=delta,
        confidence=confidence,
        likely=p,
        unlikely=q,
        least_delta=max(0.0, p_low - q_high),
        trials=min(len(present), len(absent)),
    )


def _shares(count: Counts, runs: int, confidence: float) -> tuple[Shares, Shares]:
    """The interval of one of the two probabilities: half of the doubt goes to each."""
    return clopper_pearson(count, runs, (1 + confidence) / 2)


def _log_ratio(above: float | np.ndarray, below: float | np.ndarray) -> np.ndarray:
    """ln(above / below); −∞ where nothing is left above, ∞ where something is and nothing below."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(above) <= 0, -math.inf, np.log(np.maximum(above, 0)) - np.log(below))
