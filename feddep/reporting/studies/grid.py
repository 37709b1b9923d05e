"""Kind ``grid``: which reading of an underspecified method does best on validation nodes?  Test nodes have no say."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import distinguishing, method_title, sort_datasets
from feddep.reporting.study_data import Study, ordered
from feddep.reporting.undertrained import mark
from feddep.utils.errors import DataError

SHOWS = """\
Readings of a method, ranked by accuracy of validation nodes at each run's best round: on the clients' own, possibly mended
subgraphs, or, where the title says so, classified as the test nodes are; test nodes are not looked at. A cell is a dataset,
number of clients and seed that every reading was run on. *difference*: of a reading's accuracy from the mean of all readings in
the same cell, averaged over the cells, so that an easy dataset counts no more than a hard one, ± its standard error over the
cells. Of an option's value: the same, averaged over the readings that have it; options that only change together cannot be told
apart.
"""
READING = ["setting", "method"]
CELL = ["dataset", "clients", "seed"]
_WIDTH, _NARROWEST = 7.0, 0.16
"""Inches that readings have beside one another in the figure, but no less than so many each, for two digits."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row a reading, the best first; ``main_effects``: a row a value of an option.

    Returns:
        In ``table``: rank; setting and method as they are spelled; the study's options; cells (their number); difference
        and se; undertrained, the share of such runs; validation_mean over the cells; and validation accuracy in each place, such
        as ``cora_m5``.
        In ``main_effects``: option, value, readings (how many have it), cells, difference, se and validation_mean.

    Raises:
        DataError: if there is no dataset, number of clients and seed that every reading was run on.
    """
    runs = study.runs[[*READING, *CELL, study.score, "undertrained"]].assign(clients=study.runs["clients"].fillna(0))
    readings = list(dict.fromkeys(runs[READING].itertuples(index=False, name=None)))
    scores = runs.pivot(index=READING, columns=CELL, values=study.score).loc[readings].dropna(axis="columns")
    if study.runs[study.score].isna().any():
        missing = study.runs[study.runs[study.score].isna()].iloc[0]
        raise DataError(f"studies.{study.name} ranks by {study.score}, which its run of {missing['method']} did not measure")
    if scores.empty:
        raise DataError(f"the readings of the study {study.name} have no dataset, number of clients and seed in common")
    centred = scores - scores.mean()
    options = _options(study, readings)

    table = pd.DataFrame(readings, columns=READING)
    table = pd.concat([table, options.reset_index(drop=True)], axis="columns")
    table = pd.concat([table, pd.DataFrame([_summary(scores.loc[[r]], centred.loc[[r]]) for r in readings])], axis="columns")
    late = runs.pivot(index=READING, columns=CELL, values="undertrained").loc[readings, scores.columns].astype(float)
    table.insert(list(table.columns).index("validation_mean"), "undertrained", late.mean(axis="columns").to_numpy())
    by_place = scores.T.groupby(level=["dataset", "clients"]).mean()
    datasets = sort_datasets(study.runs["dataset"])
    for dataset, clients in sorted(by_place.index.tolist(), key=lambda place: (datasets.index(place[0]), place[1])):
        table[f"{dataset}_{f'm{clients}' if clients else 'whole'}"] = by_place.loc[(dataset, clients)].to_numpy()
    # The best reading has rank 1; equals share theirs.
    table.insert(0, "rank", table["difference"].rank(ascending=False, method="min").astype(int))
    effects = [
        {"option": option, "value": value, "readings": int(has.sum()), **_summary(scores[has], centred[has])}
        for option in options
        for value in ordered(options[option])
        for has in [(options[option] == value).to_numpy()]
    ]
    columns = ["option", "value", "readings", "cells", "difference", "se", "validation_mean"]
    return {
        "table": table.sort_values("rank", kind="stable").reset_index(drop=True),
        "main_effects": pd.DataFrame(effects, columns=columns),
    }


def _options(study: Study, readings: list[tuple[str, str]]) -> pd.DataFrame:
    """What each reading has for each option; values that differ by dataset are joined by a stroke."""

    def joined(values: pd.Series) -> object:
        found = list(dict.fromkeys(value for value in values if value is not None))
        return found[0] if len(found) == 1 else "/".join(map(md.value, found)) or None

    columns = study.columns(*READING)
    of = study.runs.groupby(READING, sort=False)
    values = [[joined(of.get_group(reading)[column]) for column in columns] for reading in readings]
    return pd.DataFrame(values, columns=columns, dtype=object)


def _summary(scores: pd.DataFrame, centred: pd.DataFrame) -> dict[str, float]:
    """Over the cells, of one or several readings: shape (readings, cells)."""
    by_cell = centred.mean().to_numpy()
    n = len(by_cell)
    se = float(np.std(by_cell, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return {"cells": n, "difference": float(by_cell.mean()), "se": se, "validation_mean": float(scores.mean().mean())}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """The readings by rank, and the values of each option."""
    table, effects = tables["table"], tables["main_effects"]
    options = study.columns(*READING)
    places = list(table.columns)[list(table.columns).index("validation_mean") + 1 :]
    fixed = [part for part in READING if len(set(study.short[part].values())) > 1]
    lines = []
    for line in records(table):
        short = {part: study.short[part][line[part]] for part in fixed}
        names = [method_title(name) if part == "method" else name for part, name in short.items()]
        numbers = [md.plus_minus(line[column], None) for column in ("validation_mean", *places)]
        numbers = [_difference(line) + mark(line["undertrained"]), *numbers]
        lines.append([str(line["rank"]), *names, *md.values(line, options), *numbers])
    header = ["rank", *fixed, *options, "difference", "validation", *places]
    cells = f"{len(table)} readings in {table['cells'].iloc[0]} cells.\n\n"
    page = f"## Readings\n\n{cells}{md.table(header, lines)}"
    if effects.empty:
        return page
    rows = []
    for line in records(effects):
        numbers = [str(line["readings"]), _difference(line), md.plus_minus(line["validation_mean"], None)]
        rows.append([*md.values(line, ["option", "value"]), *numbers])
    return f"{page}\n## Values of each option\n\n{md.table(['option', 'value', 'readings', 'difference', 'validation'], rows)}"


def _difference(line: dict[str, Any]) -> str:
    return f"{line['difference']:+.4f}" + ("" if line["se"] is None else f" ± {line['se']:.4f}")


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """The readings from best to worst with their standard errors; dots below say which values each of them has."""
    table = tables["table"]
    traits = _traits(study, table)
    # Values that always come together share a line of dots, and its label has as many lines as there are values.
    heights = [len(names) for names in traits.values()]
    places = np.cumsum(heights) - np.array(heights) / 2
    with drawing.style():
        pitch = min(0.28, max(_NARROWEST, _WIDTH / len(table)))  # inches from one reading to the next
        size = (2.6 + pitch * max(len(table), 8), 2.9 + 0.17 * sum(heights))
        drawn, axes = drawing.panels(2, 1, size, sharex=True, height_ratios=[2.0, 0.17 * max(1, sum(heights))])
        scores, values = axes[:, 0]
        x = np.arange(len(table))
        scores.axhline(0.0, color=drawing.INK, linewidth=0.8)
        look = {"color": drawing.COLOURS[0], "marker": "o", "markersize": 4, "linestyle": "none"}
        scores.errorbar(x, table["difference"], yerr=table["se"].fillna(0.0), **look)
        scores.set_ylabel("validation accuracy,\ndifference ± standard error")
        for y, readings in zip(places, traits, strict=True):
            values.plot(readings, [y] * len(readings), color=drawing.INK, marker="o", markersize=3.5, linestyle="none")
        values.set_yticks(places, ["\n".join(names) for names in traits.values()])
        values.set_ylim(sum(heights) or 1, 0)
        values.set_xticks(x, [str(rank) for rank in table["rank"]], fontsize=min(8, 40 * pitch))
        values.set_xlim(-0.7, len(table) - 0.3)
        values.set_xlabel("rank of the reading")
        drawing.head(drawn, study.title)
    return drawn


def _traits(study: Study, table: pd.DataFrame) -> dict[tuple[int, ...], list[str]]:
    """What readings have in common: the rows that have it, and its names."""
    # What all readings of a method have says nothing about them.
    names = {part: table[part].map(study.short[part]).pipe(lambda short: short.map(distinguishing(short))) for part in READING}
    columns = {**{part: short for part, short in names.items() if short.nunique() > 1}, **table[study.columns(*READING)]}
    traits: dict[tuple[int, ...], list[str]] = {}
    for column, values in columns.items():
        for value in ordered(values):
            rows = tuple(np.flatnonzero((values == value).to_numpy()).tolist())
            name = method_title(value) if column == "method" else f"{column}={md.value(value)}"
            traits.setdefault(rows, []).append(name)
    return traits
