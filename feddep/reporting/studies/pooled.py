"""Kind ``pooled``: which methods are better than a reference on graphs like those of several tuned
studies?

The study names these, and in ``options.reference`` the method that all are compared with.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.experiment import plan
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import family, graph_family, method_title
from feddep.reporting.load import Study
from feddep.reporting.studies import tuned

SHOWS = f"""\
Each method with the hyperparameters that the studies below chose for it on each graph; *out of the
box* with those chosen on all other graphs.
{statistics.HOW_POOLED}
"""
FAMILIES = """\
## By family

*Difference*: the mean over the methods that are not in italics, without Local, and its interval
over the graphs of a family. *Verdicts*: how many of these methods have each, by these graphs alone.
A family without a difference that enters verdicts has no line.
"""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row a method (:func:`feddep.reporting.statistics.on_graphs`), tuned on each
    graph and, where searched, out of the box; ``with_flawed``: the former with differences most of
    whose runs stalled or were unfinished; ``families``: a row a family of graphs
    (:func:`families`).
    """
    final: dict[str, set[plan.Run]] = {}
    for name in study.entry["studies"]:
        for configuration, runs in plan.final_runs(study.config, name).items():
            final.setdefault(configuration, set()).update(runs)
    compared = {
        configuration: tuned.compared(study, study.runs[[run in runs for run in study.plan]])
        for configuration, runs in final.items()
        if configuration != plan.AGAIN
    }
    differences = compared[plan.HERE]
    every = differences.assign(**dict.fromkeys(statistics.FLAWS, 0.0))
    table = pd.concat(
        _over_graphs(study, of).assign(configuration=configuration)
        for configuration, of in compared.items()
    )
    pooled = {"table": table, "with_flawed": _over_graphs(study, every)}
    return {**pooled, "families": families(differences, study.margin)}


def _over_graphs(study: Study, differences: pd.DataFrame) -> pd.DataFrame:
    over = statistics.on_graphs(differences, study.margin)
    return over.assign(reference=differences["reference"].iloc[0])


def families(differences: pd.DataFrame, margin: Mapping[str, Any]) -> pd.DataFrame:
    """Whether the verdict depends on the family of graphs, of the methods without edges across
    clients, the whole graph or an oracle, and without Local.

    Args:
        differences: rows of :func:`feddep.reporting.studies.tuned.compared`.
        margin: that of the configuration.

    Returns:
        A row a family with a difference that enters verdicts: graphs, their number;
        mean_difference, low and high, of the mean over methods on each graph; and verdicts, how
        many methods have each on the graphs of the family
        (:func:`feddep.reporting.statistics.on_graphs`).
    """
    candidates = differences["method"].map(family) == "candidates"
    judged = (statistics.flaws(differences) == "") & differences["mean_difference"].notna()
    own = differences[candidates & judged]
    rows = []
    for name, of in own.groupby(own["dataset"].map(graph_family)):
        means = of.groupby(of["dataset"].map(variants.base))["mean_difference"].mean()
        tested = statistics.tested(means, margin)
        rows.append(
            {
                "family": name,
                "graphs": len(means),
                **{key: tested[key] for key in ("mean_difference", "low", "high")},
                "verdicts": statistics.counted(statistics.on_graphs(of, margin)).partition(": ")[2],
            }
        )
    return pd.DataFrame(rows)


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """The tables."""
    table, columns = tables["table"], statistics.POOLED
    if table["configuration"].nunique() > 1:
        columns = ["configuration", *columns]
    sound = md.shown(table, columns, [])
    every = md.shown(tables["with_flawed"], statistics.POOLED, [])
    by_family = md.shown(
        tables["families"], ["family", "graphs", "mean_difference", "verdicts"], []
    )
    reference = method_title(table["reference"].iloc[0])
    return (
        f"Differences are from {reference}, of {', '.join(study.entry['studies'])}.\n\n{sound}\n"
        f"{FAMILIES}\n{by_family}\n"
        "## With stalled and unfinished runs\n\nThe same of all runs, those included that enter no "
        f"verdict; for description only.\n\n{every}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row a method tuned on each graph, the largest gain first; filled where it has a verdict."""
    table = tables["table"]
    table = table[table["configuration"] == plan.HERE]
    rows: dict[str, Any] = {
        f"{method_title(row['method'])} ({row['graphs']})": {
            "": {**row, "mean": row["mean_difference"]}
        }
        for row in records(table)
    }
    reference = method_title(table["reference"].iloc[0])
    return figures.forests(
        f"{statistics.finding(table, study.margin)}\n{study.title}",
        {"": rows},
        f"mean gain over {reference} and 95 % interval over graphs, whose number is in brackets",
        margin=study.margin["accuracy"],
    )
