"""Kind ``sweep``: accuracy over one or more options, such as a depth or a batch size."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place, records
from feddep.reporting.labels import (
    distinguishing,
    option_title,
    panel_title,
    places,
    value_title,
)
from feddep.reporting.load import KEYS, Study

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is
best on validation nodes. **Bold**: of the values in a column that a method can have, the one that
is best on validation nodes, which is what a user would choose; it need not be the best on test
nodes. *local*, where it was measured: the same test nodes, each classified by its owner on its own,
possibly mended subgraph, before the local steps of the round.
"""
_PAPERS = (
    "Beside ours stands, as printed, a paper's table over the same option or of the same methods."
)


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """The summary over seeds, with

    chosen: whether this is the value (of the options of setting and method) with the best mean
    validation accuracy; the first of equals, and false where there is nothing to choose between;
    paper_PAPER_mean, paper_PAPER_std: what that paper prints, if it has a table over the study's
    only option or, where nothing but the method differs, of the study's methods; NaN where that
    table has no such number.
    """
    summary = study.summary()
    given = [*KEYS, *study.columns("dataset")]  # what a user cannot choose
    groups = summary.groupby(given, sort=False, dropna=False)["validation_mean"]
    summary["chosen"] = summary.index.isin(groups.idxmax()) & (groups.transform("size") > 1)
    return {"table": _beside_papers(study, summary)}


def _beside_papers(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    match list(study.options.items()):
        case [(option, part)]:
            numbers = published.sweep(option, part)
            values = [md.value(row[option]) for row in records(summary)]
        case []:
            numbers = published.of_methods(set(summary["method"])).assign(value=None)
            values = [""] * len(summary)
        case _:
            return summary
    numbers = numbers.assign(
        row=numbers["method"], value=[md.value(row["value"]) for row in records(numbers)]
    )
    beside = summary.assign(row=summary["method"].map(variants.base), value=values)
    on = ["dataset", "clients", "row", "value"]
    return published.beside(beside, numbers, on).drop(columns=["row", "value"])


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a setting and dataset; a line a method, value and number of clients."""
    short = distinguishing(tables["table"]["method"])
    papers = [f"paper_{paper}_mean" for paper in published.papers()]
    table = tables["table"].assign(method=tables["table"]["method"].map(short))
    note = f"{_PAPERS}\n\n" if table.filter(papers).notna().any(axis=None) else ""
    return (
        note
        + md.in_common(short)
        + md.shown(
            table, ["method", *study.options, "clients", "mean", "local_before_mean", *papers]
        )
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a setting, dataset and number of clients: accuracy over the option with the most
    values, with deviations.

    A method without the option is a horizontal line.  Where no option is varied, accuracy is drawn
    over the number of clients.
    """
    table = tables["table"]
    across = max(study.options, key=lambda column: study.runs[column].nunique(), default="clients")
    label = "number of clients M" if across == "clients" else option_title(across)
    others = [option for option in study.options if option != across]
    short = distinguishing(table["method"])
    panels: dict[str, list[dict[str, Any]]] = {}
    for place in places(table):
        here = of_place(table, *place)
        for m in client_numbers(here) if across != "clients" else [None]:
            panel = panel_title(table, *place) + ("" if m is None else f", M={m}")
            panels[panel] = records(here if across == "clients" else beside_clients(here, m))
    alike = [
        "setting",
        "dataset",
        *(["clients"] if across == "clients" else ["clients", "method", *others]),
    ]
    apart = table.dropna(subset=across).groupby(alike, dropna=False)["mean"].agg(np.ptp).max()
    if across == "clients":
        found = f"Methods differ by up to {apart:.3f}"
    elif apart:
        found = f"The choice of {label} moves accuracy by up to {apart:.3f}"
    else:
        found = f"Accuracy differs by up to {np.ptp(table['mean']):.3f}"
    return figures.lines(
        f"{found}\n{study.title}",
        panels,
        lambda row: row[across],
        lambda row: md.line_name({**row, "method": short[row["method"]]}, others),
        labels=(label, "test accuracy"),
        text=lambda value: fill(value_title(md.value(value)), 12, break_long_words=False),
    )
