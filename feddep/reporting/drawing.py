"""The style that all figures share: colours, type, panels, legends, files.  No global state of
pyplot.
"""

import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from feddep.config import variants
from feddep.methods import registry
from feddep.reporting.labels import in_words

_STYLE: Any = {
    "svg.hashsalt": "feddep",  # else equal shapes in an SVG get ids at random
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine leaves equal room
    "svg.fonttype": "none",  # text stays text: found by a search, read aloud, a third of the bytes
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
INK = "#333333"
WIDTH = 4.8
"""Of every figure, in inches: shown 400 pixels wide its type is 9 pixels high."""
_CHARACTERS = {"title": 64, "text": 76, "legend": 68}
"""How many stand beside one another in that width."""

# Okabe and Ito's palette and four of Tol's, told apart by readers with any colour vision.  Shapes
# say the same once more.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#332288",
    "#882255",
    "#999933",
    "#44AA99",
)
PUBLISHED = "#888888"
"""Of what is printed elsewhere."""
_FAMILIES = (
    "#000000",
    "#777777",
    PUBLISHED,
    "#D55E00",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#0072B2",
    "#44AA99",
    "#56B4E9",
    "#AA4499",
    "#882255",
    "#332288",
    "#999933",
)
"""Colours of methods, in an order that gives those of neighbouring families other markers."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
Look = dict[str, str]
"""Colour, marker and dash, as matplotlib calls them."""


@contextmanager
def style() -> Iterator[None]:
    """The context that every figure is made and saved in: matplotlib's defaults and ours, whatever
    the user's own style.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def colour(number: int) -> str:
    """The k-th colour, from 0; they repeat."""
    return COLOURS[number % len(COLOURS)]


def looks(names: Mapping[str, str | None]) -> dict[str, Look]:
    """How each curve or point of a figure is drawn.

    A method has the same colour, marker and dash in every figure; further variants in one figure
    have shades of its colour.

    Args:
        names: what is shown, and the method that it is of, as it is spelled or not, or the paper;
            None of what is of none, which has the first colours that no method of the figure has.
    """
    found: dict[str, Look] = {}
    bases = {name: variants.base(method) if method else None for name, method in names.items()}
    methods = registry.methods()
    sources = sorted({base for base in bases.values() if base and base not in methods})
    declared = {
        base: methods[base].look if base in methods else (PUBLISHED, sources.index(base))
        for base in bases.values()
        if base
    }
    taken = {look[0] for look in declared.values() if look}
    free = [each for each in COLOURS if each not in taken]
    for base in dict.fromkeys(bases.values()):
        of = [name for name in bases if bases[name] == base]
        shade, marker, dash = _drawn(base, declared[base]) if base else ("", 0, 0)
        for k, name in enumerate(of):
            found[name] = {
                "color": _mixed(shade, 0.55 * k / max(1, len(of) - 1))
                if base
                else free[k % len(free)],
                "marker": MARKERS[(marker + 3 * k) % len(MARKERS)],
                "linestyle": DASHES[(dash + 3 * k) % len(DASHES)],
            }
    return {name: found[name] for name in names}


def _drawn(base: str, look: tuple[str, int] | None) -> tuple[str, int, int]:
    """A method's colour, and the numbers of its marker and dash."""
    if look is None:
        digest = zlib.crc32(base.encode())
        return COLOURS[digest % len(COLOURS)], digest // len(COLOURS), digest // len(COLOURS)
    shade, number = look
    family = _FAMILIES.index(shade) if shade in _FAMILIES else 0
    return _mixed(shade, (0.0, 0.35)[number % 2]), family + number, number


def legible(shade: str) -> str:
    """A colour dark enough for small text on white."""
    red, green, blue = (0.55 * part for part in mpl.colors.to_rgb(shade))
    return mpl.colors.to_hex((red, green, blue))


def _mixed(shade: str, share: float) -> str:
    """A colour with this share of white in it, or of black where it is light."""
    red, green, blue = mpl.colors.to_rgb(shade)
    towards = 1.0 if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5 else 0.0
    red, green, blue = ((1 - share) * part + share * towards for part in (red, green, blue))
    return mpl.colors.to_hex((red, green, blue))


def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure so many inches high below its head, without pyplot's global state, and its axes,
    shape (rows, columns).
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def tiles(
    titles: Sequence[str], height: float, most: int | None = None
) -> tuple[Figure, np.ndarray]:
    """As :func:`panels`, for panels with titles; those left over are blank.

    Args:
        titles: of the panels.
        height: of a row of them.
        most: most columns; by default two for up to four panels or where titles are long, else
            three.
    """
    titles = list(map(in_words, titles)) or [""]
    count = len(titles)
    columns = min(count, most or (2 if count <= 4 or max(map(len, titles)) > 36 else 3))
    rows = -(-count // columns)
    room = 50 // (columns if any(titles[k] for k in range(count) if k % columns) else 1)
    broken = [fill(title, room, break_long_words=False) for title in titles]
    extra = 0.15 * max(title.count("\n") for title in broken)
    figure, axes = panels(rows, columns, 0.3 + (height + extra) * rows)
    for ax, title in zip(axes.flat, broken, strict=False):
        ax.set_title(title, loc="left")
    for ax in list(axes.flat)[count:]:
        ax.set_axis_off()
    return figure, axes


def sample(label: str, **style: Any) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], markersize=5, label=label, **style)


def head(
    figure: Figure,
    title: str,
    handles: Sequence[Line2D] = (),
    columns: int = 4,
    below: str = "",
) -> None:
    """Title and legend above the panels, for which the figure grows, and a label below them.

    Args:
        figure: the figure.
        title: its first line is bold and says what is found; it becomes the figure's label. What is
            shown may follow in a second.
        handles: of the legend.
        columns: its most columns; fewer where they do not fit.
        below: what the axes show from left to right.
    """
    figure.supxlabel(fill(below, 80), fontsize="medium")
    figure.set_label(title.partition("\n")[0])
    # Two of them would be a formula.
    title, _, caption = (line.replace("$", r"\$") for line in title.partition("\n"))
    texts = {
        fill(title, _CHARACTERS["title"]): "bold",
        fill(caption, _CHARACTERS["text"]): "normal",
    }
    above: list[Any] = [
        figure.text(0.01, 1, text, va="top", fontweight=weight)
        for text, weight in texts.items()
        if text
    ]
    for handle in handles:
        handle.set_label(
            fill(
                in_words(str(handle.get_label())), _CHARACTERS["legend"] - 8, break_long_words=False
            )
        )
    if handles:
        longest = max(
            len(line) for handle in handles for line in str(handle.get_label()).splitlines()
        )
        columns = max(1, min(columns, len(handles), _CHARACTERS["legend"] // (longest + 7)))
        above.append(
            figure.legend(
                handles=handles,
                loc="upper left",
                borderaxespad=0,
                ncols=columns,
                bbox_to_anchor=(0, 1),
            )
        )
    heights = [each.get_window_extent().height / figure.dpi + 0.06 for each in above]
    height = figure.get_figheight() + sum(heights)
    figure.set_figheight(height)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - sum(heights) / height))
    for k, each in enumerate(above):
        y = 1 - (0.03 + sum(heights[:k])) / height
        each.set_bbox_to_anchor((0, y)) if each in figure.legends else each.set_y(y)


def svg(figure: Figure) -> str:
    """The figure as SVG; the bytes depend on the figure and matplotlib's version only."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = re.sub(r"<!-- .*? -->", "", buffer.getvalue())  # what a text says, once more
    text = re.sub(r"\n\s*(?=<)", "\n", text)
    text = text.replace("'DejaVu Sans'", "'DejaVu Sans', sans-serif")  # where it is not installed
    text = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", text)
    # Places to a hundredth of a point: what matplotlib writes beyond that nobody sees, and it is a
    # third of the file.
    text = re.sub(
        r'(?<=[ \n])(d|x|y)="[^"]*"|(translate|rotate)\([^)]*\)',
        lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]),
        text,
    )
    # Ids by number: matplotlib's are digests of coordinates, whose last bit differs between runs of
    # one layout.
    numbers = enumerate(dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text)))
    ids = {found: f"{found[0]}{number}" for number, found in numbers}
    return re.sub(
        r'(?<=id=")[a-z][0-9a-f]{10}(?=")|(?<=#)[a-z][0-9a-f]{10}\b',
        lambda name: ids.get(name[0], name[0]),
        text,
    )
