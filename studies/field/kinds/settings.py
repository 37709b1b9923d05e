"""Kind ``settings``: what methods gain over a reference where one thing at a time of a usual
setting is otherwise.

The study's ``options`` name the ``reference`` and the ``axes``, the options that make a setting;
the first run has the usual one.  Hyperparameters may differ between methods.
"""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import dataset_title, method_title
from feddep.reporting.load import Study
from feddep.training.evaluation import MOMENTS

SHOWS = f"""\
Test accuracy at the round that is best on validation nodes, and its difference from the
reference's in the same setting. Where clients are new, it is theirs alone, before and after their
local steps. A setting is a question of its own: tests are corrected over the methods in it.
{statistics.HOW_JUDGED}"""
USUAL = "usual"
_KEYS = ["setting", "dataset", "clients", "method"]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a setting, graph and method; where clients are new, before and after their local steps.

    Returns:
        setting: the axes on which it differs from the usual one; dataset, clients and method;
        reference; mean and std of test accuracy; seconds of a run; and the differences from the
        reference (:func:`feddep.reporting.statistics.compare`), whose tests are corrected within a
        setting.
    """
    options = study.entry["options"]
    told = records(study.runs[options["axes"]].astype(str))
    settings = [
        ", ".join(f"{axis}={value}" for axis, value in each.items() if value != told[0][axis])
        for each in told
    ]
    runs = study.runs.assign(
        setting=[each or USUAL for each in settings],
        dataset=study.runs["dataset"].map(variants.base),
        method=study.runs["method"].map(variants.base),
    )
    is_new = runs["setting"].str.contains("new_clients")
    old, new = runs[~is_new], runs[is_new]
    moments = [
        new.assign(setting=new["setting"] + f", {moment}", test=new[f"local_{moment}"])
        for moment in MOMENTS
    ]
    runs = pd.concat([old, *moments])
    of_reference = runs["method"] == options["reference"]
    pairs = statistics.pairs(runs[~of_reference], runs[of_reference])
    differences = statistics.differences(pairs, study.margin)
    judged = [statistics.judged(of) for _, of in differences.groupby("setting", sort=False)]
    levels = statistics.summarise(runs, _KEYS)[[*_KEYS, "mean", "std", "seconds"]]
    table = levels.merge(pd.concat(judged), how="left", on=_KEYS)
    table = in_paper_order(table.assign(reference=options["reference"]), ["dataset"])
    return {"table": table.astype({"clients": "Int64", "seeds": "Int64"})}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a setting."""
    table = tables["table"]
    shown = md.shown(table, ["dataset", "method", "mean", *statistics.SHOWN], ["setting"])
    return f"Differences are from {method_title(table['reference'].iloc[0])}.\n\n{shown}"


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a graph, a row a setting, a colour a method; filled where there is a verdict."""
    table = tables["table"]
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records(table[table["method"] != table["reference"]]):
        rows = drawn.setdefault(dataset_title(row["dataset"]), {})
        rows.setdefault(row["setting"], {})[method_title(row["method"])] = {
            **row,
            "mean": row["mean_difference"],
        }
    return figures.gains(study, table, drawn, method_title(table["reference"].iloc[0]))
