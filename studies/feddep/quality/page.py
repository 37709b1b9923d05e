"""The page: DGen and guesses, a table a dataset, a line a method and number of clients."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import method_title, panel_title, sort_methods
from studies import measuring

_CELL = ["setting", "dataset", "method", "clients", "hidden", "guess"]
_EXPLAINED = {"DGen": "DGen", "zero": "zero", "own prototype": "own", "least loss": "least loss"}
"""The predictions on the page, and what they are called there."""
_COUNTS = {"DGen": "DGen", "mean prototype": "mean", "own prototype": "degree"}
"""The predictions of numbers on the page, likewise."""


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table and the text."""
    summary = summarise(tables["quality"])
    sections = md.sections(summary[summary["hidden"] == "anew"], _block)
    text = measuring.text("quality", tables=sections)
    return {"table.csv": summary, "page.md": text, "figure": figure(summary)}


def figure(summary: pd.DataFrame) -> Figure:
    """What generators and two guesses explain of hidden nodes: a panel a place, a row a method."""
    guesses = {
        "DGen": "the generator",
        "zero": "nothing generated",
        "own prototype": "the node's own prototype",
    }
    rows = summary[(summary["hidden"] == "anew") & summary["guess"].isin(list(guesses))]
    names = {name: method_title(name) for name in sort_methods(rows["method"])}
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records(rows):
        title = f"{panel_title(summary, row['setting'], row['dataset'])}, M={row['clients']}"
        panel = drawn.setdefault(title, {name: {} for name in names.values()})
        point = figures.spread(row["explained_mean"], row["explained_std"])
        panel[names[row["method"]]][guesses[row["guess"]]] = point
    best, own = (
        rows.loc[rows["guess"] == guess, "explained_mean"].max()
        for guess in ("DGen", "own prototype")
    )
    title = f"No generator explains more than {best:.2f}; a node's own prototype up to {own:.2f}"
    title += "\nMean prototypes of hidden neighbours; the client's mean explains 0"
    return figures.forests(title, drawn, "share explained, mean and standard deviation")


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a setting, dataset, method, number of clients, choice of hidden nodes and prediction.

    Returns:
        seeds; explained_mean, explained_std; explained_filled, explained_empty; filled; generated;
        silent, the share of clients with nothing generated; count_error, count_correlation.  First
        the mean over clients of each seed, without those that have none, then over seeds.  Datasets
        in the papers' order.
    """
    rows = rows.assign(silent=(rows["generated"] == 0).astype(float))
    values = [
        "explained_filled",
        "explained_empty",
        "filled",
        "generated",
        "silent",
        "count_error",
        "count_correlation",
    ]
    seeds = rows.groupby([*_CELL, "seed"], sort=False)[["explained", *values]].mean().reset_index()
    summary = seeds.groupby(_CELL, sort=False).agg(
        seeds=("seed", "size"),
        explained_mean=("explained", "mean"),
        explained_std=("explained", "std"),
        **{value: (value, "mean") for value in values},
    )
    return in_paper_order(summary.reset_index(), ["dataset"])


def _block(block: pd.DataFrame) -> str:
    header = [
        "M",
        "",
        "explained: DGen",
        "filled",
        "empty",
        *(f"explained: {title}" for title in [*_EXPLAINED.values()][1:]),
    ]
    header += [
        "generated",
        "silent",
        *(f"count: {title}" for title in _COUNTS.values()),
        "correlation: DGen",
        "degree",
    ]
    lines = []
    for (clients, method), rows in block.groupby(["clients", "method"], sort=False):
        of = {row["guess"]: row for row in records(rows)}
        dgen, *explained = [
            md.plus_minus(of[name]["explained_mean"], of[name]["explained_std"])
            for name in _EXPLAINED
        ]
        parts = [md.number(of["DGen"][f"explained_{part}"], ".4f") for part in ("filled", "empty")]
        shares = [f"{of['DGen'][share]:.1%}" for share in ("generated", "silent")]
        counts = [f"{of[name]['count_error']:.3f}" for name in _COUNTS]
        correlations = [
            md.number(of[name]["count_correlation"], ".3f") for name in ("DGen", "own prototype")
        ]
        lines.append(
            [
                str(clients),
                method_title(str(method)),
                dgen,
                *parts,
                *explained,
                *shares,
                *counts,
                *correlations,
            ]
        )
    return md.table(header, lines)
