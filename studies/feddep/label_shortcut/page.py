"""The page: two tables a dataset, a line a method and number of clients."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import method_title, panel_title
from studies import measuring

_CELL = ["setting", "dataset", "method", "clients", "reader", "input", "nodes"]
_PROTOTYPE = {
    "prototype: train": ("prototype", "embedding", "train"),
    "val": ("prototype", "embedding", "val"),
    "test": ("prototype", "embedding", "test"),
    "of halves: seen": ("halves", "seen", "train"),
    "unseen": ("halves", "unseen", "train"),
    "generated: train": ("prototype", "generated", "train"),
    "generated: val": ("prototype", "generated", "val"),
}
_CLASSIFIER = {
    f"F, {part}: {source}": ("classifier", source, part)
    for part in ("train", "val")
    for source in ("generated", "zero", "permuted")
}
"""The columns of the page: reader, input and nodes."""


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table and the text."""
    summary = summarise(tables["label_shortcut"])
    sections = md.sections(
        summary, lambda block: f"{_table(block, _PROTOTYPE)}\n{_table(block, _CLASSIFIER)}"
    )
    text = measuring.text("label_shortcut", tables=sections)
    return {"table.csv": summary, "page.md": text, "figure": figure(summary)}


def figure(summary: pd.DataFrame) -> Figure:
    """Accuracy of the classifier with and without generated neighbours: a panel a place, a row the
    nodes and what stands for z̄, a colour a method.
    """
    inputs = {
        "generated": "generated neighbours",
        "zero": "none",
        "permuted": "those of other nodes",
    }
    nodes = {"train": "training nodes", "val": "validation nodes"}
    rows = summary[(summary["reader"] == "classifier") & summary["nodes"].isin(list(nodes))]
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records(rows):
        title = f"{panel_title(summary, row['setting'], row['dataset'])}, M={row['clients']}"
        line = drawn.setdefault(title, {}).setdefault(
            f"{nodes[row['nodes']]}, {inputs[row['input']]}", {}
        )
        point = figures.spread(row["accuracy_mean"], row["accuracy_std"])
        line[method_title(row["method"])] = point | {"method": row["method"]}
    train = rows[rows["nodes"] == "train"].pivot(
        index=_CELL[:4], columns="input", values="accuracy_mean"
    )
    lost = (train["generated"] - train["permuted"]).max()
    title = (
        f"With the neighbours of other nodes a classifier loses up to {lost:.2f} on training nodes"
    )
    title += "\nLabels of training nodes that generated neighbours tell"
    return figures.forests(
        title, drawn, "accuracy of the classifier, mean and standard deviation", rule=None
    )


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a setting, dataset, method, number of clients, reader, input and choice of nodes, in
    the papers' order.

    Returns:
        seeds; accuracy_mean and accuracy_std over seeds, NaN where there is no node.
    """
    accuracy = rows["correct"] / rows["count"].where(rows["count"] > 0)
    groups = rows.assign(accuracy=accuracy).groupby(_CELL, sort=False)
    summary = groups.agg(
        seeds=("seed", "size"), accuracy_mean=("accuracy", "mean"), accuracy_std=("accuracy", "std")
    )
    return in_paper_order(summary.reset_index(), ["dataset"])


def _table(block: pd.DataFrame, columns: Mapping[str, tuple[str, str, str]]) -> str:
    lines = []
    for (clients, method), rows in block.groupby(["clients", "method"], sort=False):
        of = {(row["reader"], row["input"], row["nodes"]): row for row in records(rows)}
        cells = [
            md.plus_minus(of[name]["accuracy_mean"], of[name]["accuracy_std"])
            for name in columns.values()
        ]
        lines.append([str(clients), method_title(str(method)), *cells])
    return md.table(["M", "", *columns], lines)
