"""The style that all figures share: colours, type, legends, and kinds of panels.  No global state of pyplot."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from feddep.reporting.labels import framework_title, sort_frameworks

_STYLE: Any = {
    "svg.hashsalt": "feddep",  # else equal shapes in an SVG get ids at random
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine sets the same type
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
INK = "#333333"
_RULE = "#eeeeee"

# Okabe and Ito's palette, told apart by readers with any colour vision; shapes say the same once more.
_LINES = {
    "global": ("#000000", "--"),
    "local": ("#888888", "-"),
    "locsage_plus": ("#888888", "--"),
    "fedavg": ("#0072B2", "-"),
    "fedgnn": ("#56B4E9", "-"),
    "fedgraph": ("#009E73", "-"),
    "fedgsl": ("#009E73", "--"),
    "fedsage_plus": ("#E69F00", "-"),
    "fedsage_plus_shared": ("#E69F00", "--"),
    "feddep_wo_dgen": ("#CC79A7", "--"),
    "feddep_wo_proto": ("#CC79A7", ":"),
    "feddep_wo_nfdp": ("#CC79A7", "-."),
    "feddep": ("#D55E00", "-"),
}
_FURTHER_COLOURS = ("#332288", "#882255", "#999933", "#44AA99")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", *_FURTHER_COLOURS)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")


def style() -> Any:
    """The context that every figure is made and saved in."""
    return mpl.rc_context(_STYLE)


def colour(number: int) -> str:
    """The k-th colour, from 0; they repeat."""
    return COLOURS[number % len(COLOURS)]


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure without pyplot's global state, and its axes, shape (rows, columns)."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def tiles(count: int, most: int, size: Callable[[int, int], tuple[float, float]]) -> tuple[Figure, np.ndarray]:
    """As :func:`panels`, for so many panels, at most ``most`` in a row; those left over are blank.

    Args:
        count: number of panels.
        most: most columns.
        size: from numbers of rows and columns to the figure's width and height.
    """
    columns = min(most, max(1, count))
    rows = -(-max(1, count) // columns)
    figure, axes = panels(rows, columns, size(rows, columns))
    for ax in list(axes.flat)[count:]:
        ax.set_axis_off()
    return figure, axes


def sample(label: str, **style: Any) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], markersize=5, label=label, **style)


def line_styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and dash of its own for each framework or spelled variant; a row of the papers has the same in every figure."""
    further = [name for name in names if name not in _LINES]
    count = len(_FURTHER_COLOURS)
    return _LINES | {name: (_FURTHER_COLOURS[k % count], DASHES[k // count % len(DASHES)]) for k, name in enumerate(further)}


def head(figure: Figure, title: str, handles: Sequence[Line2D] = (), columns: int = 4) -> None:
    """The title above the panels; where there are handles, as that of the legend."""
    title = title.replace("$", r"\$")  # two of them would begin and end a formula
    if handles:
        options: Any = {"title": title, "title_fontproperties": {"weight": "bold", "size": 9}}
        figure.legend(handles=list(handles), loc="outside upper center", ncols=min(columns, len(handles)), **options)
    else:
        figure.suptitle(title, fontsize=9, fontweight="bold")


def lanes(ax: Axes, count: int) -> None:
    """Rules between so many rows, which are a unit apart, in place of a grid."""
    ax.grid(axis="y", visible=False)
    for y in range(1, count):
        ax.axhline(y - 0.5, color=_RULE, linewidth=0.6, zorder=0)


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
            place, shade = row + step * (k - (len(series) - 1) / 2), colours[name]
            if point.get("mean_difference") is None:
                continue
            if point.get("low") is not None:
                ax.hlines(place, point["low"], point["high"], color=shade, linewidth=1.2)
            face = shade if point.get("significant", True) else "white"
            ax.plot(point["mean_difference"], place, color=shade, marker="o", markersize=4.5, markerfacecolor=face)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    lanes(ax, len(rows))


def over_rounds(
    rows: Sequence[tuple[str, pd.DataFrame]], quantities: Mapping[str, str], margin: float, shared: bool = False
) -> tuple[Figure, list[Line2D]]:
    """Quantities round by round: a row of panels a place, a line a framework, lines with bands around them.

    Args:
        rows: for each row its title, and a row a framework and round: framework, round, and of each quantity its mean, low and
            high, such as ``loss_mean``, ``loss_low`` and ``loss_high``.
        quantities: the columns, each with the label of its axis.
        margin: height above the panels, in inches.
        shared: whether the first two columns share an axis.

    Returns:
        The figure, and entries of a legend.
    """
    names = sort_frameworks(name for _, shown in rows for name in sort_frameworks(shown["framework"]))
    styles = line_styles(names)
    figure, axes = panels(len(rows), len(quantities), (9.0, margin + 2.1 * len(rows)))
    for line, (title, shown) in zip(axes, rows, strict=True):
        if shared:
            line[1].sharey(line[0])
        for ax, (quantity, label) in zip(line, quantities.items(), strict=True):
            for name in sort_frameworks(shown["framework"]):
                points, (shade, dash) = shown[shown["framework"] == name], styles[name]
                ax.plot(points["round"], points[f"{quantity}_mean"], color=shade, linestyle=dash, linewidth=1.3)
                low, high = points[f"{quantity}_low"], points[f"{quantity}_high"]
                ax.fill_between(points["round"], low, high, color=shade, alpha=0.15, linewidth=0)
            ax.set_ylabel(label)
            ax.margins(x=0.01)
        line[0].set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel("round")
    return figure, [sample(framework_title(name), color=styles[name][0], linestyle=styles[name][1]) for name in names]


def svg(figure: Figure) -> str:
    """The figure as SVG; the bytes depend on the figure and matplotlib's version only."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    # Paths to a hundredth of a point: what matplotlib writes beyond that nobody sees, and it is a third of the file.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), buffer.getvalue())
    # Ids by number: matplotlib's are digests of coordinates, whose last bit differs between runs of one layout.
    ids = {
        found: f"{found[0]}{number}" for number, found in enumerate(dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text)))
    }
    return re.sub(r'(?<=id=")[a-z][0-9a-f]{10}(?=")|(?<=#)[a-z][0-9a-f]{10}\b', lambda name: ids.get(name[0], name[0]), text)
