"""Accuracy over seeds, both ways to choose the round, beside the published numbers."""

from typing import Any

import pandas as pd

from feddep.methods import registry
from feddep.reporting import published
from feddep.reporting.frames import CELL, in_paper_order

COLUMNS = [
    *("dataset", "clients", "method", "assumes", "setting", "seeds"),
    *("mean", "std", "last_mean", "last_std", "validation_mean", "client_std"),
    *(f"paper_{paper}_{statistic}" for paper in published.PAPERS for statistic in ("mean", "std")),
    *("rounds", "best_round_mean", "undertrained", "bytes"),
]


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Summarise runs over seeds, one row a setting, dataset, method and number of clients.

    Args:
        runs: as :func:`feddep.reporting.runs.table` gives them.

    Returns:
        The columns :data:`COLUMNS`, rows in the papers' order:
        assumes: what the method assumes beyond FedAvg, joined by semicolons;
        mean, std: test accuracy at the round best on validation, and its sample standard deviation over seeds (n − 1 in the
        denominator; NaN for a single seed); last_mean, last_std: the same after the last round;
        client_std: sample standard deviation over all clients' own models and seeds (NaN where clients share one model);
        paper_*: the papers' Table 2 (NaN where it has no such number);
        undertrained: share of the runs that are (:mod:`feddep.reporting.undertrained`);
        bytes: mean over seeds of all bytes that crossed a client's border.
    """
    groups = runs.groupby(list(CELL), sort=False, dropna=False)
    rows = [{**dict(zip(CELL, key, strict=True)), **_over_seeds(group)} for key, group in groups]
    summary = pd.DataFrame(rows).astype({"clients": "Int64"})
    summary["assumes"] = ["; ".join(registry.find(name).assumes) for name in summary["method"]]
    numbers = published.accuracy()
    for paper in published.PAPERS:
        theirs = published.renamed(numbers[numbers["paper"] == paper], paper)
        summary = summary.merge(theirs, how="left", on=["dataset", "method", "clients"])
    return in_paper_order(summary)[COLUMNS]


def _over_seeds(group: pd.DataFrame) -> dict[str, Any]:
    clients = pd.Series([accuracy for run in group["client_accuracies"] for accuracy in run], dtype=float)
    return {
        "seeds": len(group),
        "mean": group["best"].mean(),
        "std": group["best"].std(),
        "last_mean": group["last"].mean(),
        "last_std": group["last"].std(),
        "validation_mean": group["validation"].mean(),
        "client_std": clients.std(),
        "rounds": int(group["rounds"].max()),
        "best_round_mean": group["best_round"].mean(),
        "undertrained": group["undertrained"].mean(),
        "bytes": round(group["bytes"].mean()),
    }
