"""Kind ``curves``: accuracy, loss and run time round by round, as in FedDEP's Figure 6."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing, runs
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place, records
from feddep.reporting.labels import dataset_title, framework_title, place_title, sort_datasets, sort_frameworks
from feddep.reporting.study_data import KEYS, Study, summarise
from feddep.reporting.undertrained import mark

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
    return runs.over_seeds(course, KEYS, list(MEASURED))


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
        name = [dataset_title(line["dataset"]), md.number(line["clients"], "d"), framework_title(line["framework"])]
        accuracies = [md.plus_minus(line[f"{which}mean"], line[f"{which}std"]) for which in ("", "last_")]
        accuracies[0] += mark(line["undertrained"])
        times = [md.number(line[part], ".1f") for part in ("seconds", "seconds_before")]
        lines.append([*([line["setting"]] if several else []), *name, *md.values(line, options), *accuracies, *times])
    return md.table(header, lines)


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row of panels a setting, dataset and number of clients; a line a framework."""
    course = tables["rounds"]
    settings = list(dict.fromkeys(course["setting"]))
    rows = []
    for setting, dataset, m in product(settings, sort_datasets(course["dataset"]), client_numbers(course)):
        # A framework that sees the whole graph stands beside the others at each number of clients.
        shown = beside_clients(of_place(course, setting, dataset), m)
        title = place_title(dataset, m) + ("" if len(settings) == 1 else f"\nsetting {setting}")
        if len(shown):
            rows.append((title, shown))
    names = sort_frameworks(course["framework"])
    styles = drawing.line_styles(names)
    with drawing.style():
        drawn, axes = drawing.panels(len(rows), len(MEASURED), (9.0, 0.9 + 2.1 * len(rows)))
        for line, (title, shown) in zip(axes, rows, strict=True):
            for ax, (quantity, label) in zip(line, MEASURED.items(), strict=True):
                drawing.course(ax, shown, quantity, styles)
                ax.set_ylabel(label)
            line[0].set_title(title, loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("round")
        drawing.head(drawn, study.title, drawing.framework_samples(names, styles), columns=6)
    return drawn
