"""Figures of the main tables: accuracy and training curves of a setting, partitions.  Same results, same bytes."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feddep.reporting import drawing, published, runs
from feddep.reporting.frames import CELL, beside_clients, client_numbers, records
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
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


def _title(dataset: str, clients: int | None) -> str:
    return dataset_title(dataset) + (f", M = {clients}" if clients else "")


def _rows(axes: np.ndarray, table: pd.DataFrame) -> Iterator[tuple[np.ndarray, pd.DataFrame]]:
    """A row of panels a dataset, in the papers' order, with the dataset's rows; panels get titles."""
    for line, dataset in zip(axes, sort_datasets(table["dataset"]), strict=True):
        for ax, clients in zip(line, client_numbers(table), strict=True):
            ax.set_title(_title(dataset, clients), loc="left", pad=3)
        yield line, table[table["dataset"] == dataset]


def accuracy(summary: pd.DataFrame) -> Figure:
    """Ours against the papers': a row of panels a dataset, a column a number of clients, a line a method.

    Args:
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it; the rows of one setting.
    """
    columns, sources = client_numbers(summary), _sources(summary, "paper_{}_", "mean")
    of_datasets = summary.groupby("dataset")["method"].nunique()
    lines = [int(of_datasets[dataset]) for dataset in sort_datasets(summary["dataset"])]
    size = (1.5 + 2.5 * len(columns), 0.6 + sum(0.42 + 0.2 * count for count in lines))
    with drawing.style():
        figure, axes = drawing.panels(
            len(lines), len(columns), size, sharex="row", sharey="row", height_ratios=[1.6 + n for n in lines]
        )
        for line, shown in _rows(axes, summary):
            low, floor, high = _scale(shown)
            names = sort_methods(shown["method"])
            for ax, clients in zip(line, columns, strict=True):
                _dots(ax, beside_clients(shown, clients), names, floor, sources)
            line[0].set_xlim(low, high)
            line[0].set_yticks(range(len(names)), [method_title(name) for name in names])
            line[0].set_ylim(len(names) - 0.5, -0.5)
        for ax in axes[-1]:
            ax.set_xlabel(f"test accuracy{_spread(summary, sources)}")
        handles = [drawing.sample(source, **SOURCES[source]) for source in sources]
        if "fedavg" in set(summary["method"]):
            handles.append(drawing.sample("our FedAvg", color=drawing.INK, linestyle=":", linewidth=1))
        if any(_off_scale(shown) for _, shown in summary.groupby("dataset")):
            handles.append(
                drawing.sample("left of the scale", color=drawing.INK, linestyle="none", marker=_ARROW, markeredgewidth=0)
            )
        drawing.legend(figure, handles, len(handles))
    return figure


def _spread(summary: pd.DataFrame, sources: dict[str, str]) -> str:
    """What bars are, as far as there are any: of a single seed there is no standard deviation."""
    if summary["std"].notna().any():
        return ", mean ± standard deviation"
    papers = any(summary[f"{prefix}std"].notna().any() for prefix in sources.values())
    return "; bars: the papers' standard deviations" if papers else ""


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
    for row in records(rows):
        y = names.index(row["method"])
        if row["method"] == "fedavg":
            ax.axvline(row["mean"], color=drawing.INK, linestyle=":", linewidth=1, zorder=1)
        found = {source: (row[f"{prefix}mean"], row[f"{prefix}std"]) for source, prefix in sources.items()}
        low = [source for source, (mean, _) in found.items() if mean is not None and mean < floor]
        for k, source in enumerate(low):
            # Side by side, as letters are taller than the sources' distance; x as a share of the panel's width.
            text, place = f"{_ARROW.strip('$')} {found[source][0]:.3f}", y + (offsets[source] if len(low) == 1 else 0.0)
            look = {"fontsize": 6.5, "color": SOURCES[source]["color"], "transform": ax.get_yaxis_transform()}
            behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.4}  # a bar may pass there
            ax.text(0.02 + 0.18 * k, place, text, va="center", bbox=behind, **look)
        for source, (mean, std) in found.items():
            if mean is not None and source not in low:
                ax.errorbar(mean, y + offsets[source], xerr=std or 0.0, markersize=3.4, elinewidth=1, **SOURCES[source])
    drawing.lanes(ax, len(names))


def curves(rounds: pd.DataFrame) -> Figure:
    """Test accuracy after each round: a row of panels a dataset, a column a number of clients, a line a method.

    Lines are means over seeds, bands reach from minimum to maximum.

    Args:
        rounds: as :func:`feddep.reporting.runs.curves` gives it; the rows of one setting.
    """
    history, columns = runs.over_seeds(rounds, CELL, ["test"]), client_numbers(rounds)
    names = sort_methods(history["method"])
    styles, lines = drawing.line_styles(names), history["dataset"].nunique()
    with drawing.style():
        size = (1.5 + 2.5 * len(columns), 0.7 + 1.9 * lines)
        figure, axes = drawing.panels(lines, len(columns), size, sharex="all", sharey="row")
        for line, shown in _rows(axes, history):
            for ax, clients in zip(line, columns, strict=True):
                drawing.history(ax, beside_clients(shown, clients), "test", styles)
            line[0].set_ylabel("test accuracy")
        for ax in axes[-1]:
            ax.set_xlabel("round")
        drawing.legend(figure, drawing.method_samples(names, styles), 6)
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
        drawing.legend(figure, [drawing.sample(source, **SOURCES[source]) for source in sources], len(sources))
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
