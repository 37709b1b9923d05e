"""Does a method differ from another by more than chance?  Paired by seed, corrected for the number of questions asked."""

import numpy as np
import pandas as pd
from scipy import stats

from feddep.reporting.frames import records

REFERENCE = "fedavg"
MIN_SEEDS = 3
"""Fewer pairs leave at most one degree of freedom, and a test that says nothing."""
PLACE = ["setting", "dataset", "clients"]
COLUMNS = [
    *("dataset", "clients", "method", "setting", "reference"),
    *("seeds", "mean_difference", "std_difference", "low", "high", "p", "p_holm", "undertrained"),
]


def against_reference(runs: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Compare each method with FedAvg on the same partition, split and seed.

    Both runs of a pair share everything that the seed decides, so the test is the paired t-test on the differences.
    A method that sees the whole graph is compared with FedAvg at each number of clients.
    Seeds redraw the split and the partition of one and the same graph: the differences are not fully independent, and the
    intervals are somewhat too narrow for a statement about other graphs.

    Args:
        runs: one row a run, as :func:`feddep.reporting.runs.table` gives them.
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it; says the order of rows.

    Returns:
        The columns :data:`COLUMNS`; differences are method − FedAvg in test accuracy at the round best on validation.
        low, high: 95 % confidence interval of the mean difference; p: two-sided; p_holm: after Holm's correction over all
        tests of the setting's table.  All four are NaN with fewer than :data:`MIN_SEEDS` pairs or if all differences are equal.
        undertrained: share of the runs of these pairs, FedAvg's included (:mod:`feddep.reporting.undertrained`).
    """
    reference = runs[runs["method"] == REFERENCE]
    rows = []
    for row in records(summary[summary["method"] != REFERENCE]):
        ours = runs
        for key in ("setting", "dataset", "method", *(["clients"] if row["clients"] is not None else [])):
            ours = ours[ours[key] == row[key]]
        identity = {**{key: row[key] for key in ("dataset", "method", "setting")}, "reference": REFERENCE}
        for clients, pairs in paired(ours, reference).groupby("clients"):
            test = paired_t_test(pairs["difference"].to_numpy())
            rows.append({**identity, "clients": clients, **test, "undertrained": pairs["undertrained"].mean()})
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"clients": "Int64"})
    table["p_holm"] = table.groupby("setting")["p"].transform(lambda p: holm(p.to_numpy(dtype=float)))
    return table


def paired(ours: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of one method less that of another, wherever both have a run.

    Args:
        ours, reference: setting, dataset, clients, seed, best and undertrained of runs, at most one a setting, dataset, clients
            and seed.

    Returns:
        setting, dataset, clients, seed, difference, and undertrained: which share of the pair is.  A method that sees the
        whole graph is paired with the other at each number of clients.
    """
    shared = ["setting", "dataset", "seed"]
    columns = [*PLACE, "seed", "best", "undertrained"]
    both = ours[columns].merge(reference[columns], on=shared, suffixes=("", "_reference"))
    here, there = both["clients"], both["clients_reference"]
    both = both[here.isna() | there.isna() | (here == there).fillna(False)]
    both = both.assign(
        clients=both["clients"].fillna(both["clients_reference"]),
        difference=both["best"] - both["best_reference"],
        undertrained=both[["undertrained", "undertrained_reference"]].mean(axis="columns"),
    )
    return both[[*PLACE, "seed", "difference", "undertrained"]]


def difference(ours: pd.DataFrame, reference: pd.DataFrame) -> dict[str, float]:
    """:func:`paired_t_test` of the differences that :func:`paired` gives; and undertrained, the share of these runs that are."""
    pairs = paired(ours, reference)
    test = paired_t_test(pairs["difference"].to_numpy(dtype=float))
    return {**test, "undertrained": float(pairs["undertrained"].mean())}


def paired_t_test(difference: np.ndarray) -> dict[str, float]:
    """Mean, sample standard deviation, 95 % t-interval and p of paired differences.

    Returns:
        seeds, mean_difference, std_difference, low, high and p; NaN for all but seeds without any difference, and the last
        three with fewer than :data:`MIN_SEEDS`, or if all are equal.
    """
    n = len(difference)
    spread = float(np.std(difference, ddof=1)) if n > 1 else np.nan
    result = {"seeds": n, "mean_difference": float(difference.mean()) if n else np.nan, "std_difference": spread}
    if n < MIN_SEEDS or spread < 1e-12:
        return {**result, "low": np.nan, "high": np.nan, "p": np.nan}
    test = stats.ttest_1samp(difference, 0.0)
    interval = test.confidence_interval(0.95)
    return {**result, "low": float(interval.low), "high": float(interval.high), "p": float(test.pvalue)}


def wilcoxon(difference: np.ndarray) -> float:
    """p of Wilcoxon's signed-rank test, two-sided; NaN where :func:`paired_t_test` has none."""
    if len(difference) < MIN_SEEDS or np.ptp(difference) < 1e-12:
        return float("nan")
    return float(stats.wilcoxon(difference).pvalue)


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
