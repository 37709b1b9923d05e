"""Kind ``curves``: accuracy, loss and run time round by round, as in FedDEP's Figure 6."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import runs
from feddep.reporting.frames import records
from feddep.reporting.markdown import table as pipe_table
from feddep.reporting.studies.common import drawing, text
from feddep.reporting.studies.common.study import KEYS, Study, sort_datasets, sort_frameworks, summarise

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is best on validation nodes and after the last
round; and seconds, means over the seeds, of training the classifier and of all that a framework makes before it. In the
figure lines are means over the seeds, bands reach from minimum to maximum, and time begins with what is made before.
One process plays all clients in turn: its time is the work of all of them together.
"""
MEASURED = {"test": "test accuracy", "loss": "training loss", "seconds": "run time in seconds"}


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: the summary over seeds, with total_seconds; ``rounds``: a row a framework and round.

    The columns of ``rounds``, for test accuracy, training loss and seconds since the first of what is made before the
    classifier: mean, low and high, over seeds.
    """
    summary = summarise(study)
    summary["total_seconds"] = summary["seconds"] + summary["seconds_before"]
    return {"table": summary, "rounds": _rounds(study)}


def _rounds(study: Study) -> pd.DataFrame:
    course = runs.curves(study.finished)
    course["seconds"] = np.concatenate([_seconds(one) for one in study.finished])
    over_seeds = course.groupby([*KEYS, "round"], sort=False, dropna=False)[list(MEASURED)].agg(["mean", "min", "max"])
    over_seeds.columns = [f"{quantity}_{end}" for quantity in MEASURED for end in ("mean", "low", "high")]
    return over_seeds.reset_index()


def _seconds(one: runs.FinishedRun) -> np.ndarray:
    """Time after each round, that of the stages before included; NaN where a run's provenance has none."""
    rounds = len(one.result["curve"]["round"])
    before = sum(one.provenance.get("seconds_before", {}).values())
    return before + np.array(one.provenance.get("seconds_by_round", [np.nan] * rounds))


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A line a framework, setting, dataset and number of clients."""
    several = tables["table"]["setting"].nunique() > 1
    options = list(study.options)
    header = [*(["setting"] if several else []), "dataset", "M", "framework", *options]
    header += ["best round on validation", "last round", "seconds", "seconds before"]
    lines = []
    for line in records(tables["table"]):
        clients = "" if line["clients"] is None else str(line["clients"])
        name = [text.dataset_title(line["dataset"]), clients, text.framework_title(line["framework"])]
        accuracies = [text.plus_minus(line[f"{which}mean"], line[f"{which}std"]) for which in ("", "last_")]
        times = ["" if line[part] is None else f"{line[part]:.1f}" for part in ("seconds", "seconds_before")]
        setting = [line["setting"]] if several else []
        lines.append([*setting, *name, *(text.value(line[option]) for option in options), *accuracies, *times])
    return pipe_table(header, lines)


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row of panels a setting, dataset and number of clients; a line a framework."""
    course = tables["rounds"]
    names = sort_frameworks(course["framework"])
    styles = drawing.line_styles(names)
    clients = sorted(course["clients"].dropna().unique()) or [None]
    settings = list(dict.fromkeys(course["setting"]))
    rows = []
    for setting, dataset, m in product(settings, sort_datasets(course["dataset"]), clients):
        here = course[(course["setting"] == setting) & (course["dataset"] == dataset)]
        # A framework that sees the whole graph stands beside the others at each number of clients.
        shown = here[here["clients"].isna() | (here["clients"] == m).fillna(False)]
        title = text.place_title(dataset, m) + ("" if len(settings) == 1 else f"\nsetting {setting}")
        if len(shown):
            rows.append((title, shown))
    with drawing.style():
        drawn, axes = drawing.panels(len(rows), len(MEASURED), (9.0, 0.9 + 2.1 * len(rows)))
        for line, (title, shown) in zip(axes, rows, strict=True):
            for ax, (quantity, label) in zip(line, MEASURED.items(), strict=True):
                for name in sort_frameworks(shown["framework"]):
                    points, (colour, dash) = shown[shown["framework"] == name], styles[name]
                    ax.plot(points["round"], points[f"{quantity}_mean"], color=colour, linestyle=dash, linewidth=1.3)
                    low, high = points[f"{quantity}_low"], points[f"{quantity}_high"]
                    ax.fill_between(points["round"], low, high, color=colour, alpha=0.15, linewidth=0)
                ax.set_ylabel(label)
                ax.margins(x=0.01)
            line[0].set_title(title, loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("round")
        handles = [drawing.sample(text.framework_title(n), color=styles[n][0], linestyle=styles[n][1]) for n in names]
        drawing.head(drawn, study.title, handles, columns=6)
    return drawn
