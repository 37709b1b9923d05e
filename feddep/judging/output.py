"""What ``feddep judge`` writes: tables, a page, a figure, a row in LaTeX, and ``row.yaml``."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from matplotlib.figure import Figure

from feddep import __version__, judging
from feddep.judging import judge, predictions
from feddep.judging.judge import USES
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, distinguishing, method_title
from feddep.reporting.load import Study

JUDGED = """\
Grade: **judged**. The predicted classes were compared with the labels on divisions drawn here.
Labels are public: this proves arithmetic, and not training.
"""
_NOTES = f"""\
{statistics.HOW_JUDGED}
*Rank*: by mean accuracy among the methods of the table, with the 95 % interval of a bootstrap over
seeds; over graphs, of a bootstrap over graphs, which says little of few.
"""


def contents(
    study: Study,
    tables: Mapping[str, pd.DataFrame],
    scored: pd.DataFrame,
    row: Mapping[str, Any],
    notes: str = JUDGED,
) -> dict[str, Any]:
    """The files by name (:func:`feddep.reporting.output.write`).

    Args:
        study: the recorded runs.
        tables: of :func:`feddep.judging.judge.compare`.
        scored: what these were made of.
        row: what ``row.yaml`` has beside accuracies and verdicts.
        notes: how the accuracies came about.
    """
    own, name = tables["table"], tables["table"]["method"].iloc[0]
    short = distinguishing(own["dataset"])
    titles = {label: dataset_title(short[label]) for label in short}
    drawn = _figure(name, tables["gains"], titles, study.margin["accuracy"])
    means = scored.groupby("graph", sort=False)[["test", "validation"]].mean().round(6)
    return {
        **{f"{key}.csv": table for key, table in tables.items()},
        "seeds.csv": scored,
        "page.md": _page(f"![{drawn.get_label()}](figure.svg)\n\n{notes}", name, tables, titles),
        "figure": drawn,
        "row.tex": _latex(name, own, titles),
        "row.yaml": yaml.safe_dump(
            {**row, "claims": means.to_dict("index"), "verdicts": judge.verdicts(tables, scored)},
            sort_keys=False,
            default_flow_style=None,
            width=math.inf,
        ),
    }


def _page(
    notes: str, name: str, tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]
) -> str:
    own, pooled, gains = (tables[each] for each in ("table", "over_graphs", "gains"))
    named = own.assign(graph=own["dataset"].map(titles))
    oracle = f"above {method_title(statistics.BOUND)}, which knows all neighbours"
    flags = [f"**{graph}: {oracle}.**\n\n" for graph in named.loc[named["above_oracle"], "graph"]]
    rivals = [
        f"### {titles[str(dataset)]}\n\n{md.shown(of, ['method', *statistics.SHOWN], [])}\n"
        for dataset, of in gains.groupby("dataset", sort=False)
    ]
    over_graphs = (
        md.shown(pooled, [*statistics.POOLED, "rank"], [])
        if len(pooled)
        else "On no graph is there a verdict that counts.\n"
    )
    on_graph = md.shown(named, ["graph", "mean", *statistics.SHOWN, "rank"], [])
    return (
        f"# {method_title(name)}\n\n{notes}\n{_NOTES}\n{''.join(flags)}"
        f"## On each graph\n\nDifferences are from {method_title(own['reference'].iloc[0])}.\n\n"
        f"{on_graph}\n## On graphs like these\n\n"
        f"{over_graphs}\n## Differences from each recorded method\n\n"
        f"{''.join(rivals)}"
    )


def _figure(name: str, gains: pd.DataFrame, titles: Mapping[str, str], margin: float) -> Figure:
    drawn: dict[str, dict[str, Any]] = {}
    for row in records(gains.sort_values("mean_difference")):
        point = {"": {**row, "mean": row["mean_difference"]}}
        drawn.setdefault(titles[row["dataset"]], {})[method_title(row["method"])] = point
    label = f"accuracy of {method_title(name)} less that of a method, mean and 95 % interval"
    better, worse = ((gains["verdict"] == verdict).sum() for verdict in ("better", "worse"))
    title = (
        f"Better in {better} of {len(gains)} comparisons with recorded methods, worse in {worse}"
    )
    return figures.forests(f"{title}\n{method_title(name)}", drawn, label, margin=margin)


def _latex(name: str, own: pd.DataFrame, titles: Mapping[str, str]) -> str:
    cells = [
        rf"${100 * row['mean']:.1f} \pm {100 * row['std']:.1f}$ ({row['verdict']})"
        for row in records(own)
    ]
    head = " & ".join(["% method", *own["dataset"].map(titles)])
    return f"{head}\n{' & '.join([method_title(name), *cells])} \\\\\n".replace("_", r"\_")


def row(name: str, study: str, uses: Collection[str], files: Sequence[Path] = ()) -> dict[str, Any]:
    """The beginning of a row (:data:`feddep.judging.rows.Row`); what is empty, its author fills in.

    Args:
        name: the method.
        study: the study that it stands beside.
        uses: what of :data:`feddep.judging.judge.USES` the method uses.
        files: its predictions.
    """
    return {
        "format": 1,
        "method": {"name": name, "class": "", "paper": "", "license": ""},
        "code": {"url": "", "commit": "", "command": ""},
        "submitter": {"name": "", "contact": ""},
        "uses": {
            **{each: each in uses for each in USES},
            "external_data": False,
            "validation_labels": "selection",
        },
        "protocol": {"study": study, "revision": judging.REVISION},
        "feddep": __version__,
        "search": {"trials": 0, "seeds": [], "chosen": {}},
        "files": {file.stem: predictions.identity(file) for file in files},
    }
