"""Kind ``pooled``: which methods are better than a reference on graphs like those of several tuned
studies?

The study names these, and in ``options.reference`` the method that all are compared with.
"""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.experiment import plan
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import method_title
from feddep.reporting.load import Study
from feddep.reporting.studies import tuned

SHOWS = f"""\
Each method with the hyperparameters that the studies below chose for it on each graph.
{statistics.HOW_POOLED}
"""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row a method (:func:`feddep.reporting.statistics.on_graphs`); ``with_flawed``:
    the same with differences most of whose runs stalled or were unfinished.
    """
    final = {
        run
        for name in study.entry["studies"]
        for run in plan.final_runs(study.config, name)[plan.HERE]
    }
    differences = tuned.compared(study, study.runs[[run in final for run in study.plan]])
    every = differences.assign(**dict.fromkeys(statistics.FLAWS, 0.0))
    return {
        name: statistics.on_graphs(of, study.margin).assign(reference=of["reference"].iloc[0])
        for name, of in (("table", differences), ("with_flawed", every))
    }


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Both tables."""
    sound, every = (md.shown(table, statistics.POOLED, []) for table in tables.values())
    reference = method_title(tables["table"]["reference"].iloc[0])
    return (
        f"Differences are from {reference}, of {', '.join(study.entry['studies'])}.\n\n{sound}\n"
        "## With stalled and unfinished runs\n\nThe same of all runs, those included that enter no "
        f"verdict; for description only.\n\n{every}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row a method, the largest gain first; filled where there is a verdict."""
    table = tables["table"]
    rows: dict[str, Any] = {
        f"{method_title(row['method'])} ({row['graphs']})": {
            "": {**row, "mean": row["mean_difference"]}
        }
        for row in records(table)
    }
    reference = method_title(tables["table"]["reference"].iloc[0])
    return figures.forests(
        f"{statistics.counted(table)}\n{study.title}",
        {"": rows},
        f"mean gain over {reference} and 95 % interval over graphs, whose number is in brackets",
        margin=study.margin["accuracy"],
    )
