"""Kind ``recovery``: what do missing neighbours cost, where, and how much of it does each method win back?

A cell is a dataset, with its partition and share of labels, and a number of clients.  It wants runs of ``fedavg``, of ``halo``,
FedAvg whose clients know the true neighbours across their borders, and of the methods to compare.  Where there are several
settings, such as encoders, each method has that of its own which does best on validation nodes.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure

from feddep.config import variants
from feddep.methods import registry
from feddep.reporting import comparisons, drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place, records
from feddep.reporting.labels import dataset_title, distinguishing, method_title, place_title, sort_datasets, sort_methods
from feddep.reporting.main_table import SIGNIFICANT
from feddep.reporting.study_data import Study
from feddep.reporting.undertrained import mark
from feddep.utils.errors import DataError

SHOWS = """\
What missing neighbours cost, and what of it each method wins back. *Headroom*: accuracy of halo, FedAvg whose clients know
their true neighbours across the borders, less FedAvg's. *Gain*: a method's accuracy less FedAvg's. *Share*: mean gain over
mean headroom, where that is at least 0.02; it may be negative, or above 1. Test nodes are classified in two ways: on the global
graph, and by their owners, each on its own, possibly mended, subgraph; a method without clients has one accuracy for both. Of
several settings, such as encoders, each method has for each dataset, number of clients and way of classification the one with
the best mean accuracy of validation nodes that are classified likewise. The round is always the one that is best on the clients'
validation nodes. Differences are paired by seed; brackets: 95 % t-interval of the mean; `*`: significant at 5 % after Holm's
correction over all gains, of both ways; intervals and p of the gains are in `table.csv`. ±: sample standard deviation over seeds.
"""
EVALUATIONS = {"global": "global graph", "own": "own subgraphs"}
_MEASURES = {"global": ("best", "global_validation"), "own": ("own", "validation")}
"""Of each evaluation the accuracies of test nodes and of validation nodes, columns of a study's runs."""
REFERENCE, BOUND = "fedavg", "halo"
LEAST_HEADROOM = 0.02
"""A share of less would be mostly noise."""
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
    "p_holm",
    "share",
    "undertrained",
]
_WIDTH = 8.0
_MOST_CELLS = 24
"""Columns of a heat map of shares, so that numbers of five characters fit."""
_SHARES = ("RdBu", (-1.0, 1.0), "z.2f")
"""Colours of shares, what they are clipped to, and their form."""
_ENTRIES_A_ROW = 2
"""Datasets beside one another in the figure."""
_LINE = 0.17
"""Inches from one row of a heat map to the next."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``cells``: a row an evaluation and cell; ``table``: one for each method in it; ``summary``: an evaluation and method.

    Returns:
        All begin with evaluation, ``global`` or ``own``; the first two go on with dataset as it is spelled, the study's options
        of datasets, such as partition and labelled, and clients.
        In ``cells``: for FedAvg and the halo the chosen setting, mean and std of test accuracy, and undertrained, the share of
        such runs, named as ``halo_mean``; of the headroom seeds, mean, low, high and undertrained, as ``headroom_low``.
        In ``table``: method; assumes, joined by semicolons; setting, mean and std likewise; seeds, gain, low, high and p, see
        :func:`feddep.reporting.comparisons.paired_t_test`; p_holm; share, empty where the mean headroom is below
        :data:`LEAST_HEADROOM`; and undertrained, of the runs of both.
        In ``summary``: method; assumes; cells that have a share; mean_share, least_share and largest_share over these;
        significant: in how many of them it is significantly better than FedAvg; largest_loss: the least mean gain in any cell.

    Raises:
        DataError: if a run has not measured what is needed, or no cell has runs of FedAvg and the halo with a seed in common.
    """
    runs = _measured(study)
    cells: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for evaluation, dataset, m in product(EVALUATIONS, sort_datasets(runs["dataset"]), client_numbers(runs)):
        here = beside_clients(of_place(runs, evaluation, dataset), m)
        chosen = {str(method): _chosen(of) for method, of in here.groupby("method", sort=False)}
        if m is None or REFERENCE not in chosen:
            continue
        reference, bound = chosen.pop(REFERENCE), chosen.pop(BOUND, here.iloc[:0])
        options = {column: here[column].iloc[0] for column in study.columns("dataset")}
        cell = {"evaluation": evaluation, "dataset": dataset, **options, "clients": m}
        headroom = comparisons.difference(bound, reference)
        headroom["mean"] = headroom["mean_difference"]
        cells.append(
            {
                **cell,
                **{f"{REFERENCE}_{part}": value for part, value in _level(reference).items()},
                **{f"{BOUND}_{part}": value for part, value in _level(bound).items()},
                **{f"headroom_{part}": headroom[part] for part in ("seeds", "mean", "low", "high", "undertrained")},
            }
        )
        for method in sort_methods(chosen):
            test = comparisons.difference(chosen[method], reference)
            gain = test.pop("mean_difference")
            share = gain / headroom["mean"] if headroom["mean"] >= LEAST_HEADROOM else np.nan
            assumes = "; ".join(registry.find(variants.base(method)).assumes)
            names = {"method": method, "assumes": assumes}
            rows.append({**cell, **names, **_level(chosen[method]), **test, "gain": gain, "share": share})
    if not any(cell["headroom_seeds"] for cell in cells):
        raise DataError(
            f"the study {study.name} has no dataset, number of clients and seed with both {REFERENCE} and {BOUND}; "
            "a recovery study needs them"
        )
    table = pd.DataFrame(rows, columns=["evaluation", "dataset", *study.columns("dataset"), "clients", *_COLUMNS])
    table["p_holm"] = comparisons.holm(table["p"].to_numpy(dtype=float))
    return {"cells": pd.DataFrame(cells), "table": table, "summary": _summary(table)}


def _measured(study: Study) -> pd.DataFrame:
    """The runs of each evaluation: in ``setting`` the evaluation, in ``spelled`` the setting, in ``best`` the test accuracy."""
    runs = study.runs
    whole = runs["clients"].isna()  # all its nodes are on one graph, whichever way they are classified
    runs = runs.assign(
        own=runs["own"].mask(whole, runs["best"]),
        global_validation=runs["global_validation"].mask(whole, runs["validation"]),
    )
    for measure in ("own", "global_validation"):
        missing = np.flatnonzero(runs[measure].isna())
        if len(missing):
            path = study.finished[missing[0]].run.path
            raise DataError(f"studies.{study.name} needs {measure} of every run, and the run {path} has not measured it")
    return pd.concat(
        runs.assign(spelled=runs["setting"], setting=evaluation, best=runs[test], score=runs[validation])
        for evaluation, (test, validation) in _MEASURES.items()
    )


def _chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of a method in a cell with the setting that validation nodes choose, the first of equals."""
    return runs[runs["spelled"] == runs.groupby("spelled", sort=False)["score"].mean().idxmax()]


def _level(runs: pd.DataFrame) -> dict[str, Any]:
    return {
        "setting": next(iter(runs["spelled"]), None),
        **{"mean": runs["best"].mean(), "std": runs["best"].std(ddof=1), "undertrained": runs["undertrained"].mean()},
    }


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for evaluation, method in product(EVALUATIONS, sort_methods(table["method"])):
        of = table[(table["evaluation"] == evaluation) & (table["method"] == method)]
        shares, losses = of["share"].dropna(), of.loc[of["gain"] < 0, "gain"]
        rows.append(
            {
                **{"evaluation": evaluation, "method": method, "assumes": of["assumes"].iloc[0], "cells": len(shares)},
                **{"mean_share": shares.mean(), "least_share": shares.min(), "largest_share": shares.max()},
                "significant": int(((of["p_holm"] < SIGNIFICANT) & (of["share"] > 0)).sum()),
                "largest_loss": losses.min(),
            }
        )
    return pd.DataFrame(rows)


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section an evaluation: the methods over all cells; then, a line a cell, the headroom, and the methods' gains."""
    settings = _settings(study)
    sections = []
    for evaluation, title in EVALUATIONS.items():
        summary, cells, table = (
            records(of[of["evaluation"] == evaluation]) if len(of) else []
            for of in (tables[name] for name in ("summary", "cells", "table"))
        )
        lines = [
            [
                *(method_title(line["method"]), line["assumes"], str(line["cells"])),
                *(md.number(line[f"{which}_share"], ".2f") for which in ("mean", "least", "largest")),
                *(str(line["significant"]), md.number(line["largest_loss"], "+.4f")),
            ]
            for line in summary
        ]
        places = {(line["dataset"], line["clients"]): place_title(line["dataset"], line["clients"]) for line in cells}
        levels = [[place, *_levels(line, settings)] for place, line in zip(places.values(), cells, strict=True)]
        found = {(line["method"], line["dataset"], line["clients"]): line for line in table}
        names = [line["method"] for line in summary]
        gains = [[title, *(_gain(found.get((name, *place)), settings) for name in names)] for place, title in places.items()]

        header = ["method", "assumes", "cells", "mean share", "least", "largest", "significant", "largest loss"]
        sections += [f"## {title.capitalize()}", *([md.table(header, lines)] if lines else [])]
        sections += ["### Missing neighbours", md.table(["", "FedAvg", "halo", "headroom"], levels)]
        if names:
            sections += ["### Gain over FedAvg, and share", md.table(["", *map(method_title, names)], gains)]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _settings(study: Study) -> dict[str, str]:
    """What stands behind a number for the setting it is of: the encoder if nothing else differs; nothing if there is but one."""
    first = study.runs.drop_duplicates("setting")
    if len(first) == 1:
        return {}
    alone = study.columns("setting") == ["encoder"] and len(set(study.short["setting"].values())) == 1
    return dict(zip(first["setting"], first["encoder"], strict=True)) if alone else distinguishing(first["setting"])


def _levels(line: dict[str, Any], settings: dict[str, str]) -> list[str]:
    late = {name: mark(line[f"{name}_undertrained"]) for name in (REFERENCE, BOUND, "headroom")}
    numbers = [
        " ".join(filter(None, [md.plus_minus(line[f"{name}_mean"], line[f"{name}_std"]), settings.get(line[f"{name}_setting"])]))
        + late[name]
        for name in (REFERENCE, BOUND)
    ]
    return [*numbers, md.interval(*(line[f"headroom_{part}"] for part in ("mean", "low", "high"))) + late["headroom"]]


def _gain(line: dict[str, Any] | None, settings: dict[str, str]) -> str:
    if line is None or line["gain"] is None:
        return ""
    star = "\\*" if line["p_holm"] is not None and line["p_holm"] < SIGNIFICANT else ""
    share = "" if line["share"] is None else f"({line['share']:.2f})"
    parts = [f"{line['gain']:+.4f}", star, share, settings.get(line["setting"])]
    return " ".join(filter(None, parts)) + mark(line["undertrained"])


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A map of the headroom for each dataset and evaluation; below, the shares of the cells that have one.

    These are a heat map for each evaluation, or of more than :data:`_MOST_CELLS` cells a map like the first for each method.
    """
    cells, shares = _titled(tables["cells"], study), _titled(tables["table"].dropna(subset="share"), study)
    cells["points"] = 100 * cells["headroom_mean"]
    methods, found = sort_methods(shares["method"]), shares.groupby("evaluation", sort=False)
    many = found["place"].nunique().max() > _MOST_CELLS
    heights = [0.3 + (0.75 + _LINE * cells["variant"].nunique()) * -(-cells["entry"].nunique() // _ENTRIES_A_ROW)]
    if many:
        heights *= 1 + len(methods)
    elif methods:
        heights.append(0.3 + len(found) * (0.35 + _LINE * len(methods) + 0.055 * shares["place"].str.len().max()))
    with drawing.style():
        drawn = drawing.blank((_WIDTH, 0.4 + sum(heights)))
        first, *others = drawn.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        highest = max(cells["points"].max(), 100 * LEAST_HEADROOM)
        first.suptitle("Headroom: accuracy of halo − FedAvg, percentage points (grey: not run)", fontsize=9)
        _maps(first, cells, cells, "points", "Blues", (0.0, highest), "z.1f")
        if many:
            for part, method in zip(others, methods, strict=True):
                grey = f"grey: not run, or headroom below {LEAST_HEADROOM:g}"
                part.suptitle(f"Share of the headroom recovered by {method_title(method)} ({grey})", fontsize=9)
                _maps(part, cells, shares[shares["method"] == method], "share", *_SHARES)
        elif methods:
            _shares(others[0], methods, [of for _, of in found])
        drawing.head(drawn, study.title)
    return drawn


def _maps(
    part: SubFigure, cells: pd.DataFrame, table: pd.DataFrame, of: str, colours: str, limits: tuple[float, float], form: str
) -> None:
    """A panel for each dataset and evaluation of the cells: a row a partition and share of labels, a column an M."""
    panels = list(product(dict.fromkeys(cells["entry"]), EVALUATIONS))
    columns = min(len(panels), len(EVALUATIONS) * _ENTRIES_A_ROW)
    axes = part.subplots(-(-len(panels) // columns), columns, squeeze=False, sharex=True, sharey=True)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    rows, numbers = list(dict.fromkeys(cells["variant"])), client_numbers(cells)
    for ax, (entry, evaluation) in zip(axes.flat, panels, strict=False):
        shown = table[(table["entry"] == entry) & (table["evaluation"] == evaluation)]
        drawing.heat_map(ax, _grid(shown, of, ("variant", rows), ("clients", numbers)), colours, limits, form)
        ax.set_title(f"{dataset_title(entry)}\n{EVALUATIONS[evaluation]}", fontsize=8)
        ax.set_xticks(np.arange(len(numbers)) + 0.5, [str(m) for m in numbers])
        ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
        ax.set_xlabel("M")


def _shares(part: SubFigure, methods: list[str], tables: list[pd.DataFrame]) -> None:
    """A panel for each evaluation: a row a method, a column a cell; cells are equally wide in all."""
    part.suptitle("Share of the headroom that each method recovers (grey: not run)", fontsize=9)
    for ax, table in zip(part.subplots(len(tables), 1, squeeze=False)[:, 0], tables, strict=True):
        places = list(dict.fromkeys(table["place"]))
        drawing.heat_map(ax, _grid(table, "share", ("method", methods), ("place", places)), *_SHARES)
        ax.set_xlim(0, max(of["place"].nunique() for of in tables))
        ax.set_title(EVALUATIONS[table["evaluation"].iloc[0]], fontsize=8, loc="left")
        ax.set_xticks(np.arange(len(places)) + 0.5, places, rotation=90, fontsize=6)
        ax.set_yticks(np.arange(len(methods)) + 0.5, [method_title(name) for name in methods])


def _grid(table: pd.DataFrame, of: str, rows: tuple[str, list], columns: tuple[str, list]) -> np.ndarray:
    """A column's values by those of two others, shape (rows, columns)."""
    values = table.pivot_table(of, rows[0], columns[0], aggfunc="first")
    return values.reindex(index=rows[1], columns=columns[1]).to_numpy(dtype=float)


def _titled(table: pd.DataFrame, study: Study) -> pd.DataFrame:
    """With entry, the dataset without its changes; variant, ``random, 5 % labelled``; and place, ``Cora, random, M=5``."""
    named = {spelled: variants.read(spelled)[1] for spelled in dict.fromkeys(study.runs["dataset"])}
    # Where partitions differ, the column has that of the configuration too, for datasets whose entry has several of them.
    runs = study.runs if "partition" in study.options else study.runs.assign(partition=None)
    usual = [line["partition"] for line in records(runs) if line["partition"] and "partition" not in named[line["dataset"]]]
    titles: dict[str, str] = {}
    for spelled, changes in named.items():
        labelled, partition = changes.pop("labelled", None), changes.pop("partition", next(iter(usual), None))
        others = [f"{key.removeprefix('partition_')}={md.value(value)}" for key, value in changes.items()]
        titles[spelled] = ", ".join(filter(None, [partition, *others, labelled and f"{100 * labelled:g} % labelled"]))
    table = table.assign(entry=table["dataset"].map(variants.base), variant=table["dataset"].map(titles))
    parts = zip(table["entry"].map(dataset_title), table["variant"], table["clients"], strict=True)
    table["place"] = [", ".join(filter(None, [entry, variant, f"M={m}"])) for entry, variant, m in parts]
    return table
