"""Does a framework differ from FedAvg by more than chance?  Paired by seed, corrected for the number of questions asked."""

import numpy as np
import pandas as pd
from scipy import stats

from feddep.reporting.frames import records

REFERENCE = "fedavg"
MIN_SEEDS = 3
"""Fewer pairs leave at most one degree of freedom, and a test that says nothing."""
COLUMNS = [
    "dataset",
    "clients",
    "framework",
    "setting",
    "reference",
    "seeds",
    "mean_difference",
    "std_difference",
    "low",
    "high",
    "p",
    "p_holm",
]


def against_reference(runs: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Compare each framework with FedAvg on the same partition, split and seed.

    Both runs of a pair share everything that the seed decides, so the test is the paired t-test on the differences.
    A framework that sees the whole graph is compared with FedAvg at each number of clients.
    Seeds redraw the split and the partition of one and the same graph: the differences are not fully independent, and the
    intervals are somewhat too narrow for a statement about other graphs.

    Args:
        runs: one row a run, as :func:`feddep.reporting.runs.table` gives them.
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it; says the order of rows.

    Returns:
        The columns :data:`COLUMNS`; differences are framework − FedAvg in test accuracy at the round best on validation.
        low, high: 95 % confidence interval of the mean difference; p: two-sided; p_holm: after Holm's correction over all
        tests of the setting's table.  All four are NaN with fewer than :data:`MIN_SEEDS` pairs or if all differences are equal.
    """
    rows = []
    for row in records(summary[summary["framework"] != REFERENCE]):
        here = runs[(runs["setting"] == row["setting"]) & (runs["dataset"] == row["dataset"])]
        ours = here[here["framework"] == row["framework"]]
        for clients, reference in here[here["framework"] == REFERENCE].groupby("clients"):
            if row["clients"] not in (None, clients):
                continue
            same = ours if row["clients"] is None else ours[ours["clients"] == clients]
            pairs = same.merge(reference, on="seed", suffixes=("", "_reference"))
            identity = {**{key: row[key] for key in ("dataset", "framework", "setting")}, "clients": clients}
            difference = (pairs["best"] - pairs["best_reference"]).to_numpy()
            rows.append({**identity, "reference": REFERENCE, **paired_t_test(difference)})
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"clients": "Int64"})
    table["p_holm"] = table.groupby("setting")["p"].transform(lambda p: holm(p.to_numpy(dtype=float)))
    return table


def paired_t_test(difference: np.ndarray) -> dict[str, float]:
    """Mean, sample standard deviation, 95 % t-interval and p of paired differences.

    Returns:
        seeds, mean_difference, std_difference, low, high and p; the last three are NaN with fewer than :data:`MIN_SEEDS`
        differences, or if all are equal.
    """
    n = len(difference)
    spread = float(np.std(difference, ddof=1)) if n > 1 else np.nan
    result = {"seeds": n, "mean_difference": float(difference.mean()), "std_difference": spread}
    if n < MIN_SEEDS or spread < 1e-12:
        return {**result, "low": np.nan, "high": np.nan, "p": np.nan}
    test = stats.ttest_1samp(difference, 0.0)
    interval = test.confidence_interval(0.95)
    return {**result, "low": float(interval.low), "high": float(interval.high), "p": float(test.pvalue)}


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjusted p-values; NaN entries are no tests and stay NaN.

    The k-th smallest of m p-values becomes max over j ≤ k of min(1, (m − j + 1) p_(j)).
    """
    adjusted = np.full(len(p), np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return adjusted
