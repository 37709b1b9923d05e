"""Kind ``curves``: accuracy, loss and run time round by round, as in FedDEP's Figure 6."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing, runs
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place, records
from feddep.reporting.labels import dataset_title, method_title, place_title, sort_datasets, sort_methods
from feddep.reporting.study_data import KEYS, Study, summarise
from feddep.reporting.undertrained import mark

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is best on validation nodes and after the last
round; and seconds, means over the seeds, of training the classifier and of all that a method makes before it. In the
figure lines are means over the seeds, bands reach from minimum to maximum, and time begins with what is made before.
One process plays all clients in turn: its time is the work of all of them together.
"""
MEASURED = {"test": "test accuracy", "loss": "training loss", "seconds": "run time in seconds"}


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: the summary over seeds, with total_seconds; ``rounds``: a row a method and round.

    The columns of ``rounds``, for test accuracy, training loss and seconds since the first of what is made before the
    classifier: mean, low and high, over seeds.
    """
    summary = summarise(study)
    summary["total_seconds"] = summary["seconds"] + summary["seconds_before"]
    return {"table": summary, "rounds": _rounds(study)}


def _rounds(study: Study) -> pd.DataFrame:
    history = runs.curves(study.finished)
    history["seconds"] = np.concatenate([_seconds(one) for one in study.finished])
    return runs.over_seeds(history, KEYS, list(MEASURED))


def _seconds(one: runs.FinishedRun) -> np.ndarray:
    """Time after each round, that of the stages before included; NaN where a run's provenance has none."""
    rounds = len(one.result["curve"]["round"])
    before = sum(one.provenance.get("seconds_before", {}).values())
    return before + np.array(one.provenance.get("seconds_by_round", [np.nan] * rounds))


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A line a method, setting, dataset and number of clients."""
    several = tables["table"]["setting"].nunique() > 1
    options = list(study.options)
    header = [*(["setting"] if several else []), "dataset", "M", "method", *options]
    header += ["best round on validation", "last round", "seconds", "seconds before"]
    lines = []
    for line in records(tables["table"]):
        name = [dataset_title(line["dataset"]), md.number(line["clients"], "d"), method_title(line["method"])]
        accuracies = [md.plus_minus(line[f"{which}mean"], line[f"{which}std"]) for which in ("", "last_")]
        accuracies[0] += mark(line["undertrained"])
        times = [md.number(line[part], ".1f") for part in ("seconds", "seconds_before")]
        lines.append([*([line["setting"]] if several else []), *name, *md.values(line, options), *accuracies, *times])
    return md.table(header, lines)


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row of panels a setting, dataset and number of clients; a line a method."""
    history = tables["rounds"]
    settings = list(dict.fromkeys(history["setting"]))
    rows = []
    for setting, dataset, m in product(settings, sort_datasets(history["dataset"]), client_numbers(history)):
        # A method that sees the whole graph stands beside the others at each number of clients.
        shown = beside_clients(of_place(history, setting, dataset), m)
        title = place_title(dataset, m) + ("" if len(settings) == 1 else f"\nsetting {setting}")
        if len(shown):
            rows.append((title, shown))
    names = sort_methods(history["method"])
    styles = drawing.line_styles(names)
    with drawing.style():
        drawn, axes = drawing.panels(len(rows), len(MEASURED), (9.0, 0.9 + 2.1 * len(rows)))
        for line, (title, shown) in zip(axes, rows, strict=True):
            for ax, (quantity, label) in zip(line, MEASURED.items(), strict=True):
                drawing.history(ax, shown, quantity, styles)
                ax.set_ylabel(label)
            line[0].set_title(title, loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("round")
        drawing.head(drawn, study.title, drawing.method_samples(names, styles), columns=6)
    return drawn
