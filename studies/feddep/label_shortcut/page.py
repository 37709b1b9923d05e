"""The page: two tables a dataset, a line a method and number of clients."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import method_title
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
    return {"table.csv": summary, "page.md": measuring.text("label_shortcut", tables=sections)}


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
