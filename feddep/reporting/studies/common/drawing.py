"""What the figures of studies share, in the style of all figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from feddep.reporting.drawing import DASHES, FURTHER_COLOURS, INK, line_styles, panels, sample, style

__all__ = ["COLOURS", "DASHES", "INK", "MARKERS", "forest", "head", "line_styles", "panels", "sample", "style"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", *FURTHER_COLOURS)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")


def forest(ax: Axes, rows: Sequence[str], series: Mapping[str, Sequence[Mapping[str, Any]]], colours: Mapping[str, str]) -> None:
    """Mean differences with their intervals around a rule at zero.

    Args:
        ax: where to draw.
        rows: what the rows are called, from above.
        series: a colour's points, one a row: mean_difference, low and high, each of which may be missing or None; a point is
            hollow if it has ``significant`` and that is not true.
        colours: of each of the series.
    """
    ax.axvline(0.0, color=INK, linewidth=0.8, zorder=1)
    step = 0.7 / max(1, len(series))
    for k, (name, points) in enumerate(series.items()):
        for row, point in enumerate(points):
            place, colour = row + step * (k - (len(series) - 1) / 2), colours[name]
            if point.get("mean_difference") is None:
                continue
            if point.get("low") is not None:
                ax.hlines(place, point["low"], point["high"], color=colour, linewidth=1.2)
            face = colour if point.get("significant", True) else "white"
            ax.plot(point["mean_difference"], place, color=colour, marker="o", markersize=4.5, markerfacecolor=face)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    for y in range(1, len(rows)):
        ax.axhline(y - 0.5, color="#eeeeee", linewidth=0.6, zorder=0)


def head(figure: Figure, title: str, handles: Sequence[Line2D] = (), columns: int = 4) -> None:
    """The title above the panels; where there are handles, as that of the legend."""
    if handles:
        options: Any = {"title": title, "title_fontproperties": {"weight": "bold", "size": 9}}
        figure.legend(handles=list(handles), loc="outside upper center", ncols=min(columns, len(handles)), **options)
    else:
        figure.suptitle(title, fontsize=9, fontweight="bold")
