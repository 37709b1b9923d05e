"""Labels that clients hold and that models predict (:mod:`feddep.label_distributions`): FedSage's Figure 4."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feddep.config import Config
from feddep.reporting import measured as of_runs
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import sort_frameworks
from feddep.reporting.markdown import table as pipe_table
from feddep.reporting.studies.common import drawing, text

KEY = "label_distributions"
"""The key of the configuration that names the runs."""
PLACE = ["setting", "dataset", "clients"]
_NOTES = """\
How far a distribution p over classes is from the true one q: total variation, ½ Σ|p − q|, the share of nodes that would have to
change their class. *Held*: labels of a client's nodes beside those of all nodes, mean over clients. Then what models predict for
the test nodes of the global graph, beside these nodes' labels; where each client has its own model, the mean over them. Over
seeds: mean ± sample standard deviation.
"""


def load(config: Config) -> pd.DataFrame:
    """Counts of all runs that the key ``label_distributions`` names: the columns of the run, what, number, label and nodes.

    Raises:
        DataError: if a run is not measured yet, or no run is named.
    """
    return of_runs.load(config, KEY)


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Distance of distributions from the true ones, one row a place and framework, datasets in the papers' order.

    Returns:
        setting, dataset, clients, framework (NA for what clients hold), seeds, mean, std: see the notes of the page.
    """
    rows = []
    for key, run in measured.groupby([*PLACE, "framework", "seed"], sort=False, dropna=False):
        counts = {what: part.pivot(index="number", columns="label", values="nodes") for what, part in run.groupby("what")}
        of = dict(zip([*PLACE, "framework", "seed"], key, strict=True))
        rows.append({**of, "distance": _distance(counts["predicted"], counts["true"])})
        if "held" in counts:
            rows.append({**of, "framework": None, "distance": _distance(counts["held"], counts["held"].sum().to_frame().T)})
    # Every framework of a place has the same clients, whose distance is to count once.
    table = pd.DataFrame(rows).drop_duplicates([*PLACE, "framework", "seed"])
    summary = (
        table.groupby([*PLACE, "framework"], sort=False, dropna=False)["distance"]
        .agg(seeds="size", mean="mean", std="std")
        .reset_index()
        .astype({"clients": "Int64"})
    )
    return in_paper_order(summary, [*PLACE, "framework"])


def _distance(counts: pd.DataFrame, truth: pd.DataFrame) -> float:
    """Mean total variation of the rows of ``counts`` from the only row of ``truth``."""
    p, q = (table.to_numpy(dtype=float) for table in (counts, truth))
    return float(0.5 * np.abs(p / p.sum(axis=1, keepdims=True) - q / q.sum()).sum(axis=1).mean())


def markdown(summary: pd.DataFrame) -> str:
    """A page with a table a dataset; a line a number of clients and framework."""
    parts = [f"# Label distributions\n\n{_NOTES}"]
    for (setting, dataset), block in summary.groupby(["setting", "dataset"], sort=False):
        lines = []
        for line in records(block):
            clients = "whole graph" if line["clients"] is None else str(line["clients"])
            name = "held by clients" if line["framework"] is None else text.framework_title(line["framework"])
            lines.append([clients, name, text.plus_minus(line["mean"], line["std"])])
        of_setting = "" if summary["setting"].nunique() == 1 else f", setting {setting}"
        page = pipe_table(["M", "", "distance from the true distribution"], lines)
        parts.append(f"## {text.dataset_title(str(dataset))}{of_setting}\n\n{page}")
    return "\n".join(parts)


def figure(measured: pd.DataFrame) -> Figure:
    """Shares of classes for the first seed, a row of panels a place: left what clients hold, right what models predict."""
    first = measured[measured["seed"] == measured["seed"].iloc[0]]
    places = list(dict.fromkeys((line["setting"], line["dataset"], line["clients"]) for line in records(first[PLACE])))
    places = [place for place in places if place[2] is not None] or places
    bars = [(_held(first, place), _predicted(first, place)) for place in places]
    classes = int(first["label"].max()) + 1
    heights = [1.2 + 0.21 * max(len(left), len(right)) for left, right in bars]
    several = first["setting"].nunique() > 1
    with drawing.style():
        drawn, axes = drawing.panels(len(places), 2, (9.0, 0.8 + sum(heights)), height_ratios=heights)
        for line, (setting, dataset, clients), (left, right) in zip(axes, places, bars, strict=True):
            of_setting = f", setting {setting}" if several else ""
            for ax, named, shown in ((line[0], left, "held"), (line[1], right, "predicted")):
                _draw(ax, named)
                ax.set_title(f"{text.place_title(dataset, clients)}{of_setting}: {shown}", loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("share of nodes")
        handles = [
            drawing.sample(f"class {k}", color=drawing.COLOURS[k % len(drawing.COLOURS)], marker="s", linestyle="none")
            for k in range(classes)
        ]
        drawing.head(drawn, "Label distributions", handles, columns=8)
    return drawn


Place = tuple[Any, ...]
"""Setting, dataset and number of clients."""
Bars = list[tuple[str, np.ndarray]]
"""Distributions over classes, each with its name."""


def _held(counts: pd.DataFrame, place: Place) -> Bars:
    """Of all nodes and of each client's; every framework of a place has the same clients."""
    here = _at(counts, place, "held")
    if here.empty:
        return []
    here = here[here["framework"] == here["framework"].iloc[0]]
    by_client = here.pivot(index="number", columns="label", values="nodes").to_numpy(dtype=float)
    return [("all nodes", by_client.sum(axis=0)), *((f"client {k + 1}", row) for k, row in enumerate(by_client))]


def _predicted(counts: pd.DataFrame, place: Place) -> Bars:
    """Of the test nodes by their labels, and as each model predicts them; models that see the whole graph stand at each M."""
    truth = _at(counts, place, "true")
    truth = truth[truth["framework"] == truth["framework"].iloc[0]]
    bars: Bars = [("test nodes", truth.sort_values("label")["nodes"].to_numpy(dtype=float))]
    whole = _at(counts, (*place[:2], None), "predicted")
    here = pd.concat([whole, _at(counts, place, "predicted")]).drop_duplicates(["framework", "number", "label"])
    for framework in sort_frameworks(here["framework"]):
        models = here[here["framework"] == framework].pivot(index="number", columns="label", values="nodes")
        title = text.framework_title(framework)
        names = [title] if len(models) == 1 else [f"{title}, client {k + 1}" for k in range(len(models))]
        bars += zip(names, models.to_numpy(dtype=float), strict=True)
    return bars


def _at(counts: pd.DataFrame, place: Place, what: str) -> pd.DataFrame:
    setting, dataset, clients = place
    at = counts["clients"].isna() if clients is None else (counts["clients"] == clients).fillna(False)
    return counts[(counts["setting"] == setting) & (counts["dataset"] == dataset) & at & (counts["what"] == what)]


def _draw(ax: Axes, bars: Bars) -> None:
    for y, (_, counts) in enumerate(bars):
        widths = counts / counts.sum()
        starts = np.cumsum(widths) - widths
        for k, (start, width) in enumerate(zip(starts, widths, strict=True)):
            colour = drawing.COLOURS[k % len(drawing.COLOURS)]
            ax.barh(y, width, left=start, height=0.78, color=colour, edgecolor="white", linewidth=0.5)
    ax.set_yticks(range(len(bars)), [name for name, _ in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.grid(axis="y", visible=False)
