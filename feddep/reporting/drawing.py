"""The style that all figures share: colours, type, legends, and kinds of panels.  No global state of pyplot."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from feddep.reporting.labels import method_title, sort_methods
from feddep.reporting.undertrained import MARK, mostly

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
_CHARACTERS_AN_INCH = 11
"""Of a title, in its type and size."""
_ROWS_A_COLUMN = 7
"""Of a forest plot; more are divided among two columns."""
INK = "#333333"
_RULE = "#eeeeee"
_NONE = "#dddddd"
_LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Of red, green and blue (ITU-R BT.709)."""

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
    """A figure as :func:`blank` makes it, and its axes, shape (rows, columns)."""
    figure = blank(size)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def blank(size: tuple[float, float]) -> Figure:
    """A figure of so many inches, without pyplot's global state and without axes."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


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


def undertrained_sample(points: Iterable[Mapping[str, Any]]) -> list[Line2D]:
    """The entry of a legend for the mark of :func:`forest`, or none where no point has it."""
    marked = any(mostly(point.get("undertrained")) for point in points)
    return [sample("most runs undertrained", color=INK, marker=r"$\ddag$", linestyle="none")] if marked else []


def line_styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and dash of its own for each method or spelled variant; a row of the papers has the same in every figure."""
    further = [name for name in names if name not in _LINES]
    count = len(_FURTHER_COLOURS)
    return _LINES | {name: (_FURTHER_COLOURS[k % count], DASHES[k // count % len(DASHES)]) for k, name in enumerate(further)}


def legend(figure: Figure, handles: Sequence[Line2D], columns: int, **options: Any) -> None:
    """A legend above the panels, within the figure: fewer columns than asked for and broken labels where it is too wide."""
    handles = list(handles)
    for number in range(min(columns, len(handles)), 0, -1):
        made = figure.legend(handles=handles, loc="outside upper center", ncols=number, **options)
        share = made.get_window_extent().width / figure.bbox.width
        if share <= 1:
            return
        made.remove()
    longest = max(len(str(handle.get_label())) for handle in handles)
    for handle in handles:
        handle.set_label(fill(str(handle.get_label()), max(20, int(0.9 * longest / share)), break_long_words=False))
    figure.legend(handles=handles, loc="outside upper center", **options)


def head(figure: Figure, title: str, handles: Sequence[Line2D] = (), columns: int = 4) -> None:
    """The title above the panels; where there are handles, as that of the legend."""
    title = fill(title, int(_CHARACTERS_AN_INCH * figure.get_figwidth()), break_long_words=False)
    title = title.replace("$", r"\$")  # two of them would begin and end a formula
    if handles:
        legend(figure, handles, columns, title=title, title_fontproperties={"weight": "bold", "size": 9})
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
            hollow if it has ``significant`` and that is not true, and marked if ``undertrained``, a share of its runs, is most.
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
            if mostly(point.get("undertrained")):
                look: Any = {"ha": "center", "va": "bottom", "fontsize": 6, "color": shade}
                ax.annotate(MARK, (point["mean_difference"], place), (0, 2), textcoords="offset points", **look)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    lanes(ax, len(rows))


def forests(
    rows: Sequence[str], series: Mapping[str, Sequence[Mapping[str, Any]]], colours: Mapping[str, str], label: str
) -> Figure:
    """As :func:`forest`, in a figure of its own with the label of its axis; many rows stand in two columns on the same scale."""
    columns = 1 if len(rows) <= _ROWS_A_COLUMN else 2
    length = -(-len(rows) // columns)
    figure, axes = panels(1, columns, (3.2 + 3.2 * columns, 1.5 + length * (0.2 + 0.11 * len(series))), sharex=True)
    for k, ax in enumerate(axes[0]):
        shown = slice(k * length, (k + 1) * length)
        forest(ax, rows[shown], {name: points[shown] for name, points in series.items()}, colours)
        ax.set_ylim(length - 0.5, -0.5)
        ax.set_xlabel(label)
    return figure


def heat_map(ax: Axes, values: np.ndarray, colours: str, limits: tuple[float, float], form: str) -> None:
    """Numbers in cells of their colour, the first row above; grey where there is none.

    Args:
        ax: where to draw; the cell of row i and column j is centred at (j + 0.5, i + 0.5).
        values: shape (rows, columns), NaN where there is none.
        colours: name of matplotlib's colour map.
        limits: the values of its first and last colour; what lies beyond them has these.
        form: how a number is written.
    """
    scale = mpl.colormaps[colours].with_extremes(bad=_NONE)
    mesh = ax.pcolormesh(np.ma.masked_invalid(values), cmap=scale, vmin=limits[0], vmax=limits[1], edgecolors="white")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            light = np.dot(mesh.to_rgba(value)[:3], _LUMINANCE) > 0.5
            look: Any = {"color": "black" if light else "white", "fontsize": 6, "ha": "center", "va": "center"}
            ax.text(column + 0.5, row + 0.5, format(value, form), **look)
    ax.set_ylim(len(values), 0)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def history(ax: Axes, shown: pd.DataFrame, quantity: str, styles: Mapping[str, tuple[str, str]]) -> None:
    """A quantity round by round: a line a method, with a band around it.

    Args:
        ax: where to draw.
        shown: a row a method and round: method, round, and the quantity's mean, low and high, such as ``loss_mean``,
            ``loss_low`` and ``loss_high``.
        quantity: which one.
        styles: colour and dash of each method, see :func:`line_styles`.
    """
    for name in sort_methods(shown["method"]):
        points, (shade, dash) = shown[shown["method"] == name], styles[name]
        ax.plot(points["round"], points[f"{quantity}_mean"], color=shade, linestyle=dash, linewidth=1.3)
        low, high = points[f"{quantity}_low"], points[f"{quantity}_high"]
        ax.fill_between(points["round"], low, high, color=shade, alpha=0.15, linewidth=0)
    ax.margins(x=0.01)


def method_samples(names: Sequence[str], styles: Mapping[str, tuple[str, str]]) -> list[Line2D]:
    """Entries of a legend for the lines of methods."""
    return [sample(method_title(name), color=styles[name][0], linestyle=styles[name][1]) for name in names]


def svg(figure: Figure) -> str:
    """The figure as SVG; the bytes depend on the figure and matplotlib's version only."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = re.sub(r"<!-- .*? -->", "", buffer.getvalue())  # what a text says, once more
    text = re.sub(r"\n\s*(?=<)", "\n", text)
    # Places to a hundredth of a point: what matplotlib writes beyond that nobody sees, and it is a third of the file.
    text = re.sub(r'(?<=[ \n])(d|x|y)="[^"]*"|translate\([^)]*\)', lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), text)
    # Ids by number: matplotlib's are digests of coordinates, whose last bit differs between runs of one layout.
    ids = {
        found: f"{found[0]}{number}" for number, found in enumerate(dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text)))
    }
    return re.sub(r'(?<=id=")[a-z][0-9a-f]{10}(?=")|(?<=#)[a-z][0-9a-f]{10}\b', lambda name: ids.get(name[0], name[0]), text)


def png(figure: Figure) -> bytes:
    """The figure as PNG with up to 256 colours, a third of the size of one with all; the bytes depend on what those of SVG do."""
    drawn, reduced = io.BytesIO(), io.BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=160)
    drawn.seek(0)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(reduced, format="png", optimize=True)
    return reduced.getvalue()
