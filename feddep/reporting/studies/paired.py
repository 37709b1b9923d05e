"""Kind ``paired``: do named readings differ from one baseline by more than chance?

The baseline is the method that the study's first block names first.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import comparisons, drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import distinguishing, method_title, place_title, sort_datasets
from feddep.reporting.main_table import SIGNIFICANT
from feddep.reporting.study_data import Study
from feddep.reporting.undertrained import mark
from feddep.utils.errors import DataError

SHOWS = """\
Difference of test accuracy (at the round that is best on validation nodes) from the baseline's, paired by seed: both runs of
a pair share partition, split and seed. Brackets: 95 % t-interval of the mean difference. *p*: paired t-test; *Wilcoxon*:
signed-rank test; both two-sided, and after Holm's correction over all lines of the table. `*`: significant, the corrected p
of the t-test is below 0.05. *All cells*: the mean of the lines' differences, each taken as one observation; those of a
dataset share their splits, so that this interval is somewhat too narrow. Fewer than three pairs have no test; with n of them
Wilcoxon's p is never below 2^(1−n).
"""
COLUMNS = ["setting", "dataset", "clients", "method", "reference", "cells", "seeds"]
COLUMNS += ["mean_difference", "std_difference", "low", "high", "p", "p_holm", "p_wilcoxon", "p_wilcoxon_holm", "significant"]
COLUMNS += ["undertrained"]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a method and place; then a row a method over all its places, with dataset and clients empty.

    Returns:
        setting, dataset, clients, method and reference (the baseline), as they are spelled; cells: number of places, 1 or
        for the pooled row all; seeds: pairs, empty in a pooled row, whose observations are the mean differences of the places;
        mean_difference to high: see :func:`feddep.reporting.comparisons.paired_t_test`; p and p_wilcoxon, and both
        after Holm's correction over all rows; significant: whether p_holm is below 0.05, empty where there is no test;
        undertrained: share of the runs of both, in a pooled row the mean over its places.

    Raises:
        DataError: if no run can be paired with one of the baseline.
    """
    reference = study.finished[0].run.method
    runs = study.runs
    baseline = runs[runs["method"] == reference]
    rows: list[dict[str, Any]] = []
    pooled: list[dict[str, Any]] = []
    for method in dict.fromkeys(runs.loc[runs["method"] != reference, "method"]):
        pairs = comparisons.paired(runs[runs["method"] == method], baseline)
        names = {"method": method, "reference": reference}
        of_method = []
        for place, cell in pairs.groupby(comparisons.PLACE, sort=False, dropna=False):
            tests = _tests(cell["difference"])
            where = dict(zip(comparisons.PLACE, cast(tuple, place), strict=True))
            of_method.append({**names, **where, **tests, "cells": 1, "undertrained": cell["undertrained"].mean()})
        rows += of_method
        for setting in dict.fromkeys(row["setting"] for row in of_method):
            cells = [row for row in of_method if row["setting"] == setting]
            tests = _tests([row["mean_difference"] for row in cells])
            late = float(np.mean([row["undertrained"] for row in cells]))
            if len(cells) > 1:
                pooled.append({**names, "setting": setting, **tests, "cells": len(cells), "seeds": None, "undertrained": late})
    if not rows:
        raise DataError(f"no run of the study {study.name} has setting, dataset, clients and seed in common with {reference}")
    order = sort_datasets(row["dataset"] for row in rows)
    rows.sort(key=lambda row: (order.index(row["dataset"]), 0 if pd.isna(row["clients"]) else row["clients"]))
    table = pd.DataFrame([*rows, *pooled]).reindex(columns=COLUMNS)
    for test in ("p", "p_wilcoxon"):
        table[f"{test}_holm"] = comparisons.holm(table[test].to_numpy(dtype=float))
    table["significant"] = (table["p_holm"] < SIGNIFICANT).astype("boolean").mask(table["p_holm"].isna())
    return {"table": table.astype({"clients": "Int64", "seeds": "Int64"})}


def _tests(difference: Sequence[float] | pd.Series) -> dict[str, float]:
    values = np.asarray(difference, dtype=float)
    return {**comparisons.paired_t_test(values), "p_wilcoxon": comparisons.wilcoxon(values)}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A line a place and method, then those over all places."""
    several = tables["table"]["setting"].nunique() > 1
    lines = []
    for line in records(tables["table"]):
        place, method = _place(line, several), method_title(line["method"])
        star = " \\*" if line["significant"] else ""
        difference = md.interval(line["mean_difference"], line["low"], line["high"]) + star + mark(line["undertrained"])
        count = f"{line['cells']} cells" if line["seeds"] is None else str(line["seeds"])
        tests = [md.number(line[p], ".3g") for p in ("p", "p_holm", "p_wilcoxon", "p_wilcoxon_holm")]
        lines.append([place, method, count, difference, *tests])
    baseline = method_title(tables["table"]["reference"].iloc[0])
    header = ["", "method", "pairs", "difference", "p", "p, Holm", "Wilcoxon", "Wilcoxon, Holm"]
    return f"Baseline: {baseline}.\n\n{md.table(header, lines)}"


def _place(line: dict, with_setting: bool) -> str:
    place = "All cells" if line["dataset"] is None else place_title(line["dataset"], line["clients"])
    return f"{place}, {line['setting']}" if with_setting else place


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A forest plot: a row a place, a colour a method; filled where the difference is significant."""
    table = tables["table"]
    several = table["setting"].nunique() > 1
    lines = records(table)
    rows = list(dict.fromkeys(_place(line, several) for line in lines))
    methods, reference = list(dict.fromkeys(table["method"])), table["reference"].iloc[0]
    names = [method_title(name) for name in distinguishing([*methods, reference]).values()]
    found = {(line["method"], _place(line, several)): line for line in lines}
    colours = {name: drawing.colour(k) for k, name in enumerate(methods)}
    with drawing.style():
        series = {name: [found.get((name, row), {}) for row in rows] for name in methods}
        drawn = drawing.forests(rows, series, colours, f"test accuracy less that of {names[-1]}, mean and 95 % interval")
        handles = [
            drawing.sample(name, color=colours[key], marker="o", linestyle="none")
            for key, name in zip(methods, names, strict=False)
        ]
        if not table["significant"].fillna(False).all():
            look = {"color": drawing.INK, "marker": "o", "markerfacecolor": "white", "linestyle": "none"}
            handles.append(drawing.sample("not significant", **look))
        handles += drawing.undertrained_sample(lines)
        drawing.head(drawn, study.title, handles, columns=3)
    return drawn
