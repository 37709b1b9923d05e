"""Output of ``feddep compare``: methods on the same splits and partitions, paired by seed, as a
table and a figure.
"""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from feddep.config.models import Margin
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.labels import method_title
from feddep.reporting.output import write
from feddep.reporting.statistics import FLAWS

ACCURACIES = {
    "test": "global",
    "local_before": "local, before",
    "local_after": "local, after",
    "owners": "owners",
}
"""Columns of :func:`feddep.api.compare`, and how a table calls them."""
_NOTES = f"""\
Accuracies of the test nodes at the round best on validation nodes, mean ± sample
standard deviation over seeds: on the global graph, and locally, each node classified by its owner,
before and after the local steps of a round; *owners*: that of the two which is better on validation
nodes.  *Out of the box*: the hyperparameters that a recorded search chose on other graphs.
Differences are of the owners' accuracy where there is one, else of the global one.
{statistics.HOW_JUDGED}
"""


def table(runs: pd.DataFrame) -> str:
    """The accuracies of methods, a row each, as Markdown; ``runs`` is what
    :func:`feddep.api.compare` gives.
    """
    shown = _accuracies(runs)
    lines = [
        [
            method_title(str(name)),
            str(len(rows)),
            *(_spread(rows[column]) for column in shown),
            f"{rows['bytes'].mean() / 1e6:.3g}",
            *(_counted(rows[flaw]) for flaw in FLAWS),
            " and ".join(rows["configuration"].unique()),
        ]
        for name, rows in runs.groupby("method", sort=False)
    ]
    return md.table(["", "seeds", *shown.values(), "MB", *FLAWS, "configuration"], lines)


def _counted(flawed: pd.Series) -> str:
    return "all" if flawed.all() else str(flawed.sum() or "")


def paired(runs: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each method less that of the first, paired by seed
    (:func:`feddep.reporting.statistics.compare`).

    It is the owners' accuracy where there is one, else that on the global graph.
    """
    first = runs["method"] == runs["method"].iloc[0]
    test = runs["owners" if "owners" in runs else "test"]
    runs = runs.assign(setting="", dataset="", clients=1, test=test)
    found = statistics.compare(runs[~first], runs[first], Margin().model_dump())
    return found.assign(reference=runs["method"].iloc[0]).drop(columns=statistics.PLACE)


def figure(runs: pd.DataFrame, found: pd.DataFrame) -> Figure:
    """Mean and standard deviation of each method's accuracies, headed by what its differences
    (:func:`paired`) say.
    """
    rows = {
        method_title(str(name)): {
            title: figures.spread(of[column].mean(), of[column].std())
            for column, title in _accuracies(runs).items()
            if of[column].notna().any()
        }
        for name, of in runs.groupby("method", sort=False)
    }
    title = f"{statistics.finding(found, Margin().model_dump())}\nComparison"
    label = "accuracy of the test nodes, mean and standard deviation"
    return figures.forests(title, {"": rows}, label, rule=None)


def write_comparison(runs: pd.DataFrame, folder: Path, note: str = "") -> str:
    """Write ``runs.csv``, ``differences.csv``, ``page.md`` with a note, and then the figure to a
    folder; returns the page.
    """
    found = paired(runs)
    differences = md.shown(found, ["method", "reference", "seeds", *statistics.SHOWN], [])
    drawn = figure(runs, found)
    image = f"![{drawn.get_label()}](figure.svg)"
    parts = ["# Comparison", image, _NOTES, table(runs), note, differences]
    page = "\n\n".join(part.strip() for part in parts if part) + "\n"
    write(folder, {"runs.csv": runs, "differences.csv": found, "page.md": page, "figure": drawn})
    return page


def _accuracies(runs: pd.DataFrame) -> dict[str, str]:
    return {name: title for name, title in ACCURACIES.items() if name in runs and runs[name].any()}


def _spread(values: pd.Series) -> str:
    return (
        ""
        if values.isna().any()
        else f"{values.mean():.4f}" + ("" if len(values) < 2 else f" ± {values.std():.4f}")
    )
