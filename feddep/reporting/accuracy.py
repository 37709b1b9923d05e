"""The main table: accuracy over seeds, both ways to choose the round, beside the published numbers."""

import pandas as pd

from feddep.reporting import published
from feddep.reporting.assumptions import assumptions
from feddep.reporting.frames import in_paper_order

COLUMNS = [
    "dataset",
    "clients",
    "framework",
    "assumes",
    "setting",
    "seeds",
    "mean",
    "std",
    "last_mean",
    "last_std",
    "validation_mean",
    "client_std",
    *(f"paper_{paper}_{statistic}" for paper in published.PAPERS for statistic in ("mean", "std")),
    "rounds",
    "best_round_mean",
    "bytes",
]


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Summarise runs over seeds, one row a setting, dataset, framework and number of clients.

    Args:
        runs: as :func:`feddep.reporting.runs.table` gives them.

    Returns:
        The columns :data:`COLUMNS`, rows in the papers' order:
        assumes: what the framework assumes beyond FedAvg, joined by semicolons;
        mean, std: test accuracy at the round best on validation, and its sample standard deviation over seeds (n − 1 in the
        denominator; NaN for a single seed); last_mean, last_std: the same after the last round;
        client_std: sample standard deviation over all clients' own models and seeds (NaN where clients share one model);
        paper_*: the papers' Table 2 (NaN where it has no such number);
        bytes: mean over seeds of all bytes that crossed a client's border.
    """
    keys = ["setting", "dataset", "framework", "clients"]
    rows = [
        {**dict(zip(keys, key, strict=True)), **_over_seeds(group)} for key, group in runs.groupby(keys, sort=False, dropna=False)
    ]
    summary = pd.DataFrame(rows).astype({"clients": "Int64"})
    summary["assumes"] = ["; ".join(assumptions(name)) for name in summary["framework"]]
    for paper in published.PAPERS:
        numbers = published.accuracy()
        numbers = numbers[numbers["paper"] == paper].drop(columns="paper")
        names = {"mean": f"paper_{paper}_mean", "std": f"paper_{paper}_std"}
        summary = summary.merge(numbers.rename(columns=names), how="left", on=["dataset", "framework", "clients"])
    return in_paper_order(summary)[COLUMNS]


def _over_seeds(group: pd.DataFrame) -> dict[str, float]:
    clients = pd.Series([accuracy for run in group["client_accuracies"] for accuracy in run], dtype=float)
    return {
        "seeds": len(group),
        "mean": group["best"].mean(),
        "std": group["best"].std(ddof=1),
        "last_mean": group["last"].mean(),
        "last_std": group["last"].std(ddof=1),
        "validation_mean": group["validation"].mean(),
        "client_std": clients.std(ddof=1),
        "rounds": int(group["rounds"].max()),
        "best_round_mean": group["best_round"].mean(),
        "bytes": round(group["bytes"].mean()),
    }
