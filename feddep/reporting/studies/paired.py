"""Kind ``paired``: do named interpretations differ from one baseline by more than chance?

The baseline is the method that the study's first block names first.
"""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import distinguishing, method_title, place_title
from feddep.reporting.load import Study
from feddep.reporting.statistics import SIGNIFICANT
from feddep.utils.errors import DataError

SHOWS = """\
Difference of test accuracy (at the round that is best on validation nodes) from the baseline's, paired by seed: both runs of a
pair share partition, split and seed. Brackets: 95 % t-interval of the mean difference. *p*: paired t-test, two-sided, and after
Holm's correction over all lines of the table; both with Nadeau and Bengio's correction, as seeds resplit one graph. `*`:
significant, the p after Holm's correction is below 0.05. *All cells*: the mean of the lines' differences, each taken as one
observation; those of a dataset share their splits, so that this interval is somewhat too narrow. Fewer than three pairs have no
test.
"""
COLUMNS = ["setting", "dataset", "clients", "method", "reference", "cells", "seeds"]
COLUMNS += ["mean_difference", "std_difference", "low", "high", "p", "p_holm", "significant", *statistics.FLAWS]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a method and place; then a row a method over all its places, with dataset and clients empty.

    Returns:
        setting, dataset, clients, method and reference (the baseline), as they are spelled; cells: number of places, 1 or
        for the pooled row all; seeds: pairs, empty in a pooled row, whose observations are the mean differences of the places;
        mean_difference to p: see :func:`feddep.reporting.statistics.interval`; p_holm, after Holm's correction over all
        rows; significant: whether p_holm is below 0.05, empty where there is no test; undertrained and stalled: shares of the
        pairs, in a pooled row the mean over its places.

    Raises:
        DataError: if no run can be paired with one of the baseline.
    """
    runs, reference = study.runs, study.runs["method"].iloc[0]
    table = statistics.compare(runs[runs["method"] != reference], runs[runs["method"] == reference], study.resplit_ratio).assign(
        cells=1
    )
    if table.empty:
        raise DataError(f"no run of the study {study.name} has setting, dataset, clients and seed in common with {reference}")
    pooled = [
        {
            **{"method": method, "setting": setting, "cells": len(of), **of[[*statistics.FLAWS]].mean()},
            **{**statistics.interval(of["mean_difference"], 0.0), "seeds": None},
        }
        for (method, setting), of in table.groupby(["method", "setting"], sort=False)
        if len(of) > 1
    ]
    table = pd.concat([in_paper_order(table, ["dataset", "clients"]), pd.DataFrame(pooled)], ignore_index=True)
    table["p_holm"] = statistics.holm(table["p"])
    table["significant"] = (table["p_holm"] < SIGNIFICANT).astype("boolean").mask(table["p_holm"].isna())
    return {"table": table.assign(reference=reference)[COLUMNS].astype({"clients": "Int64", "seeds": "Int64"})}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a setting and dataset, and one over all its cells."""
    table = tables["table"].fillna({"dataset": "all cells"})
    columns = ["clients", "method", "cells", "seeds", "mean_difference", "p", "p_holm"]
    return f"Baseline: {method_title(table['reference'].iloc[0])}.\n\n{md.shown(table, columns)}"


def _place(row: dict[str, Any], with_setting: bool) -> str:
    place = "All cells" if row["dataset"] is None else place_title(row["dataset"], row["clients"])
    return f"{place}, {row['setting']}" if with_setting else place


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A forest plot: a row a place, a colour a method; filled where the difference is significant."""
    table = tables["table"]
    several, reference = table["setting"].nunique() > 1, table["reference"].iloc[0]
    titles = {spelled: method_title(name) for spelled, name in distinguishing([*table["method"], reference]).items()}
    rows: dict[str, dict[str, Any]] = {}
    for row in records(table):
        rows.setdefault(_place(row, several), {})[titles[row["method"]]] = {**row, "mean": row["mean_difference"]}
    label = f"test accuracy less that of {titles[reference]}, mean and 95 % interval"
    return figures.forests(study.title, {"": rows}, label)
