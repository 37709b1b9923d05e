"""Kind ``settings``: what methods gain over a reference where one thing at a time of a usual
setting is otherwise, on each graph and over all.

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
from feddep.reporting.labels import family, method_title
from feddep.reporting.load import Study
from feddep.training.evaluation import MOMENTS

SHOWS = f"""\
Test accuracy at the round that is best on validation nodes, and its difference from the
reference's in the same setting. Where clients are new, it is theirs alone, before and after their
local steps. A setting is a question of its own: tests are corrected over the methods in it.

On each graph. {statistics.HOW_JUDGED}
Over the graphs. {statistics.HOW_POOLED}"""
USUAL = "usual"
VERDICTS = list(statistics.DECIDED)
"""Whose numbers of graphs a method has."""
_KEYS = ["setting", "dataset", "clients", "method"]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``, a row a setting, graph and method, and ``over_graphs``, a row a setting and
    method; where clients are new, before and after their local steps.

    Returns:
        table: setting, the axes on which it differs from the usual one; dataset, clients and
        method; reference; mean and std of test accuracy; seconds of a run; and the differences from
        the reference (:func:`feddep.reporting.statistics.compare`), whose tests are corrected
        within a setting.  over_graphs: setting; better, equivalent and worse, on how many graphs a
        method is that; and what :func:`feddep.reporting.statistics.on_graphs` has.
    """
    options = study.entry["options"]
    reference = options["reference"]
    told = records(study.runs[options["axes"]].astype(str))
    settings = [
        ", ".join(f"{axis}={value}" for axis, value in each.items() if value != told[0][axis])
        for each in told
    ]
    runs = study.runs.assign(
        setting=[each or USUAL for each in settings],
        dataset=study.runs["dataset"].map(variants.base),
        # The reference goes by its name, whatever its options.
        method=[reference if variants.base(m) == reference else m for m in study.runs["method"]],
    )
    is_new = runs["setting"].str.contains("new_clients")
    old, new = runs[~is_new], runs[is_new]
    moments = [
        new.assign(setting=new["setting"] + f", {moment}", test=new[f"local_{moment}"])
        for moment in MOMENTS
    ]
    runs = pd.concat([old, *moments])
    of_reference = runs["method"] == reference
    pairs = statistics.pairs(runs[~of_reference], runs[of_reference])
    differences = statistics.differences(pairs, study.margin)
    judged = {
        setting: statistics.judged(of) for setting, of in differences.groupby("setting", sort=False)
    }
    on_each = pd.concat(judged.values())
    levels = statistics.summarise(runs, _KEYS)[[*_KEYS, "mean", "std", "seconds"]]
    table = levels.merge(on_each, how="left", on=_KEYS)
    table = in_paper_order(table.assign(reference=reference), ["dataset"])
    counts = pd.crosstab([on_each["setting"], on_each["method"]], on_each["verdict"])
    over_graphs = pd.concat(
        statistics.on_graphs(of, study.margin).assign(setting=setting)
        for setting, of in judged.items()
    ).join(counts.reindex(columns=VERDICTS, fill_value=0), on=["setting", "method"])
    return {
        "table": table.astype({"clients": "Int64", "seeds": "Int64"}),
        "over_graphs": over_graphs.assign(reference=reference),
    }


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """The table over the graphs, and a section a setting."""
    table = tables["table"]
    over_graphs = md.shown(
        tables["over_graphs"], ["setting", *statistics.POOLED[:5], *VERDICTS], []
    )
    shown = md.shown(table, ["dataset", "method", "mean", *statistics.SHOWN], ["setting"])
    reference = method_title(table["reference"].iloc[0])
    return (
        f"Differences are from {reference}.\n\n## Over the graphs\n\n{over_graphs}\n"
        f"## On each graph\n\n{shown}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a method that sees no more of the graph than FedAvg, a row a setting, the mean gain
    over the graphs; filled where there is a verdict.  It is headed by what holds on single graphs:
    over few of them no difference can be found.
    """
    on_each, table = (
        rows[rows["method"].map(family) != "more"]
        for rows in (tables["table"], in_paper_order(tables["over_graphs"], ["method"]))
    )
    no_run: dict[str, Any] = {"mean": None}
    drawn: dict[str, dict[str, dict[str, Any]]] = {
        method_title(method): {setting: {"": no_run} for setting in table["setting"].unique()}
        for method in table["method"].unique()
    }
    for row in records(table):
        point = {**row, "mean": row["mean_difference"], "method": None}
        drawn[method_title(row["method"])][row["setting"]] = {"": point}
    reference = method_title(study.entry["options"]["reference"])
    return figures.gains(study, on_each, drawn, reference)
