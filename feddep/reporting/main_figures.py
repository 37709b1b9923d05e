"""Figures of the main tables: accuracy beside the papers', training curves, partitions.  Same results, same bytes."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from feddep.reporting import drawing, published, runs
from feddep.reporting.frames import CELL, beside_clients, client_numbers, of_place
from feddep.reporting.labels import dataset_title, framework_title, sort_datasets, sort_frameworks
from feddep.reporting.main_table import OURS

SOURCES: dict[str, dict[str, Any]] = {
    OURS: {"color": "#0072B2", "marker": "o", "markerfacecolor": "#0072B2", "linestyle": "none"},
    published.PAPERS["feddep"]: {"color": "#D55E00", "marker": "s", "markerfacecolor": "white", "linestyle": "none"},
    published.PAPERS["fedsage"]: {"color": "#009E73", "marker": "D", "markerfacecolor": "white", "linestyle": "none"},
}
_ARROW = "$◂$"
_OFF_SCALE = 0.25
"""Accuracies this far below a row's best are named at the edge instead of squeezing all others together."""
_LONGEST_BAR = 0.12
"""A bar that reaches further beyond the outermost point is cut off, for the same reason."""


def _sources(summary: pd.DataFrame, start: str, column: str) -> dict[str, str]:
    """Sources that have a number in ``column``, ours first, each with what its columns start with (a paper's: ``start``)."""
    papers = {title: start.format(paper) for paper, title in published.PAPERS.items()}
    return {OURS: "", **{title: prefix for title, prefix in papers.items() if summary[prefix + column].notna().any()}}


def _offsets(sources: dict[str, str], distance: float) -> dict[str, float]:
    """Where each source stands beside its row or column, so that they do not cover one another."""
    return {source: distance * (k - (len(sources) - 1) / 2) for k, source in enumerate(sources)}


def _groups(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Pairs of setting and dataset, datasets in the papers' order."""
    settings = dict.fromkeys(frame["setting"])
    return [pair for pair in product(settings, sort_datasets(frame["dataset"])) if len(of_place(frame, *pair))]


def _title(frame: pd.DataFrame, setting: str, dataset: str, clients: int | None) -> str:
    title = dataset_title(dataset) + (f", M = {clients}" if clients else "")
    return title if frame["setting"].nunique() == 1 else f"{title}\nsetting {setting}"


def _legend(figure: Figure, handles: list[Line2D], columns: int) -> None:
    figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)))


def accuracy(summary: pd.DataFrame) -> Figure:
    """Ours against the papers': a row of panels a dataset, a column a number of clients, a line a framework.

    Args:
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it.
    """
    groups, columns, sources = _groups(summary), client_numbers(summary), _sources(summary, "paper_{}_", "mean")
    names = {group: sort_frameworks(of_place(summary, *group)["framework"]) for group in groups}
    lines = [len(names[group]) for group in groups]
    size = (1.5 + 2.5 * len(columns), 0.6 + sum(0.55 + 0.34 * count for count in lines))
    with drawing.style():
        figure, axes = drawing.panels(
            len(groups), len(columns), size, sharex="row", sharey="row", height_ratios=[1.6 + n for n in lines]
        )
        for line, group in zip(axes, groups, strict=True):
            shown = of_place(summary, *group)
            low, floor, high = _scale(shown)
            for ax, clients in zip(line, columns, strict=True):
                _dots(ax, beside_clients(shown, clients), names[group], floor, sources)
                ax.set_title(_title(summary, *group, clients), loc="left")
            line[0].set_xlim(low, high)
            line[0].set_yticks(range(len(names[group])), [framework_title(name) for name in names[group]])
            line[0].set_ylim(len(names[group]) - 0.5, -0.5)
        for ax in axes[-1]:
            ax.set_xlabel("test accuracy, mean ± standard deviation")
        handles = [drawing.sample(source, **SOURCES[source]) for source in sources]
        if "fedavg" in set(summary["framework"]):
            handles.append(drawing.sample("our FedAvg", color=drawing.INK, linestyle=":", linewidth=1))
        if any(_off_scale(of_place(summary, *group)) for group in groups):
            handles.append(
                drawing.sample("left of the scale", color=drawing.INK, linestyle="none", marker=_ARROW, markeredgewidth=0)
            )
        _legend(figure, handles, 3 if len(columns) < 3 else len(handles))
    return figure


def _statistics(rows: pd.DataFrame, statistic: str) -> np.ndarray:
    """Ours and the papers'; shape (rows, 1 + papers)."""
    return rows[[statistic, *(f"paper_{paper}_{statistic}" for paper in published.PAPERS)]].to_numpy(dtype=float)


def _off_scale(rows: pd.DataFrame) -> bool:
    means = _statistics(rows, "mean")
    return bool(np.nanmin(means) < np.nanmax(means) - _OFF_SCALE)


def _scale(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Left end of the axis, the accuracy below which a point is off the scale, right end."""
    means, spreads = _statistics(rows, "mean"), np.nan_to_num(_statistics(rows, "std"))
    best = np.nanmax(means)
    floor = best - _OFF_SCALE
    shown = means >= floor  # false for NaN
    worst = means[shown].min()
    width = max(best - worst, 0.02)
    right = min((means + spreads)[shown].max(), best + _LONGEST_BAR)
    left = max((means - spreads)[shown].min(), worst - _LONGEST_BAR)
    if _off_scale(rows):
        left = min(left, worst - 0.3 * width)  # room for the numbers off the scale
    return left - 0.05 * width, floor, right + 0.05 * width


def _dots(ax: Axes, rows: pd.DataFrame, names: list[str], floor: float, sources: dict[str, str]) -> None:
    offsets = _offsets(sources, 0.25)
    for row in rows.to_dict("records"):
        y = names.index(row["framework"])
        if row["framework"] == "fedavg":
            ax.axvline(row["mean"], color=drawing.INK, linestyle=":", linewidth=1, zorder=1)
        for source, prefix in sources.items():
            mean, std, place = row[f"{prefix}mean"], row[f"{prefix}std"], y + offsets[source]
            if np.isnan(mean):
                continue
            if mean < floor:
                text = f"{_ARROW.strip('$')} {mean:.3f}"
                edge = ax.get_yaxis_transform()  # x as a share of the panel's width
                ax.text(0.02, place, text, transform=edge, va="center", fontsize=6.5, color=SOURCES[source]["color"])
                continue
            error = 0.0 if np.isnan(std) else std
            ax.errorbar(mean, place, xerr=error, markersize=4, elinewidth=1, **SOURCES[source])
    drawing.lanes(ax, len(names))


def curves(rounds: pd.DataFrame) -> Figure:
    """Training curves: a row of panels a dataset and number of clients; lines are means over seeds, bands minimum to maximum.

    Args:
        rounds: as :func:`feddep.reporting.runs.curves` gives it.
    """
    quantities = {"validation": "validation accuracy", "test": "test accuracy", "loss": "training loss"}
    course = runs.over_seeds(rounds, CELL, list(quantities))
    rows = []
    for group in _groups(course):
        here = of_place(course, *group)
        rows += [(_title(course, *group, clients), beside_clients(here, clients)) for clients in client_numbers(here)]
    with drawing.style():
        figure, handles = drawing.over_rounds(rows, quantities, 0.7, shared=True)
        _legend(figure, handles, 6)
    return figure


def partitions(summary: pd.DataFrame) -> Figure:
    """Edges between clients, ours and the papers': a panel a dataset.

    Args:
        summary: as :func:`feddep.reporting.partitions.summarise` gives it.
    """
    datasets, sources = sort_datasets(summary["dataset"]), _sources(summary, "{}_", "missing_edges")
    with drawing.style():
        figure, axes = drawing.tiles(len(datasets), 4, lambda rows, columns: (max(4.2, 2.3 * columns), 0.6 + 2.0 * rows))
        for ax, dataset in zip(axes.flat, datasets, strict=False):
            _missing_edges(ax, summary[summary["dataset"] == dataset].to_dict("records"), sources)
            ax.set_title(dataset_title(dataset), loc="left")
        for ax in axes[:, 0] if datasets else []:
            ax.set_ylabel("missing edges")
        _legend(figure, [drawing.sample(source, **SOURCES[source]) for source in sources], len(sources))
    return figure


def _missing_edges(ax: Axes, rows: list[dict], sources: dict[str, str]) -> None:
    offsets = _offsets(sources, 0.2)
    for (source, prefix), (x, row) in product(sources.items(), enumerate(rows)):
        value, spread = row[f"{prefix}missing_edges"], row["missing_edges_std"] if source == OURS else np.nan
        if not np.isnan(value):
            error = 0.0 if np.isnan(spread) else spread
            ax.errorbar(x + offsets[source], value, yerr=error, markersize=5, elinewidth=1, **SOURCES[source])
    ax.set_xticks(range(len(rows)), [f"M = {row['clients']}" for row in rows])
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.set_ylim(0, 1.08 * ax.get_ylim()[1])
    ax.grid(axis="x", visible=False)
