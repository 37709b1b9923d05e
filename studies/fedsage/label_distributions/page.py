"""The page: distances from the true distribution, a table a dataset; and a figure of the
distributions of the first seed.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, in_paper_order, of_place, records
from feddep.reporting.labels import method_title, place_title, sort_methods
from studies import measuring

PLACE = ["setting", "dataset", "clients"]
Bars = list[tuple[str, np.ndarray]]
"""Distributions over classes, each with its name."""


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table, the text and the figure."""
    counts = tables["label_distributions"]
    summary = summarise(counts)
    text = measuring.text("label_distributions", tables=md.sections(summary, _block))
    return {"table.csv": summary, "page.md": text, "figure": figure(counts, summary)}


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Distance of distributions from the true ones, one row a place and method, datasets in the
    papers' order.

    Returns:
        setting, dataset, clients, method (NA for what clients hold), seeds, mean, std: see the
        notes of the page.
    """
    rows = []
    for key, run in measured.groupby([*PLACE, "method", "seed"], sort=False, dropna=False):
        counts = {
            what: part.pivot(index="number", columns="label", values="nodes")
            for what, part in run.groupby("what")
        }
        of = dict(zip([*PLACE, "method", "seed"], key, strict=True))
        rows.append({**of, "distance": _distance(counts["predicted"], counts["true"])})
        if "held" in counts:
            rows.append(
                {
                    **of,
                    "method": None,
                    "distance": _distance(counts["held"], counts["held"].sum().to_frame().T),
                }
            )
    # Every method of a place has the same clients, whose distance is to count once.
    table = pd.DataFrame(rows).drop_duplicates([*PLACE, "method", "seed"])
    groups = table.groupby([*PLACE, "method"], sort=False, dropna=False)["distance"]
    summary = (
        groups.agg(seeds="size", mean="mean", std="std").reset_index().astype({"clients": "Int64"})
    )
    return in_paper_order(summary, [*PLACE, "method"])


def _distance(counts: pd.DataFrame, truth: pd.DataFrame) -> float:
    """Mean total variation of the rows of ``counts`` from the only row of ``truth``."""
    p, q = (table.to_numpy(dtype=float) for table in (counts, truth))
    return float(0.5 * np.abs(p / p.sum(axis=1, keepdims=True) - q / q.sum()).sum(axis=1).mean())


def _block(block: pd.DataFrame) -> str:
    lines = []
    for line in records(block):
        clients = "whole graph" if line["clients"] is None else str(line["clients"])
        name = "held by clients" if line["method"] is None else method_title(line["method"])
        lines.append([clients, name, md.plus_minus(line["mean"], line["std"])])
    return md.table(["M", "", "distance from the true distribution"], lines)


def figure(measured: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Shares of classes for the first seed, a row of panels a place: left what clients hold, right
    what models predict; headed by distances of :func:`summarise`.
    """
    first = measured[measured["seed"] == measured["seed"].iloc[0]]
    classes = int(first["label"].max()) + 1
    places = [tuple(place.values()) for place in records(first[PLACE].drop_duplicates())]
    places = [place for place in places if place[2] is not None] or places
    rows = (
        beside_clients(of_place(first, setting, dataset), clients)
        for setting, dataset, clients in places
    )
    bars = [{"held": _held(here), "predicted": _predicted(here)} for here in rows]
    heights = [0.7 + 0.14 * max(map(len, pair.values())) for pair in bars]
    with drawing.style():
        drawn, axes = drawing.panels(len(places), 2, sum(heights), height_ratios=heights)
        for line, (setting, dataset, clients), pair in zip(axes, places, bars, strict=True):
            of_setting = f", setting {setting}" if first["setting"].nunique() > 1 else ""
            for ax, (shown, named) in zip(line, pair.items(), strict=True):
                _draw(ax, named)
                ax.set_title(f"{place_title(dataset, clients)}{of_setting}: {shown}", loc="left")
                ax.tick_params(axis="y", labelsize=6)
        for ax in axes[-1]:
            ax.set_xlabel("share of nodes")
        handles = [
            drawing.sample(f"class {k}", color=drawing.colour(k), marker="s", linestyle="none")
            for k in range(classes)
        ]
        held, predicted = (
            summary.loc[here, "mean"].max()
            for here in (summary["method"].isna(), summary["method"].notna())
        )
        title = f"Classes of clients differ by {held:.0%}, predicted ones by up to {predicted:.0%}"
        drawing.head(drawn, f"{title}\nShares of classes, first seed", handles, columns=8)
    return drawn


def _held(here: pd.DataFrame) -> Bars:
    """Of all nodes and of each client's; every method of a place has the same clients."""
    by_client = _of_first_method(here[here["what"] == "held"])
    bars = [
        ("all nodes", by_client.sum(axis=0)),
        *((f"client {k + 1}", row) for k, row in enumerate(by_client)),
    ]
    return bars if len(by_client) else []


def _predicted(here: pd.DataFrame) -> Bars:
    """Of the test nodes by their labels, and as each model predicts them; models that see the whole
    graph stand at each M.
    """
    bars: Bars = [("test nodes", _of_first_method(here[here["what"] == "true"])[0])]
    predicted = here[here["what"] == "predicted"]
    for method in sort_methods(predicted["method"]):
        models = _of_first_method(predicted[predicted["method"] == method])
        title = method_title(method)
        names = (
            [title]
            if len(models) == 1
            else [f"{title}, client {k + 1}" for k in range(len(models))]
        )
        bars += zip(names, models, strict=True)
    return bars


def _of_first_method(counts: pd.DataFrame) -> np.ndarray:
    """Numbers of nodes of the first method in a table, shape (models or clients, classes)."""
    first = counts[counts["method"] == counts["method"].iloc[0]] if len(counts) else counts
    return first.pivot(index="number", columns="label", values="nodes").to_numpy(dtype=float)


def _draw(ax: Axes, bars: Bars) -> None:
    for y, (_, counts) in enumerate(bars):
        widths = counts / counts.sum()
        colours = [drawing.colour(k) for k in range(len(counts))]
        ax.barh(
            y,
            widths,
            left=np.cumsum(widths) - widths,
            height=0.78,
            color=colours,
            edgecolor="white",
            linewidth=0.5,
        )
    ax.set_yticks(range(len(bars)), [name for name, _ in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.grid(axis="y", visible=False)
