"""The page: a line a graph and number of training nodes, means over the seeds."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title
from studies import measuring
from studies.fedsage.generalisation.measure import SIGMA

_SHOWN = {
    "distinct": "distinct",
    "norm": "yᵀΘ⁻¹y / n",
    "bound": "bound",
    "term": "its first term",
    "permuted": "labels permuted",
    "loss": "loss",
    "constant": "loss of f = 0",
    "accuracy": "accuracy",
}


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table and the text."""
    rows = tables["generalisation"]
    groups = rows.groupby(["dataset", "nodes"], sort=False)
    means = groups[[*_SHOWN, "gnn_train", "gnn_test"]].mean()
    summary = means.assign(seeds=groups.size()).reset_index()
    lines = [
        [dataset_title(row["dataset"]), str(row["nodes"]), *(f"{row[name]:.3f}" for name in _SHOWN)]
        for row in records(summary)
    ]
    table = md.table(["", "n", *_SHOWN.values()], lines)
    gnn = records(summary.drop_duplicates("dataset"))
    text = measuring.text("generalisation", table=table, gnn=gnn, sigma=SIGMA)
    return {"table.csv": summary, "page.md": text, "figure": figure(summary)}


def figure(summary: pd.DataFrame) -> Figure:
    """The bound and the loss that it bounds over the number of training nodes, a panel a graph."""
    shown = {
        "bound": "bound",
        "term": "its first term",
        "permuted": "first term, labels permuted",
        "loss": "loss",
    }
    panels: dict[str, list[dict[str, Any]]] = {}
    for row in records(summary):
        panels.setdefault(dataset_title(row["dataset"]), []).extend(
            {"nodes": row["nodes"], "name": name, "mean": row[column], "std": None}
            for column, name in shown.items()
        )
    last = summary.iloc[-1]
    title = f"With {last['nodes']} training nodes the bound is {last['bound']:.2f}, and the loss "
    return figures.lines(
        f"{title}{last['loss']:.2f}\nFedSage's Theorem 6.2, whose bound is to fall with more nodes",
        panels,
        lambda row: row["nodes"],
        lambda row: row["name"],
        labels=("number of training nodes n", "loss or bound"),
    )
