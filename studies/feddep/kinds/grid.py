"""Kind ``grid``: which interpretation of an underspecified method does best on validation nodes?
Test nodes have no say.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import ordered, records
from feddep.reporting.labels import method_title, option_title, sort_datasets
from feddep.reporting.load import Study
from feddep.reporting.statistics import FLAWS
from feddep.utils.errors import DataError

SHOWS = """\
Interpretations of a method, ranked by accuracy of validation nodes at each run's best
round: on the clients' own, possibly mended subgraphs, or, where the title says so, classified as
the test nodes are; test nodes are not looked at. A cell is a dataset, number of clients and seed
that every interpretation was run on. *difference*: of an interpretation's accuracy from the mean of
all in the same cell, averaged over the cells, so that an easy dataset counts no more than a hard
one; *se*: its standard error. Of an option's value: the same, averaged over the interpretations
that have it; options that only change together cannot be told apart.
"""
INTERPRETATION = ["setting", "method"]
CELL = ["dataset", "clients", "seed"]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row an interpretation, the best first; ``main_effects``: a row a value of an
    option.

    Returns:
        In both: cells, their number; difference, se and validation_mean over them. In ``table``:
        rank; setting and method as they are spelled; the study's options; unfinished and stalled,
        the shares of such runs; and validation accuracy in each place, such as ``cora_m5``. In
        ``main_effects``: option, value, and interpretations, how many have it.

    Raises:
        DataError: if a run did not measure what is ranked by, or there is no cell that every
            interpretation was run on.
    """
    runs, score = study.runs.assign(clients=study.runs["clients"].fillna(0)), study.entry["score"]
    if (missing := runs[score].isna()).any():
        method = runs.loc[missing, "method"].iloc[0]
        raise DataError(
            f"studies.{study.name} ranks by {score}, which its run of {method} did not measure"
        )
    found = list(dict.fromkeys(runs[INTERPRETATION].itertuples(index=False, name=None)))
    scores, *flaws = (
        runs.pivot(index=INTERPRETATION, columns=CELL, values=column).loc[found].astype(float)
        for column in (score, *FLAWS)
    )
    scores = scores.dropna(axis="columns")
    if scores.empty:
        raise DataError(
            f"no dataset, number of clients and seed of the study {study.name} has a run of "
            "every interpretation"
        )
    centred, options = scores - scores.mean(), _options(study, found)

    table = pd.concat([pd.DataFrame(found, columns=INTERPRETATION), options], axis="columns")
    table = table.join(
        pd.DataFrame([_summary(scores.loc[[name]], centred.loc[[name]]) for name in found])
    )
    for name, shares in zip(FLAWS, flaws, strict=True):
        table.insert(
            list(table.columns).index("validation_mean"),
            name,
            shares[scores.columns].mean(axis="columns").to_numpy(),
        )
    by_place = scores.T.groupby(level=["dataset", "clients"]).mean()
    datasets = sort_datasets(runs["dataset"])
    for dataset, clients in sorted(
        by_place.index, key=lambda place: (datasets.index(place[0]), place[1])
    ):
        table[f"{dataset}_{f'm{clients}' if clients else 'centralised'}"] = by_place.loc[
            (dataset, clients)
        ].to_numpy()
    # The best has rank 1; equals share theirs.
    table.insert(0, "rank", table["difference"].rank(ascending=False, method="min").astype(int))
    effects = [
        {
            "option": option,
            "value": value,
            "interpretations": int(has.sum()),
            **_summary(scores[has], centred[has]),
        }
        for option in options
        for value in ordered(options[option])
        for has in [(options[option] == value).to_numpy()]
    ]
    columns = ["option", "value", "interpretations", "cells", "difference", "se", "validation_mean"]
    ranked = table.sort_values("rank", kind="stable").reset_index(drop=True)
    return {"table": ranked, "main_effects": pd.DataFrame(effects, columns=columns)}


def _options(study: Study, found: list[tuple[str, str]]) -> pd.DataFrame:
    """The value of each option in each interpretation; values that differ by dataset are joined by
    a stroke.
    """

    def joined(values: pd.Series) -> object:
        different = list(dict.fromkeys(value for value in values if value is not None))
        return different[0] if len(different) == 1 else "/".join(map(md.value, different)) or None

    columns = study.columns(*INTERPRETATION)
    of = study.runs.groupby(INTERPRETATION, sort=False)
    values = [[joined(of.get_group(name)[column]) for column in columns] for name in found]
    return pd.DataFrame(values, columns=columns, dtype=object)


def _summary(scores: pd.DataFrame, centred: pd.DataFrame) -> dict[str, Any]:
    """Over the cells, of one or several interpretations: shape (interpretations, cells)."""
    by_cell = centred.mean()
    return {
        "cells": len(by_cell),
        "difference": by_cell.mean(),
        "se": by_cell.sem(),
        "validation_mean": scores.mean().mean(),
    }


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """The interpretations by rank, and the values of each option."""
    table, effects = tables["table"], tables["main_effects"]
    short = table.assign(**{part: table[part].map(study.short[part]) for part in INTERPRETATION})
    names = [part for part in INTERPRETATION if short[part].nunique() > 1]
    places = list(table.columns)[list(table.columns).index("validation_mean") + 1 :]
    means = ["difference", "se", "validation_mean"]
    ranked = md.shown(short, ["rank", *names, *study.columns(*INTERPRETATION), *means, *places], [])
    counted = f"{len(table)} interpretations in {table['cells'].iloc[0]} cells."
    by_value = md.shown(effects, ["option", "value", "interpretations", *means], [])
    return f"## Interpretations\n\n{counted}\n\n{ranked}\n## Values of each option\n\n{by_value}"


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """The difference of each method, where there are several, and of each value of an option; where
    there is neither, of each interpretation by rank.
    """
    table = tables["table"].assign(name=tables["table"]["method"].map(variants.base))
    means = table.groupby("name", sort=False)["difference"].mean()
    methods = [method_title(str(name)) for name in means.index]
    rows: dict[str, Any] = {}
    if len(methods) > 1:
        rows = {name: {"": {"mean": mean}} for name, mean in zip(methods, means, strict=True)}
    effects = tables["main_effects"]
    for number, row in enumerate(records(effects) if rows or len(effects) else records(table)):
        label = f"{row['option']}={md.value(row['value'])}" if "option" in row else f"{number + 1}."
        se = row["se"] or 0.0
        point = {
            "mean": row["difference"],
            "low": row["difference"] - se,
            "high": row["difference"] + se,
        }
        rows[label] = {"": point | {name: row.get(name) for name in FLAWS}}
    spans = effects.groupby("option", sort=False)["difference"].agg(np.ptp)
    title = f"Readings of {' and '.join(methods)} differ by {np.ptp(table['difference']):.3f}"
    if len(spans):
        title += f"; most matters: {option_title(str(spans.idxmax()))}, by {spans.max():.3f}"
    label = "validation accuracy less the mean of all, ± standard error"
    return figures.forests(f"{title}\n{study.title}", {"": rows}, label)
