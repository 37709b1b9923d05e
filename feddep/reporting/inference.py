"""Inference on paired differences of accuracy: plain functions of arrays.

The differences are one a seed, for the question what holds on this graph, as its random divisions
are independent given the graph; or one a graph, for the question what holds on graphs like these.
"""

import math
from typing import Any

import numpy as np
from scipy.special import gammaln, nctdtrinc, stdtr, stdtrit

LEVEL = 0.05
POWER = 0.8
MIN_PAIRS = 3
"""Fewer pairs leave at most one degree of freedom, and a test that says nothing."""
DRAWS = 50_000


def t_test(differences: Any) -> dict[str, float]:
    """Mean, 95 % t-interval and two-sided t-test of independent differences, with effect sizes.

    Returns:
        mean_difference; std_difference, the sample standard deviation; low and high, the ends of
        the interval; p; d_z, the mean over the sample standard deviation (Cohen 1988), and g_z, the
        same without its bias, d_z Γ(ν/2) / (Γ((ν − 1)/2) √(ν/2)) for ν = n − 1 (Hedges 1981).  From
        low on all are NaN with fewer than :data:`MIN_PAIRS`, or if all differences are equal.
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    spread = float(np.std(values, ddof=1)) if n > 1 else math.nan
    found = {"mean_difference": mean, "std_difference": spread}
    if n < MIN_PAIRS or spread < 1e-12:
        return found | dict.fromkeys(("low", "high", "p", "d_z", "g_z"), math.nan)
    from scipy.stats import ttest_1samp  # slow to import

    test = ttest_1samp(values, 0.0)
    low, high = test.confidence_interval(1 - LEVEL)
    d_z, half = mean / spread, (n - 1) / 2
    g_z = d_z * math.exp(gammaln(half) - gammaln(half - 0.5)) / math.sqrt(half)
    return found | {
        "low": float(low),
        "high": float(high),
        "p": float(test.pvalue),
        "d_z": d_z,
        "g_z": g_z,
    }


def margin_tests(differences: Any, margin: float) -> tuple[float, float]:
    """One-sided t-tests at a margin: p for *the mean is below the margin*, and for *it is above
    minus the margin*.

    The larger of the two is that of the equivalence test TOST (Schuirmann 1987).  Both are NaN with
    fewer than :data:`MIN_PAIRS`; equal differences within the margin have 0, others 1.
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    if n < MIN_PAIRS:
        return math.nan, math.nan
    error = max(float(np.std(values, ddof=1)), 1e-12) / math.sqrt(n)
    below, above = (
        float(stdtr(n - 1, (sign * values.mean() - margin) / error)) for sign in (1, -1)
    )
    return below, above


def wilcoxon(differences: Any) -> float:
    """p of Wilcoxon's two-sided signed-rank test, NaN with fewer than :data:`MIN_PAIRS` or if all
    are zero.
    """
    values = np.asarray(differences, dtype=float)
    if len(values) < MIN_PAIRS or not values.any():
        return math.nan
    from scipy.stats import wilcoxon as test  # slow to import

    return float(test(values).pvalue)


def detectable(spread: float, n: int, tests: int) -> float:
    """The mean difference that a two-sided t-test sees with 80 % power.

    Args:
        spread: standard deviation of the differences.
        n: their number.
        tests: how many tests Holm's correction is over; the level is that of its first step.
    """
    if n < MIN_PAIRS:
        return math.nan
    quantile = stdtrit(n - 1, 1 - LEVEL / (2 * tests))
    return float(nctdtrinc(n - 1, 1 - POWER, quantile) * spread / math.sqrt(n))


def region_probabilities(differences: Any, margin: float) -> tuple[float, float, float]:
    """Posterior probabilities that differences are above the margin, within it, and below minus the
    margin, by the Bayesian signed-rank test.

    Benavoli, Corani, Mangili, Zaffalon and Ruggeri, "A Bayesian Wilcoxon signed-rank test based on
    the Dirichlet process" (ICML 2014).  Weights of the differences, and of one prior difference of
    0 with weight 0.5, are drawn from a Dirichlet distribution; a draw is of the region that has the
    most of the weighted means of two.  NaN with fewer than :data:`MIN_PAIRS`.
    """
    if len(differences) < MIN_PAIRS:
        return math.nan, math.nan, math.nan
    values = np.append(0.0, differences)
    prior = np.append(0.5, np.ones(len(values) - 1))
    weights = np.random.default_rng(0).dirichlet(prior, DRAWS)
    means = (values[:, None] + values[None, :]) / 2
    regions = (means > margin, np.abs(means) <= margin, means < -margin)
    masses = [(weights @ region * weights).sum(axis=1) for region in regions]
    better, equivalent, worse = np.bincount(np.argmax(masses, axis=0), minlength=3) / DRAWS
    return float(better), float(equivalent), float(worse)


def holm(p: Any) -> np.ndarray:
    """Holm's step-down adjusted p-values; NaN entries are no tests and stay NaN.

    The k-th smallest of m p-values becomes max over j ≤ k of min(1, (m − j + 1) p_(j)).
    """
    p = np.asarray(p, dtype=float)
    adjusted, tests = np.full(len(p), np.nan), np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    adjusted[order] = np.maximum.accumulate(
        np.minimum(1.0, np.arange(len(order), 0, -1) * p[order])
    )
    return adjusted


def verdict(mean: float, p: float, p_equivalent: float) -> str:
    """``equivalent`` where the difference is within the margin; else ``better`` or ``worse`` where
    there is one, by its sign; else ``undecided``.
    """
    if p_equivalent < LEVEL:
        return "equivalent"
    if p < LEVEL:
        return "better" if mean > 0 else "worse"
    return "undecided"
