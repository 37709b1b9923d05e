"""The kinds of figures: lines over values, forests of intervals, histories over rounds, heat
maps.
"""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.reporting.drawing import INK, sample
from feddep.reporting.frames import ordered
from feddep.reporting.labels import in_words, method_title, sort_methods
from feddep.reporting.load import Study
from feddep.reporting.markdown import flaw, mark, value
from feddep.reporting.statistics import DECIDED, finding

Row = Mapping[str, Any]
_LINE = (0.1, 0.14)
"""Of the first line of a row's label and of each further one, in inches."""
_HIGH = 6.0
"""Of all rows of a forest, in inches: a figure is no higher than a window."""
_LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Of red, green and blue (ITU-R BT.709)."""


def lines(
    title: str,
    panels: Mapping[str, Sequence[Row]],
    x: Callable[[Row], Any],
    name: Callable[[Row], str],
    *,
    labels: tuple[str, str],
    text: Callable[[Any], str] = value,
    joined: bool = True,
) -> Figure:
    """Means and standard deviations over values that stand at equal distances.

    Args:
        title: the figure's (:func:`feddep.reporting.drawing.head`).
        panels: by title the rows, with mean and std, and method where they are of one.
        x: a row's value; a curve whose first row has none is a horizontal line.
        name: what a row's curve is called.
        labels: of both axes.
        text: how a value is written.
        joined: whether a curve's points are joined.
    """
    if joined and all(len(set(map(name, of))) == len(of) for of in panels.values()):
        return _points(title, panels, x, name, labels, text)
    rows = [row for of in panels.values() for row in of]
    looks = drawing.looks({name(row): row.get("method") for row in rows})
    looks = {of: look if joined else {**look, "linestyle": "none"} for of, look in looks.items()}
    with drawing.style():
        ticks = {text(x(row)) for row in rows if x(row) is not None}
        wide = max((len(line) for tick in ticks for line in tick.splitlines()), default=0) * len(
            ticks
        )
        figure, axes = drawing.tiles(list(panels), 1.7, 1 if wide > 30 else None)
        for ax, of in zip(axes.flat, panels.values(), strict=False):
            curves: dict[str, list[Row]] = {}
            for row in of:
                curves.setdefault(name(row), []).append(row)
            values = ordered(map(x, of))
            _line_panel(ax, curves, values, x, looks, 0.25 if joined else 0.6)
            ax.set_xticks(range(len(values)), [text(each) for each in values])
            ax.set_xlim(-0.5, max(1, len(values)) - 0.5)
        for ax in axes[:, 0]:
            ax.set_ylabel(labels[1])
        handles = [sample(each, **look) for each, look in looks.items()] if len(looks) > 1 else []
        single = f"{title}: {in_words(next(iter(looks)))}" if len(looks) == 1 else title
        drawing.head(figure, single, handles, below=labels[0])
    return figure


def _points(
    title: str,
    panels: Mapping[str, Sequence[Row]],
    x: Callable[[Row], Any],
    name: Callable[[Row], str],
    labels: tuple[str, str],
    text: Callable[[Any], str],
) -> Figure:
    """A row each for what :func:`lines` would draw as curves of one point."""
    values = {text(x(row)) for of in panels.values() for row in of if x(row) is not None}

    def told(row: Row) -> str:
        several = len(values) > 1 and x(row) is not None
        return name(row) + (f", {labels[0]}={text(x(row))}" if several else "")

    drawn = {
        panel: {told(row): {"": {**row, **spread(row["mean"], row["std"])}} for row in of}
        for panel, of in panels.items()
    }
    common = f"; {labels[0]}: {values.pop()}" if len(values) == 1 else ""
    label = f"{labels[1]}, mean and standard deviation"
    return forests(title + common, drawn, label, rule=None)


def _line_panel(
    ax: Axes,
    curves: Mapping[str, list[Row]],
    values: Sequence[Any],
    x: Callable[[Row], Any],
    looks: Mapping[str, Mapping[str, Any]],
    spread: float,
) -> None:
    """The curves of a panel, side by side within ``spread`` of each value's place, so that none
    hides another; points far from all others are marked at the edge.
    """
    rows = [row for of in curves.values() for row in of]
    floor, ceiling = _fences(
        [(row, row["mean"] + sign * (row["std"] or 0.0)) for row in rows for sign in (-1, 0, 1)]
    )
    beyond: list[tuple[int, float]] = []
    for k, (curve, points) in enumerate(curves.items()):
        look = looks[curve]
        if x(points[0]) is None:
            ax.axhline(points[0]["mean"], linewidth=1.2, **{**look, "marker": ""})
            continue
        points.sort(key=lambda row: values.index(x(row)))
        offset = spread * ((k + 0.5) / len(curves) - 0.5)
        places = [values.index(x(row)) + offset for row in points]
        means, stds = [row["mean"] for row in points], [row["std"] or 0.0 for row in points]
        ax.errorbar(places, means, yerr=stds, markersize=4, linewidth=1.2, elinewidth=0.8, **look)
        for place, mean in zip(places, means, strict=True):
            if not floor <= mean <= ceiling:
                below = mean < floor
                spot = (round(place), floor if below else ceiling)
                ax.annotate(
                    f"{'▾' if below else '▴'} {mean:.2f}",
                    spot,
                    (0, (7 if below else -7) * beyond.count(spot)),  # above one another
                    va="bottom" if below else "top",
                    color=drawing.legible(look["color"]),
                    **_BESIDE,
                )
                beyond.append(spot)
    if any(not floor <= row["mean"] <= ceiling for row in rows):
        ax.set_ylim(floor, ceiling)


def _fences(numbers: Sequence[tuple[Row, float]]) -> tuple[float, float]:
    """The ends of an axis of numbers, each beside what it is of: the least and the greatest of
    those that are no outliers.

    Outliers are those without which the axis is less than a quarter as long: what stalled, or what
    is more than 1.5 interquartile ranges from the quartiles, if that is at most a tenth.
    """
    every = [number for _, number in numbers]
    sound = [number for of, number in numbers if flaw(of) != "stalled"]
    if not every:
        return -np.inf, np.inf
    low, high = np.quantile(sound or every, [0.25, 0.75])
    within = [
        number
        for number in sound
        if low - 1.5 * (high - low) <= number <= high + 1.5 * (high - low)
    ]
    for some in ([] if len(within) < 0.9 * len(sound) else within, sound):
        if some and np.ptp(some) < np.ptp(every) / 4:
            return min(some), max(some)
    return min(every), max(every)


def forests(
    title: str,
    panels: Mapping[str, Mapping[str, Mapping[str, Row]]],
    label: str,
    *,
    rule: float | None = 0.0,
    margin: float | None = None,
    log: bool = False,
) -> Figure:
    """Numbers with their intervals, around a rule.  What is far from the others is a number at the
    edge of its panel.

    Args:
        title: the figure's (:func:`feddep.reporting.drawing.head`).
        panels: by title, what its rows are called, from above, and the names of series, the empty
            one for one that has none: a mean with low and high, each of which may be None, and
            method where it is of one; a point is hollow if it has a ``verdict`` that is none of
            better, equivalent and worse, and marked if most of its runs stalled or are unfinished
            (:data:`feddep.reporting.markdown.MARKS`); one that stalled sets no axis.
        label: of the axis.
        rule: where a line stands that they are compared with.
        margin: half the width of a band around zero.
        log: whether the axis is logarithmic; it then shows all numbers.
    """
    drawn = [
        (row, name, point)
        for rows in panels.values()
        for row, points in rows.items()
        for name, point in points.items()
        if point["mean"] is not None
    ]
    names = list(dict.fromkeys(name for _, name, _ in drawn))
    looks = drawing.looks({_key(*of): of[2].get("method") for of in drawn})
    if not looks.keys() - {""}:
        looks = {"": {"color": INK, "marker": "o"}}
    most = max((len(rows) for rows in panels.values()), default=0)
    pitch = min(0.09 + 0.09 * max(1, len(names)), _HIGH / max(1, most * -(-len(panels) // 3)))
    told = {
        panel: _told(list(rows), 34 if len(panels) == 1 else 28) for panel, rows in panels.items()
    }
    heights = {
        panel: np.array([max(pitch, _LINE[0] + _LINE[1] * label.count("\n")) for label in labels])
        for panel, labels in told.items()
    }
    high = max((each.sum() for each in heights.values()), default=0)
    alike = len({tuple(rows) for rows in panels.values()}) == 1
    with drawing.style():
        figure, axes = drawing.tiles(list(panels), 0.45 + high)
        for ax, (panel, rows) in zip(axes.flat, panels.items(), strict=False):
            places = np.cumsum(heights[panel]) - heights[panel] / 2
            if margin is not None:
                ax.axvspan(-margin, margin, color="#eeeeee", zorder=0)
            if rule is not None:
                ax.axvline(rule, color=INK, linewidth=0.8, zorder=1)
            ends = [
                (point, point[end])
                for points in rows.values()
                for point in points.values()
                for end in ("mean", "low", "high")
                if point.get(end) is not None
            ]
            fences = _fences([] if log else ends)
            for middle, (row, points) in zip(places, rows.items(), strict=True):
                if all(point["mean"] is None for point in points.values()):
                    ax.text(
                        0.02,
                        middle,
                        "no run",
                        color="#666666",
                        fontsize=6,
                        va="center",
                        transform=ax.get_yaxis_transform(),
                    )
                for name, point in points.items():
                    if point["mean"] is not None:
                        place = middle + 0.8 * pitch / len(names) * (
                            names.index(name) - (len(names) - 1) / 2
                        )
                        _interval(ax, point, place, looks[_key(row, name, point)], *fences)
            ax.set_yticks(places, told[panel] if ax in axes[:, 0] or not alike else [])
            ax.set_ylim(heights[panel].sum(), 0)
            if log:
                ax.set_xscale("log")
            else:
                ax.locator_params(axis="x", nbins=max(3, 7 // axes.shape[1]))
        handles = [
            sample(name, **{**looks[name], **_NO_LINE})
            for name in names
            if name in looks and len(names) > 1
        ]
        if not all(map(_decided, (point for _, _, point in drawn))):
            handles.append(
                sample(
                    "hollow: undecided",
                    color=INK,
                    marker="o",
                    markerfacecolor="white",
                    **_NO_LINE,
                )
            )
        for flawed, sign in {"unfinished": r"$\ddag$", "stalled": r"$\S$"}.items():
            if any(flaw(point) == flawed for _, _, point in drawn):
                handles.append(sample(f"most runs {flawed}", color=INK, marker=sign, **_NO_LINE))
        drawing.head(
            figure,
            title if names in ([], [""]) or len(names) > 1 else f"{title}: {in_words(names[0])}",
            handles,
            below=label,
        )
    return figure


def spread(mean: float, std: float | None) -> dict[str, float]:
    """A mean with its standard deviation, if it has one, as a point of a forest."""
    half = 0.0 if std is None or np.isnan(std) else std
    return {"mean": mean, "low": mean - half, "high": mean + half}


def gains(
    study: Study,
    table: pd.DataFrame,
    panels: Mapping[str, Mapping[str, Mapping[str, Row]]],
    reference: str,
    measure: str = "test accuracy",
) -> Figure:
    """A forest of differences from a reference, headed by what they say
    (:func:`feddep.reporting.statistics.finding`), around the band of the study's margin.
    """
    title = f"{finding(table, study.margin)}\n{study.title}"
    label = f"{measure} less that of {reference}, mean and 95 % interval"
    return forests(title, panels, label, margin=study.margin["accuracy"])


def _told(rows: Sequence[str], width: int) -> list[str]:
    """The labels of rows, in lines of so many characters; where they are long, each tells what
    differs from the row above.
    """
    parts = [in_words(row).split(", ") for row in rows]
    if max(map(len, rows), default=0) > 3 * width:
        parts = [
            [part for part in here if part not in above] if here[0] == above[0] else here
            for above, here in zip([[""], *parts], parts, strict=False)
        ]
    return [fill(", ".join(each), width) for each in parts]


_NO_LINE: Any = {"linestyle": "none"}
_BESIDE: Any = {"textcoords": "offset points", "ha": "center", "fontsize": 6}
"""Of a text some points from a place."""


def _decided(point: Row) -> bool:
    return point.get("verdict", DECIDED[0]) in DECIDED


def _key(row: str, name: str, point: Row) -> str:
    """By what a point of a forest is drawn: its series, or without one its row, where that is a
    method.
    """
    return name or (row if point.get("method") else "")


def _interval(
    ax: Axes, point: Row, place: float, look: drawing.Look, floor: float, ceiling: float
) -> None:
    """A point of a forest; as text at the panel's edge where it is beyond floor or ceiling."""
    mean, shade = point["mean"], look["color"]
    if not floor <= mean <= ceiling:
        below = mean < floor
        ax.text(
            0.0 if below else 1.0,
            place,
            f"◂ {mean:.3f}{mark(point)}" if below else f"{mean:.3f}{mark(point)} ▸",
            ha="left" if below else "right",
            va="center",
            color=drawing.legible(shade),
            fontsize=6,
            transform=ax.get_yaxis_transform(),
        )
        return
    if point.get("low") is not None:
        ax.hlines(
            place, max(point["low"], floor), min(point["high"], ceiling), color=shade, linewidth=1.2
        )
        for end, beyond, sign in (
            (floor, point["low"] < floor, "<"),
            (ceiling, point["high"] > ceiling, ">"),
        ):
            if beyond:
                ax.plot(end, place, sign, color=shade, markersize=4)
    face = shade if _decided(point) else "white"
    ax.plot(
        mean,
        place,
        color=shade,
        marker=look["marker"],
        markersize=4.5,
        markerfacecolor=face,
        **_NO_LINE,
    )
    ax.annotate(mark(point).strip(), (mean, place), (0, 2), color=INK, **_BESIDE)


def histories(title: str, panels: Sequence[tuple[str, pd.DataFrame, str, str]]) -> Figure:
    """Quantities round by round: a line a method, with a band around it; three panels in a row, or
    two where there are several quantities.

    Args:
        title: the figure's (:func:`feddep.reporting.drawing.head`).
        panels: of each its title, a row a method and round, the quantity, whose mean, low and high
            are columns such as ``loss_mean``, ``loss_low`` and ``loss_high``, and what it is
            called.
    """
    names = sort_methods(name for _, shown, _, _ in panels for name in shown["method"])
    looks = {
        name: {**look, "marker": ""}
        for name, look in drawing.looks({name: name for name in names}).items()
    }
    with drawing.style():
        quantities = {label for *_, label in panels}
        figure, axes = drawing.tiles(
            [panel for panel, *_ in panels], 1.25, 3 if len(quantities) == 1 else 2
        )
        for ax, (_, shown, quantity, label) in zip(axes.flat, panels, strict=False):
            for name in sort_methods(shown["method"]):
                points = shown[shown["method"] == name]
                ax.plot(points["round"], points[f"{quantity}_mean"], linewidth=1.3, **looks[name])
                ends = (points[f"{quantity}_{end}"] for end in ("low", "high"))
                ax.fill_between(
                    points["round"], *ends, color=looks[name]["color"], alpha=0.15, linewidth=0
                )
            ax.margins(x=0.01)
            if ax in axes[:, 0] or len(quantities) > 1:
                ax.set_ylabel(label, fontsize=7)
        handles = [sample(method_title(name), **looks[name]) for name in names]
        drawing.head(figure, title, handles, below="round")
    return figure


def heat_map(
    ax: Axes, values: pd.DataFrame, colours: str, limits: tuple[float, float], form: str
) -> None:
    """Numbers in cells of their colour, the first row above; blank where there is none.

    Args:
        ax: where to draw.
        values: the numbers, NaN where there is none; rows and columns are called as its index and
            columns.
        colours: name of matplotlib's colour map.
        limits: the values of its first and last colour; what lies beyond them has these.
        form: how a number is written.
    """
    scale = mpl.colormaps[colours].with_extremes(bad="white")
    numbers = values.to_numpy(dtype=float)
    mesh = ax.pcolormesh(
        np.ma.masked_invalid(numbers),
        cmap=scale,
        vmin=limits[0],
        vmax=limits[1],
        edgecolors="white",
    )
    for (row, column), number in np.ndenumerate(numbers):
        if np.isfinite(number):
            light = np.dot(mesh.to_rgba(number)[:3], _LUMINANCE) > 0.5
            ax.text(
                column + 0.5,
                row + 0.5,
                format(number, form),
                color="black" if light else "white",
                fontsize=7,
                ha="center",
                va="center",
            )
    few = values.shape[1] <= 3
    ax.set_xticks(
        np.arange(values.shape[1]) + 0.5,
        [fill(each, 15 if few else 24) for each in values.columns],
        rotation=0 if few else 90,
        fontsize=7,
    )
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, list(values.index), fontsize=7)
    ax.set_ylim(len(values), 0)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
