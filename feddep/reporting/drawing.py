"""The style that all figures share: colours, type, panels, legends, files.  No global state of pyplot."""

import io
import re
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

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
INK = "#333333"

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
    """A figure of so many inches, without pyplot's global state, and its axes, shape (rows, columns)."""
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
    """A colour and dash of its own for each method or spelled variant; a row of the papers has the same in every figure."""
    further = [name for name in names if name not in _LINES]
    count = len(_FURTHER_COLOURS)
    return _LINES | {name: (_FURTHER_COLOURS[k % count], DASHES[k // count % len(DASHES)]) for k, name in enumerate(further)}


def legend(figure: Figure, handles: Sequence[Line2D], columns: int = 6, **options: Any) -> None:
    """A legend above the panels, with as many columns as fit in the figure's width, and broken labels where one does not."""
    room = int(_CHARACTERS_AN_INCH * figure.get_figwidth())
    for handle in handles:
        handle.set_label(fill(str(handle.get_label()), room - 8, break_long_words=False))
    longest = max(len(line) for handle in handles for line in str(handle.get_label()).splitlines())
    columns = max(1, min(columns, len(handles), room // (longest + 8)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, **options)


def head(figure: Figure, title: str, handles: Sequence[Line2D] = (), columns: int = 6) -> None:
    """The title above the panels; where there are handles, as that of the legend."""
    title = fill(title, int(_CHARACTERS_AN_INCH * figure.get_figwidth()), break_long_words=False)
    title = title.replace("$", r"\$")  # two of them would begin and end a formula
    if handles:
        legend(figure, handles, columns, title=title, title_fontproperties={"weight": "bold", "size": 9})
    else:
        figure.suptitle(title, fontsize=9, fontweight="bold")


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
    numbers = enumerate(dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text)))
    ids = {found: f"{found[0]}{number}" for number, found in numbers}
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
