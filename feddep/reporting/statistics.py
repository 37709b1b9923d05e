"""Statistics over seeds: means, and differences from a reference, paired by seed.  All tables take
them from here.

Seeds draw splits of one and the same graph, so that differences on two of them are not independent.
Tests and intervals take Nadeau and Bengio's correction for this ("Inference for the generalization
error", Machine Learning 52, 2003): the variance of the mean of J differences is their sample
variance times 1/J + n_test/n_train.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import gammaln

REFERENCE = "fedavg"
BOUND = "fedavg_oracle"
"""FedAvg whose clients know their true neighbours across the borders, an oracle."""
SIGNIFICANT = 0.05
MIN_SEEDS = 3
"""Fewer pairs leave at most one degree of freedom, and a test that says nothing."""
PLACE = ["setting", "dataset", "clients"]
FLAWS = ("undertrained", "stalled")
"""Flaws of a run (:func:`feddep.reporting.load.tidy`); tables have the shares of such
runs.
"""
LOCAL = ("local_before", "local_after")
MEANS = ("validation", *LOCAL, "best_round", *FLAWS, "bytes", "seconds", "seconds_before")
"""Columns whose mean over seeds a summary has, beside test accuracy."""


def summarise(runs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Summarise runs (:func:`feddep.reporting.load.tidy`) over seeds, one row for each value of the
    keys, in their order.

    Returns:
        The keys; seeds; mean, std: test accuracy at the round best on validation, and its sample
        standard deviation; last_mean, last_std: the same after the last round; of each of
        :data:`MEANS` the mean, such as validation_mean, but :data:`FLAWS`, bytes and seconds under
        their own names; of local accuracies also the deviation, and NaN where a seed has none;
        client_std: sample standard deviation over all clients' own models and seeds;
        trained_rounds, the most of any run.
    """
    groups = runs.groupby(keys, sort=False, dropna=False)
    summary = groups.agg(
        seeds=("seed", "size"),
        mean=("test", "mean"),
        std=("test", "std"),
        last_mean=("test_last", "mean"),
        last_std=("test_last", "std"),
        **{f"{name}_mean": (name, "mean") for name in MEANS},
        **{f"{name}_std": (name, "std") for name in LOCAL},
        client_std=("client_accuracies", lambda lists: pd.Series(lists.sum(), dtype=float).std()),
        trained_rounds=("trained_rounds", "max"),
    )
    for name in LOCAL:
        columns = [f"{name}_mean", f"{name}_std"]
        summary[columns] = summary[columns].where(groups[name].count() == summary["seeds"])
    own_name = {f"{name}_mean": name for name in (*FLAWS, "bytes", "seconds", "seconds_before")}
    return (
        summary.rename(columns=own_name)
        .reset_index()
        .assign(bytes=lambda table: table["bytes"].round().astype("int64"))
    )


def pairs(runs: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of methods less that of another, wherever both have a run of the same setting,
    dataset, clients and seed.

    Both runs of a pair share everything that the seed decides: split, partition and initial
    weights.  A method that sees the whole graph is paired with the other at each number of clients.

    Returns:
        setting, dataset, clients, method, seed, difference; undertrained, which share of the pair
        is; stalled, whether either is.
    """
    columns = [*PLACE, "seed", "test", *FLAWS]
    both = runs[["method", *columns]].merge(
        reference[columns], on=["setting", "dataset", "seed"], suffixes=("", "_of")
    )
    here, there = both["clients"], both["clients_of"]
    both = both[here.isna() | there.isna() | (here == there).fillna(False)]
    return both[["setting", "dataset", "method", "seed"]].assign(
        clients=both["clients"].fillna(both["clients_of"]),
        difference=both["test"] - both["test_of"],
        undertrained=both[["undertrained", "undertrained_of"]].mean(axis="columns"),
        stalled=both[["stalled", "stalled_of"]].any(axis="columns"),
    )


def compare(runs: pd.DataFrame, reference: pd.DataFrame, ratio: float) -> pd.DataFrame:
    """Differences of methods from a reference, paired by seed: a row a method, setting, dataset and
    number of clients.

    Returns:
        method and :data:`PLACE`; what :func:`difference` gives of them; p_holm, after Holm's
        correction over all rows.
    """
    keys = ["method", *PLACE]
    rows = [
        {**dict(zip(keys, cast(tuple, key), strict=True)), **difference(found, ratio)}
        for key, found in pairs(runs, reference).groupby(keys, sort=False, dropna=False)
    ]
    table = pd.DataFrame(rows, columns=[*keys, *difference(pairs(runs[:0], reference), ratio)])
    return table.assign(p_holm=holm(table["p"])).astype({"clients": "Int64"})


def difference(found: pd.DataFrame, ratio: float) -> dict[str, float]:
    """:func:`interval` of the differences of :func:`pairs`, and :data:`FLAWS`; no p where most
    pairs have a run that stalled.
    """
    shares = {flaw: float(found[flaw].astype(float).mean()) for flaw in FLAWS}
    return {
        **interval(found["difference"], ratio),
        **({"p": math.nan} if shares["stalled"] > 0.5 else {}),
        **shares,
    }


def resplit_ratio(split: Mapping[str, float]) -> float:
    """n_test/n_train of random splits; fewer labels to train on leave it as it is, as train and
    test nodes are drawn likewise.
    """
    return split["test"] / split["train"]


def interval(differences: Any, ratio: float) -> dict[str, float]:
    """Mean and 95 % t-interval of paired differences, with the paired t-test and effect sizes.

    Args:
        differences: one a seed.
        ratio: n_test/n_train of Nadeau and Bengio's correction; 0 for independent observations.

    Returns:
        seeds, their number; mean_difference; std_difference, the sample standard deviation; low and
        high, the ends of the interval; p, two-sided; d_z, the mean over the sample standard
        deviation (Cohen 1988), and g_z, the same without its bias, d_z Γ(ν/2) / (Γ((ν − 1)/2)
        √(ν/2)) for ν = seeds − 1 (Hedges 1981).  From low on all are NaN with fewer than
        :data:`MIN_SEEDS`, or if all differences are equal.
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    spread = float(np.std(values, ddof=1)) if n > 1 else math.nan
    found = {
        "seeds": n,
        "mean_difference": float(values.mean()) if n else math.nan,
        "std_difference": spread,
    }
    if n < MIN_SEEDS or spread < 1e-12:
        return found | dict.fromkeys(("low", "high", "p", "d_z", "g_z"), math.nan)
    mean, error = found["mean_difference"], spread * math.sqrt(1 / n + ratio)
    reach, p = (
        error * float(stats.t.ppf(0.975, n - 1)),
        2 * float(stats.t.sf(abs(mean) / error, n - 1)),
    )
    d_z, half = mean / spread, (n - 1) / 2
    g_z = d_z * math.exp(gammaln(half) - gammaln(half - 0.5)) / math.sqrt(half)
    return found | {"low": mean - reach, "high": mean + reach, "p": p, "d_z": d_z, "g_z": g_z}


def critical_difference(k: int, n: int) -> float:
    """Nemenyi's critical difference of k methods' average ranks over n graphs at 5 %, q √(k (k + 1)
    / 6n) with q of the studentised range over √2 (Demšar 2006).
    """
    q = float(stats.studentized_range.ppf(1 - SIGNIFICANT, k, math.inf))
    return q * math.sqrt(k * (k + 1) / (12 * n))


def average_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Ranks of methods, averaged over graphs, with Nemenyi's test (Demšar, "Statistical comparisons
    of classifiers", JMLR 2006).

    Args:
        table: a row a method and dataset with the mean accuracy, as ``method``, ``dataset`` and
            ``mean``.

    Returns:
        For each of the k methods with a mean on all N graphs, the best first: method; rank, 1 for
        the best on each; graphs, N; critical_difference, by which the ranks of two methods differ
        where they are different at 5 %.
    """
    scores = table.pivot(index="method", columns="dataset", values="mean").dropna()
    k, n = scores.shape
    ranks = scores.rank(ascending=False).mean(axis="columns").sort_values(kind="stable")
    return (
        ranks.rename("rank")
        .reset_index()
        .assign(graphs=n, critical_difference=critical_difference(k, n))
    )


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
