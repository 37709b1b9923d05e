"""The style that all figures share: colours, type, legends.  No global state of pyplot."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

_STYLE: Any = {
    "svg.hashsalt": "feddep",  # else the ids in an SVG are drawn at random
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
FURTHER_COLOURS = ("#332288", "#882255", "#999933", "#44AA99")
DASHES = ("-", "--", ":", "-.")


def style() -> Any:
    """The context that every figure is made and saved in."""
    return mpl.rc_context(_STYLE)


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure without pyplot's global state, and its axes, shape (rows, columns)."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def sample(label: str, **style: Any) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], markersize=5, label=label, **style)


def line_styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and dash of its own for each framework or spelled variant; a row of the papers has the same in every figure."""
    further = [name for name in names if name not in _LINES]
    count = len(FURTHER_COLOURS)
    return _LINES | {name: (FURTHER_COLOURS[k % count], DASHES[k // count % len(DASHES)]) for k, name in enumerate(further)}
