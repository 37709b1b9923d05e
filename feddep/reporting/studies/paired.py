"""Kind ``paired``: do named interpretations differ from one baseline by more than chance?

The baseline is the method that the study's first block names first.  If that has several variants,
and all other methods vary the same options, each of these is compared with the variant of the same
values: GAP at the same budget ε, for instance.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import changes_of, distinguishing, method_title, place_title, without
from feddep.reporting.load import Study
from feddep.utils.errors import DataError

SHOWS = f"""\
Difference of test accuracy (at the round that is best on validation nodes) from the baseline's.
{statistics.HOW_JUDGED}*All cells*: each seed's mean over the lines; the seed is the unit. Fewer
than three pairs have no test.
"""
COLUMNS = [
    *("setting", "dataset", "clients", "method", "reference", "cells", "seeds"),
    "mean_difference",
    "std_difference",
    "low",
    "high",
    "p",
    *statistics.JUDGED,
    *statistics.FLAWS,
]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a method and place; then a row a method over all its places, with dataset and clients
    empty.

    The latter is a row a setting where a method has several in one place, and has no setting where
    places have their own.

    Returns:
        setting, dataset, clients, method and reference (the baseline), as they are spelled; cells:
        number of places, 1 or for the pooled row all; seeds: pairs, of a pooled row those that all
        places have, whose mean over places is an observation; mean_difference to verdict_strict:
        see :func:`feddep.reporting.statistics.compare`; unfinished and stalled: shares of the
        runs, in a pooled row the mean over its places.

    Raises:
        DataError: if no run can be paired with one of the baseline.
    """
    runs, first = study.runs, study.runs["method"].iloc[0]
    references = pd.Series(_references(list(dict.fromkeys(runs["method"]))))
    groups = [
        (runs[runs["method"].isin(of.index)], runs[runs["method"] == reference])
        for reference, of in references.groupby(references, sort=False)
    ]
    pairs = pd.concat(statistics.pairs(*group) for group in groups)
    table = statistics.differences(pairs, study.margin).assign(cells=1)
    if table.empty:
        raise DataError(
            f"no run of the study {study.name} has setting, dataset, clients and seed in common "
            f"with {first}"
        )
    pooled = [
        _pooled(of, study)
        for _, of in pairs.groupby(
            ["method", "setting"] if _several(table) else ["method"], sort=False
        )
        if len(of[statistics.PLACE].drop_duplicates()) > 1
    ]
    table = statistics.judged(
        pd.concat(
            [in_paper_order(table, ["dataset", "clients"]), pd.DataFrame(pooled)],
            ignore_index=True,
        )
    )
    table["reference"] = table["method"].map(references)
    return {"table": table[COLUMNS].astype({"clients": "Int64", "seeds": "Int64"})}


def _pooled(pairs: pd.DataFrame, study: Study) -> dict[str, Any]:
    """The row over all places of a method, where the seeds that all places have are the unit."""
    cells = len(pairs[statistics.PLACE].drop_duplicates())
    by_seed = pairs.groupby("seed").filter(lambda of: len(of) == cells)
    over_cells = by_seed.groupby("seed", as_index=False)[
        ["difference", "unfinished", "unfinished_of", "stalled"]
    ].mean()
    return {
        "method": pairs["method"].iloc[0],
        "setting": pairs["setting"].iloc[0] if pairs["setting"].nunique() == 1 else None,
        "cells": cells,
        **statistics.difference(over_cells, study.margin),
    }


def _several(table: pd.DataFrame) -> bool:
    """Whether a method has several settings in one place."""
    return bool(table.duplicated(["dataset", "clients", "method"]).any())


def _varied(spelled: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """The options of which variants of one entry have several values: by name their values, None
    where one has none.
    """
    changes = [changes_of(name) for name in spelled]
    options = {key: tuple(has.get(key) for has in changes) for has in changes for key in has}
    return {key: values for key, values in options.items() if len(set(values)) > 1}


def _references(spelled: Sequence[str]) -> dict[str, str]:
    """The baseline of each method but the baselines: the first one, or, where both vary the same
    options, that with the same values.
    """
    # Of [fedavg,rounds=5  fedavg,rounds=9  feddep,rounds=5  feddep,rounds=9] the baseline of
    # feddep,rounds=9 is fedavg,rounds=9.  Of [fedavg  feddep,depth=1  feddep,depth=2] all have
    # fedavg.
    first, *others = spelled
    baselines = [name for name in spelled if variants.base(name) == variants.base(first)]
    rest = [name for name in others if name not in baselines]
    options = _varied(baselines)

    def values(name: str) -> tuple[Any, ...]:
        changes = changes_of(name)
        return tuple(changes.get(key) for key in options)

    alike = {values(name): name for name in baselines}
    entries = {variants.base(name) for name in rest}
    of_all = all(
        options.keys() <= _varied([name for name in rest if variants.base(name) == entry]).keys()
        for entry in entries
    )
    if options and rest and of_all and all(values(name) in alike for name in rest):
        return {name: alike[values(name)] for name in rest}
    return dict.fromkeys(others, first)


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a setting and dataset, and one over all its cells."""
    table = tables["table"].fillna({"dataset": "all cells", "setting": "of each dataset"})
    columns = ["clients", "method", "cells", "seeds", *statistics.SHOWN]
    return f"Baseline: {_baseline(table)}.\n\n{md.shown(table, columns)}"


def _baseline(table: pd.DataFrame) -> str:
    """The baseline, and the options by which it is chosen if it has several variants."""
    references = list(dict.fromkeys(table["reference"]))
    if len(references) == 1:
        return method_title(references[0])
    return (
        f"{method_title(variants.base(references[0]))} with the same "
        f"{' and '.join(_varied(references))}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a variant of the baseline, a row a place, a colour a method; filled where there
    is a verdict.
    """
    table = tables["table"]
    several, references = _several(table), list(dict.fromkeys(table["reference"]))
    settings = distinguishing(table["setting"].dropna())
    short = distinguishing(table["dataset"].dropna())
    chosen = _varied(references) if len(references) > 1 else {}
    names = {name: without(name, chosen) for name in [*table["method"], *references]}
    titles = {
        spelled: method_title(name) for spelled, name in distinguishing(names.values()).items()
    }
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records(table):
        changes = {key: value for key, value in changes_of(row["method"]).items() if key in chosen}
        place = (
            "All together"
            if row["dataset"] is None
            else place_title(short[row["dataset"]], row["clients"])
        )
        place += f", {settings[row['setting']]}" if several else ""
        panel = drawn.setdefault(
            variants.format_name("", changes).lstrip(",").replace(",", ", "), {}
        )
        panel.setdefault(place, {})[titles[names[row["method"]]]] = {
            **row,
            "mean": row["mean_difference"],
        }
    return figures.gains(study, table, drawn, titles[names[references[0]]])
