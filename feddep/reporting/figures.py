"""The kinds of figures: lines over values, forests of intervals, histories over rounds, heat maps."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.reporting.drawing import DASHES, INK, MARKERS, colour, sample
from feddep.reporting.frames import ordered
from feddep.reporting.labels import method_title, sort_methods
from feddep.reporting.markdown import flaw, mark, value

Row = Mapping[str, Any]
_LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Of red, green and blue (ITU-R BT.709)."""


def lines(
    title: str,
    panels: Mapping[str, Sequence[Row]],
    x: Callable[[Row], Any],
    name: Callable[[Row], str],
    shade: Callable[[Row], str] = lambda row: "",
    *,
    labels: tuple[str, str],
    text: Callable[[Any], str] = value,
    most: int = 2,
    joined: bool = True,
) -> Figure:
    """Means and standard deviations over values that stand at equal distances.

    Args:
        title: the figure's.
        panels: by title the rows, with mean and std.
        x: a row's value; a curve whose first row has none is a horizontal line.
        name: what a row's curve is called, which its dash and marker tell, and its colour where there is but one shade.
        shade: what else tells curves apart, by their colour.
        labels: of both axes.
        text: how a value is written.
        most: most panels in a row.
        joined: whether a curve's points are joined.
    """
    rows = [row for of in panels.values() for row in of]
    names, shades = (list(dict.fromkeys(map(tell, rows))) for tell in (name, shade))

    def look(of: str, by: str) -> dict[str, Any]:
        k = names.index(of)
        shape = {"marker": MARKERS[k % len(MARKERS)], "linestyle": DASHES[k % len(DASHES)] if joined else "none"}
        return {"color": colour(k if len(shades) < 2 else shades.index(by)), **shape}

    width = max(2.2, 0.6 + max((0.55 * len({x(row) for row in of}) for of in panels.values()), default=0))
    with drawing.style():
        figure, axes = drawing.tiles(len(panels), most, lambda high, wide: (0.8 + max(width * wide, 4), 1.3 + 2.5 * high))
        for ax, (panel, of) in zip(axes.flat, panels.items(), strict=False):
            values, curves = ordered(map(x, of)), list(dict.fromkeys((name(row), shade(row)) for row in of))
            for k, curve in enumerate(curves):
                points = [row for row in of if (name(row), shade(row)) == curve]
                if x(points[0]) is None:
                    ax.axhline(points[0]["mean"], linewidth=1.1, **{**look(*curve), "marker": ""})
                    continue
                points.sort(key=lambda row: values.index(x(row)))
                offset = (0.25 if joined else 0.6) * ((k + 0.5) / len(curves) - 0.5)
                places, means = [values.index(x(row)) + offset for row in points], [row["mean"] for row in points]
                spreads = [row["std"] or 0.0 for row in points]
                ax.errorbar(places, means, yerr=spreads, markersize=4, linewidth=1.1, elinewidth=0.8, **look(*curve))
            _leave_out_stalled(ax, of)
            ax.set_xticks(range(len(values)), [text(each) for each in values])
            ax.set_xlim(-0.5, max(1, len(values)) - 0.5)
            ax.set_title(panel, loc="left")
            ax.set_xlabel(labels[0])
        for ax in axes[:, 0]:
            ax.set_ylabel(labels[1])
        handles = [sample(each, **{**look(each, shades[0]), **({"color": INK} if len(shades) > 1 else {})}) for each in names]
        handles += [sample(each, color=colour(k)) for k, each in enumerate(shades)] if len(shades) > 1 else []
        drawing.head(figure, title, handles)
    return figure


def _leave_out_stalled(ax: Axes, rows: Sequence[Row]) -> None:
    """Let runs that stalled set no axis: it spans the means of the others, where there are some."""
    means = [row["mean"] for row in rows if flaw(row) != "stalled"]
    if 0 < len(means) < len(rows):
        room = 0.1 * (max(means) - min(means)) + 0.01
        ax.set_ylim(min(means) - room, max(means) + room)


def forests(
    title: str,
    panels: Mapping[str, Mapping[str, Mapping[str, Row]]],
    label: str,
    *,
    most: int = 1,
    rules: Mapping[str, float] | None = None,
    far: float = np.inf,
) -> Figure:
    """Numbers with their intervals, around a rule.

    Args:
        title: the figure's.
        panels: by title, what its rows are called, from above, and the names of series, which colours tell: a mean with low and
            high, each of which may be None; a point is hollow if it has ``significant`` and that is not true, and marked if most
            of its runs stalled or are undertrained (:data:`feddep.reporting.markdown.MARKS`); one that stalled sets no axis.
        label: of the axis.
        most: most panels in a row.
        rules: by panel where its rule stands; without it at zero.
        far: points this far below a panel's highest are numbers at its edge instead of squeezing all others together.
    """
    names = list(dict.fromkeys(name for rows in panels.values() for points in rows.values() for name in points))
    drawn = [
        point for rows in panels.values() for points in rows.values() for point in points.values() if point["mean"] is not None
    ]
    high = max((len(rows) for rows in panels.values()), default=0) * (0.14 + 0.08 * len(names))
    alike = len({tuple(rows) for rows in panels.values()}) == 1
    with drawing.style():
        figure, axes = drawing.tiles(
            len(panels), most, lambda rows, columns: (2 + max(5, 2.4 * columns), 1.0 + (0.6 + high) * rows)
        )
        for ax, (panel, rows) in zip(axes.flat, panels.items(), strict=False):
            rule = 0.0 if rules is None else rules.get(panel)
            if rule is not None:
                ax.axvline(rule, color=INK, linewidth=0.8, linestyle="-" if rules is None else ":", zorder=1)
            known = [point for points in rows.values() for point in points.values() if point["mean"] is not None]
            means = [point["mean"] for point in known if flaw(point) != "stalled"] or [point["mean"] for point in known]
            lowest, highest = min(means, default=0.0), max(means, default=0.0)
            for number, points in enumerate(rows.values()):
                for name, point in points.items():
                    k = names.index(name)
                    place = number + 0.7 / len(names) * (k - (len(names) - 1) / 2)
                    ends = (max(lowest, highest - far), highest) if flaw(point) == "stalled" else (highest - far, math.inf)
                    _interval(ax, point, place, k, *ends)
            ax.set_yticks(range(len(rows)), list(rows) if ax in axes[:, 0] or not alike else [])
            ax.set_ylim(len(rows) - 0.5, -0.5)
            ax.set_title(panel, loc="left")
        figure.supxlabel(label, fontsize="medium")
        handles = [sample(name, color=colour(k), **_POINT) for k, name in enumerate(names)] if len(names) > 1 else []
        if not all(point.get("significant", True) for point in drawn):
            handles.append(sample("not significant", color=INK, markerfacecolor="white", **_POINT))
        for name, sign in {"undertrained": r"$\ddag$", "stalled": r"$\S$"}.items():
            if any(flaw(point) == name for point in drawn):
                handles.append(sample(f"most runs {name}", color=INK, marker=sign, linestyle="none"))
        drawing.head(figure, title, handles)
    return figure


_POINT: Any = {"marker": "o", "linestyle": "none"}


def _interval(ax: Axes, point: Row, place: float, number: int, floor: float, ceiling: float) -> None:
    """A point of a forest, of the series of this number; as text at the panel's edge where it is beyond floor or ceiling."""
    mean, shade = point["mean"], colour(number)
    if mean is None:
        return
    if not floor <= mean <= ceiling:
        look: Any = {"color": shade, "fontsize": 6, "va": "center", "transform": ax.get_yaxis_transform()}
        ax.text(0.01 + 0.2 * number, place, ("◂ " if mean < floor else "▸ ") + f"{mean:.3f}" + mark(point), **look)
        return
    if point.get("low") is not None:
        ax.hlines(place, max(point["low"], floor), min(point["high"], ceiling), color=shade, linewidth=1.2)
    face = shade if point.get("significant", True) else "white"
    ax.plot(mean, place, color=shade, markersize=4.5, markerfacecolor=face, **_POINT)
    look = {"textcoords": "offset points", "ha": "center", "fontsize": 6, "color": shade}
    ax.annotate(mark(point).strip(), (mean, place), (0, 2), **look)


def histories(title: str, panels: Sequence[tuple[str, pd.DataFrame, str, str]], most: int) -> Figure:
    """Quantities round by round: a line a method, with a band around it.

    Args:
        title: the figure's.
        panels: of each its title, a row a method and round, the quantity, whose mean, low and high are columns such as
            ``loss_mean``, ``loss_low`` and ``loss_high``, and what it is called.
        most: panels in a row.
    """
    names = sort_methods(name for _, shown, _, _ in panels for name in shown["method"])
    looks: dict[str, Any] = {
        name: {"color": shade, "linestyle": dash} for name, (shade, dash) in drawing.line_styles(names).items() if name in names
    }
    with drawing.style():
        figure, axes = drawing.tiles(len(panels), most, lambda rows, columns: (1.5 + 2.5 * columns, 0.9 + 2.1 * rows))
        for ax, (panel, shown, quantity, label) in zip(axes.flat, panels, strict=False):
            for name in sort_methods(shown["method"]):
                points = shown[shown["method"] == name]
                ax.plot(points["round"], points[f"{quantity}_mean"], linewidth=1.3, **looks[name])
                ends, shade = (points[f"{quantity}_{end}"] for end in ("low", "high")), looks[name]["color"]
                ax.fill_between(points["round"], *ends, color=shade, alpha=0.15, linewidth=0)
            ax.margins(x=0.01)
            ax.set_title(panel, loc="left")
            ax.set_ylabel(label)
        for ax in axes[-1]:
            ax.set_xlabel("round")
        drawing.head(figure, title, [sample(method_title(name), **looks[name]) for name in names])
    return figure


def heat_map(ax: Axes, values: pd.DataFrame, colours: str, limits: tuple[float, float], form: str) -> None:
    """Numbers in cells of their colour, the first row above; grey where there is none.

    Args:
        ax: where to draw.
        values: the numbers, NaN where there is none; rows and columns are called as its index and columns.
        colours: name of matplotlib's colour map.
        limits: the values of its first and last colour; what lies beyond them has these.
        form: how a number is written.
    """
    scale, numbers = mpl.colormaps[colours].with_extremes(bad="#dddddd"), values.to_numpy(dtype=float)
    mesh = ax.pcolormesh(np.ma.masked_invalid(numbers), cmap=scale, vmin=limits[0], vmax=limits[1], edgecolors="white")
    for (row, column), number in np.ndenumerate(numbers):
        if np.isfinite(number):
            light = np.dot(mesh.to_rgba(number)[:3], _LUMINANCE) > 0.5
            look: Any = {"color": "black" if light else "white", "fontsize": 6, "ha": "center", "va": "center"}
            ax.text(column + 0.5, row + 0.5, format(number, form), **look)
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, list(values.columns), rotation=90, fontsize=6)
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, list(values.index))
    ax.set_ylim(len(values), 0)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
