"""Kind ``recovery``: what do missing neighbours cost, where, and how much of it does each method
recover?

A cell is a dataset, with its partition and share of labels, and a number of clients.  It wants runs
of ``fedavg``, of the oracle, FedAvg whose clients know the true neighbours across their borders,
and of the methods to compare.  Where there are several settings, such as encoders, each method has
that of its own which does best on validation nodes.
"""

from itertools import product
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing, figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import (
    beside_clients,
    client_numbers,
    in_paper_order,
    of_place,
    records,
)
from feddep.reporting.labels import (
    assumptions,
    in_words,
    method_title,
    place_title,
    sort_datasets,
    sort_methods,
)
from feddep.reporting.load import Study
from feddep.reporting.statistics import BOUND, FLAWS, REFERENCE
from feddep.utils.errors import DataError

SHOWS = f"""\
What missing neighbours cost, and what of it each method recovers. *Headroom*: accuracy
of the oracle, FedAvg whose clients know their true neighbours across the borders, less FedAvg's.
*Gain*: a method's accuracy less FedAvg's. *Share*: mean gain over mean headroom, where that is at
least 0.02 and no run stalled that it rests on; it may be negative, or above 1. Test nodes are
classified in two ways: *global*, on the global graph, and *local*, by their owners, each on its
own, possibly mended, subgraph; a method without clients has one accuracy for both. Of several
settings, such as encoders, each method has for each dataset, number of clients and way of
classification the one with the best mean accuracy of validation nodes that are classified likewise.
The round is always the one that is best on the clients' validation nodes. ±: sample standard
deviation over seeds.
{statistics.HOW_JUDGED}
"""
EVALUATIONS = {"global": "global graph", "local": "local subgraphs"}
_MEASURES = {"global": ("test", "global_validation"), "local": ("local_before", "validation")}
"""Of each evaluation the accuracies of test nodes and of validation nodes, columns of a study's
runs.
"""
LEAST_HEADROOM = 0.02
"""A share of less would be mostly noise."""
_MOST_COLUMNS = 5
"""Methods that a map can have as its columns."""
_COLUMNS = [
    "method",
    "assumes",
    "setting",
    "mean",
    "std",
    "seeds",
    "gain",
    "low",
    "high",
    "p",
    *statistics.JUDGED,
    "share",
    *FLAWS,
]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``cells``: a row an evaluation and cell; ``table``: one for each method in it; ``summary``:
    an evaluation and method.

    Returns:
        In ``cells``: for FedAvg and the oracle the chosen setting, mean and std of test accuracy,
        and unfinished and stalled, shares of such runs, such as ``oracle_mean``; of the headroom
        seeds, mean, low, high and these, such as ``headroom_low``. In ``table``: the same of a
        method, with its gain, see :func:`feddep.reporting.statistics.compare`, and share, empty
        where the mean headroom is below :data:`LEAST_HEADROOM`. In ``summary``: cells that have a
        share; mean_share, least_share and largest_share over these; better: in how many of
        them it is better than FedAvg; largest_loss: the least mean gain in any cell.

    Raises:
        DataError: if a run has not measured what is needed, or no cell has runs of FedAvg and the
            oracle with a seed in common.
    """
    runs, options = _measured(study), study.columns("dataset")
    cells: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for evaluation, dataset, m in product(
        EVALUATIONS, sort_datasets(runs["dataset"]), client_numbers(runs)
    ):
        here = beside_clients(of_place(runs, evaluation, dataset), m)
        chosen = {str(method): _chosen(of) for method, of in here.groupby("method", sort=False)}
        if m is None or REFERENCE not in chosen:
            continue
        reference, bound = chosen.pop(REFERENCE), chosen.pop(BOUND, here.iloc[:0])
        cell = {"evaluation": evaluation, "dataset": dataset, **here.iloc[0][options], "clients": m}
        headroom = statistics.difference(statistics.pairs(bound, reference), study.margin)
        headroom["mean"] = headroom["mean_difference"]
        parts = {part: headroom[part] for part in ("seeds", "mean", "low", "high", *FLAWS)}
        levels = {"fedavg": _level(reference), "oracle": _level(bound), "headroom": parts}
        cells.append(
            cell
            | {f"{name}_{part}": value for name, of in levels.items() for part, value in of.items()}
        )
        for method in sort_methods(chosen):
            test = statistics.difference(statistics.pairs(chosen[method], reference), study.margin)
            gain = test["mean_difference"]
            stalled = max(headroom["stalled"], test["stalled"]) > 0
            share = (
                np.nan if stalled or headroom["mean"] < LEAST_HEADROOM else gain / headroom["mean"]
            )
            names = {"method": method, "assumes": assumptions(method)}
            rows.append(
                {**cell, **names, **_level(chosen[method]), **test, "gain": gain, "share": share}
            )
    if not any(cell["headroom_seeds"] for cell in cells):
        raise DataError(
            f"no dataset, number of clients and seed of the study {study.name} has both "
            f"{REFERENCE} and {BOUND}"
        )
    columns = ["evaluation", "dataset", *options, "clients", *_COLUMNS]
    table = statistics.judged(pd.DataFrame(rows)) if rows else pd.DataFrame()
    table = table.reindex(columns=columns)
    return {"cells": pd.DataFrame(cells), "table": table, "summary": _summary(table)}


def _measured(study: Study) -> pd.DataFrame:
    """The runs of each evaluation: in ``setting`` the evaluation, in ``spelled`` the setting, in
    ``test`` the test accuracy.
    """
    runs = study.runs
    whole = runs[
        "clients"
    ].isna()  # all its nodes are on one graph, whichever way they are classified
    runs = runs.assign(
        local_before=runs["local_before"].mask(whole, runs["test"]),
        global_validation=runs["global_validation"].mask(whole, runs["validation"]),
    )
    for measure in ("local_before", "global_validation"):
        if (missing := runs[measure].isna()).any():
            first = runs[missing].iloc[0]
            run = f"{first['method']} on {first['dataset']} with seed {first['seed']}"
            raise DataError(
                f"studies.{study.name} needs {measure} of every run, and {run} has not measured it"
            )
    return pd.concat(
        runs.assign(
            spelled=runs["setting"], setting=evaluation, test=runs[test], score=runs[validation]
        )
        for evaluation, (test, validation) in _MEASURES.items()
    )


def _chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of a method in a cell with the setting that validation nodes choose, the first of
    equals.
    """
    return runs[runs["spelled"] == runs.groupby("spelled", sort=False)["score"].mean().idxmax()]


def _level(runs: pd.DataFrame) -> dict[str, Any]:
    flaws = {name: runs[name].astype(float).mean() for name in FLAWS}
    return {
        "setting": next(iter(runs["spelled"]), None),
        "mean": runs["test"].mean(),
        "std": runs["test"].std(),
        **flaws,
    }


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    better = (table["verdict"] == "better") & table["share"].notna()
    table = table.assign(better=better, loss=table["gain"].where(table["gain"] < 0))
    summary = table.groupby(["evaluation", "method", "assumes"], sort=False, as_index=False).agg(
        cells=("share", "count"),
        mean_share=("share", "mean"),
        least_share=("share", "min"),
        largest_share=("share", "max"),
        better=("better", "sum"),
        largest_loss=("loss", "min"),
    )
    return in_paper_order(summary, ["evaluation", "method"]) if len(summary) else summary


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section an evaluation: the methods over all cells; then, a line a cell, the headroom, and
    the methods' gains.
    """
    several = study.runs["setting"].nunique() > 1
    settings = {name: [f"{name}setting"] if several else [] for name in ("fedavg_", "oracle_", "")}
    overall = [
        "method",
        "assumes",
        "cells",
        "mean_share",
        "least_share",
        "largest_share",
        "better",
        "largest_loss",
    ]
    levels = [
        "dataset",
        "clients",
        "fedavg_mean",
        *settings["fedavg_"],
        "oracle_mean",
        *settings["oracle_"],
        "headroom_mean",
    ]
    gains = ["dataset", "clients", "method", "mean", *settings[""], "gain", "share", "verdict"]
    parts = []
    for evaluation, title in EVALUATIONS.items():
        summary, cells, table = (
            tables[name][tables[name]["evaluation"] == evaluation]
            for name in ("summary", "cells", "table")
        )
        parts += [
            f"## {title.capitalize()}",
            md.shown(summary, overall, []) if len(summary) else "",
        ]
        parts += ["### Missing neighbours", md.shown(cells, levels, [])]
        parts += (
            ["### Gain over FedAvg, and share of the headroom", md.shown(table, gains, [])]
            if len(table)
            else []
        )
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A map of the headroom, in percentage points, and one of the share of it that methods recover,
    of those that have one in half of the cells with a share.

    A row a cell, that with the largest headroom first; with many methods these are the rows.
    """
    cells, table = tables["cells"], tables["table"].dropna(subset="share")
    headroom = 100 * _map(cells, "headroom_mean", "evaluation")
    headroom = headroom[list(EVALUATIONS)].sort_values("local", ascending=False, kind="stable")
    share = _map(table, "share", ["method", "evaluation"])
    share = share.loc[:, 2 * share.count() >= len(share)].reindex(headroom.index)
    most = headroom.to_numpy().max()
    title = f"Missing neighbours cost up to {most:.1f} percentage points"
    maps: dict[str, tuple[Any, ...]] = {
        "cost, in percentage points": (
            headroom.rename(columns=EVALUATIONS),
            "Blues",
            (0.0, max(100 * LEAST_HEADROOM, most)),
            "z.1f",
        )
    }
    if share.size:
        on = {"global": ", global", "local": ""}
        share.columns = [
            in_words(method_title(of[0])) + on[of[1]] for of in share.columns.to_list()
        ]
        best = share.mean().nlargest(1)
        title += f"; {best.index[0]} wins back {best.iloc[0]:.0%}"
        maps[f"share won back, of a cost of {100 * LEAST_HEADROOM:g} or more"] = (
            share,
            "RdBu",
            (-1.0, 1.0),
            "z.2f",
        )
    across = share.shape[1] > _MOST_COLUMNS
    if across:
        maps = {name: (of.dropna(how="all").T, *look) for name, (of, *look) in maps.items()}
    sizes = [values.shape[1 - across] for values, *_ in maps.values()]
    with drawing.style():
        if across:
            high = sum(0.15 * size + 1.6 for size in sizes)
            drawn, axes = drawing.panels(len(maps), 1, high, height_ratios=sizes)
        else:
            high = 1.6 + 0.15 * len(headroom)
            drawn, axes = drawing.panels(1, len(maps), high, width_ratios=sizes)
        for ax, (name, of) in zip(axes.flat, maps.items(), strict=True):
            figures.heat_map(ax, *of)
            ax.set_title(fill(name, 24 if across else 14 * of[0].shape[1]), loc="left")
            ax.tick_params(labelleft=across or ax is axes.flat[0])
        drawing.head(drawn, f"{title}\n{study.title}")
    return drawn


def _map(table: pd.DataFrame, of: str, across: str | list[str]) -> pd.DataFrame:
    """A row a cell, a column for each value of ``across``."""
    places = [fill(place_title(row["dataset"], row["clients"]), 54) for row in records(table)]
    found = table.assign(place=places).pivot_table(
        of, "place", across, aggfunc="first", dropna=False, sort=False
    )
    return found.astype(float)
