"""Neighbourhoods that NeighGen mends beside the true ones (:mod:`feddep.neighbourhoods`): FedSage's Appendix D.1."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from feddep.config import Config
from feddep.neighbourhoods import ALL, MISSING, NEIGHBOURHOODS
from feddep.reporting import measured, published
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.grid import OURS
from feddep.reporting.markdown import table as pipe_table
from feddep.reporting.studies.common import drawing, text

KEY = "neighbourhoods"
"""The key of the configuration that names the runs."""
PLACE = ["setting", "dataset", "framework", "clients"]
_NOTES = """\
*Distance* of a node v: ‖mean x over some neighbours − mean x over v's true neighbours‖₂, for its neighbours at its own client
(*local*), these and the generated ones (*mended*), and these and as many neighbours whose features are all zero (*zeros*): what a
generator gains that knows only how many are missing. Mean ± standard deviation over nodes, both averaged over seeds. *mended /
local*: below 1, mending brings neighbourhoods nearer to the true ones. A node that misses no neighbour has local distance 0, so
that mending can help only the nodes that miss one. *FedSage paper*: its Table 1 of Appendix D; it does not say how features
are scaled, so compare its ratios rather than its distances.
"""
_COUNTS = """\
*Number*: mean of |ñ_v − n_v| over nodes, for the number n_v of neighbours that a node misses and dGen's ñ_v, rounded; beside it
the same for guesses that need no training, no neighbour for any node and the mean number, rounded, for all. *Correlation*: of ñ_v
and n_v over nodes. Means over seeds. The figure is `figures/missing_neighbours`.
"""
_LARGEST = 10
"""From here on numbers of neighbours share a cell of the figure."""
_TITLE_WIDTH = 40
"""Characters in a line of a panel's title."""


def load(config: Config) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Distances and counts of all runs that the key ``neighbourhoods`` names, after the columns of the run.

    Raises:
        DataError: if a run is not measured yet, or no run is named.
    """
    return measured.load(config, KEY, "distances"), measured.load(config, KEY, "counts")


def summarise(distances: pd.DataFrame) -> pd.DataFrame:
    """Mean distances, one row a place, choice of nodes and neighbourhood, in the papers' order.

    Returns:
        setting, dataset, framework, clients, nodes, neighbourhood; seeds; mean and std over nodes, averaged over seeds; and
        paper_fedsage_mean and paper_fedsage_std, of FedSage+ and all nodes, NaN for what the paper has not.
    """
    keys = [*PLACE, "nodes", "neighbourhood"]
    summary = distances.groupby(keys, sort=False).agg(seeds=("seed", "size"), mean=("mean", "mean"), std=("std", "mean"))
    names = {"mean": "paper_fedsage_mean", "std": "paper_fedsage_std"}
    theirs = published.feature_distances().rename(columns=names).assign(framework="fedsage_plus", nodes=ALL)
    return in_paper_order(summary.reset_index().merge(theirs, how="left", on=keys[1:]))


def summarise_counts(counts: pd.DataFrame) -> pd.DataFrame:
    """How well numbers of missing neighbours are predicted, one row a place, in the papers' order.

    Returns:
        setting, dataset, framework, clients; seeds; and means over seeds of missing (share of nodes that miss a neighbour),
        error, error_none and error_mean (mean |ñ − n| of dGen, of the guess 0 and of the rounded mean), correlation.
    """
    rows = [
        {**dict(zip([*PLACE, "seed"], key, strict=True)), **_scores(run)}
        for key, run in counts.groupby([*PLACE, "seed"], sort=False)
    ]
    of_runs = pd.DataFrame(rows)
    values = ["missing", "error", "error_none", "error_mean", "correlation"]
    summary = of_runs.groupby(PLACE, sort=False)[values].mean()
    summary.insert(0, "seeds", of_runs.groupby(PLACE, sort=False).size())
    return in_paper_order(summary.reset_index())


def _scores(run: pd.DataFrame) -> dict[str, float]:
    true, guess, nodes = (run[column].to_numpy(dtype=float) for column in ("missing", "predicted", "nodes"))

    def error(predicted: np.ndarray | float) -> float:
        return float(np.average(np.abs(predicted - true), weights=nodes))

    covariance = np.cov(true, guess, fweights=nodes.astype(int)) if nodes.sum() > 1 else np.zeros((2, 2))
    spread = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return {
        "missing": float(nodes[true > 0].sum() / nodes.sum()),
        "error": error(guess),
        "error_none": error(0.0),
        "error_mean": error(float(np.rint(np.average(true, weights=nodes)))),
        "correlation": float(covariance[0, 1] / spread) if spread else float("nan"),
    }


def markdown(summary: pd.DataFrame, counts: pd.DataFrame) -> str:
    """A page: for each dataset the distances beside the paper's, then the numbers."""
    several = summary["setting"].nunique() > 1
    parts = [f"# Mended neighbourhoods\n\n{_NOTES}\n{_COUNTS}"]
    for (setting, dataset), block in summary.groupby(["setting", "dataset"], sort=False):
        of_setting = f", setting {setting}" if several else ""
        here = counts[(counts["setting"] == setting) & (counts["dataset"] == dataset)]
        parts.append(f"## {text.dataset_title(str(dataset))}{of_setting}\n\n{_distances(block)}\n{_numbers(here)}")
    return "\n".join(parts)


def _distances(block: pd.DataFrame) -> str:
    lines = []
    for (framework, clients), place in block.groupby(["framework", "clients"], sort=False):
        name = [str(clients), text.framework_title(str(framework))]
        for nodes, title in ((ALL, "all"), (MISSING, "that miss one")):
            rows = {row["neighbourhood"]: row for row in records(place[place["nodes"] == nodes])}
            lines.append([*name, title, OURS, *_cells(rows, "")])
            if nodes == ALL and rows["local"]["paper_fedsage_mean"] is not None:
                lines.append(["", "", "", published.PAPERS["fedsage"], *_cells(rows, "paper_fedsage_")])
            name = ["", ""]
    return pipe_table(["M", "", "nodes", "", "local", "mended", "zeros", "mended / local"], lines)


def _cells(rows: dict[str, dict[str, Any]], source: str) -> list[str]:
    means = {name: rows[name][f"{source}mean"] for name in NEIGHBOURHOODS}
    cells = [text.plus_minus(means[name], rows[name][f"{source}std"]) for name in NEIGHBOURHOODS]
    return [*cells, f"{means['mended'] / means['local']:.3f}" if means["local"] else ""]


def _numbers(block: pd.DataFrame) -> str:
    lines = []
    for row in records(block):
        errors = [f"{row[column]:.3f}" for column in ("error", "error_none", "error_mean")]
        correlation = "" if row["correlation"] is None else f"{row['correlation']:.3f}"
        name = [str(row["clients"]), text.framework_title(row["framework"]), f"{row['missing']:.1%}"]
        lines.append([*name, *errors, correlation])
    return pipe_table(["M", "", "miss a neighbour", "number: dGen", "number: none", "number: mean", "correlation"], lines)


def figure(counts: pd.DataFrame) -> Figure:
    """Predicted over true numbers of missing neighbours: a panel a place, all seeds together (FedSage, Figure 1 of Appendix D).

    Cells are shaded by their number of nodes, on a logarithmic scale; the line is the mean of what is predicted for nodes that
    miss so many, dashed where it should be.
    """
    ordered = in_paper_order(counts)
    places = list(dict.fromkeys(tuple(row[part] for part in PLACE) for row in records(ordered[PLACE])))
    columns = min(3, len(places))
    rows = -(-len(places) // columns)
    several = ordered["setting"].nunique() > 1
    with drawing.style():
        drawn, axes = drawing.panels(rows, columns, (0.9 + 2.9 * columns, 1.1 + 2.7 * rows))
        for ax in list(axes.flat)[len(places) :]:
            ax.set_axis_off()
        for ax, place in zip(axes.flat, places, strict=False):
            here = ordered[(ordered[PLACE] == list(place)).all(axis=1)]
            mesh = _draw(ax, here)
            setting, dataset, framework, clients = place
            of_setting = f", setting {setting}" if several else ""
            name = fill(text.framework_title(framework), _TITLE_WIDTH, break_long_words=False)
            ax.set_title(f"{text.place_title(dataset, clients)}{of_setting}\n{name}", loc="left")
            drawn.colorbar(mesh, ax=ax, label="nodes", pad=0.02)
        for ax in axes[:, 0]:
            ax.set_ylabel("predicted")
        for ax in axes[-1]:
            ax.set_xlabel("missing neighbours")
        handles = [
            drawing.sample("mean of what is predicted", color=drawing.COLOURS[1], marker="o"),
            drawing.sample("as many as are missing", color=drawing.INK, linestyle="--"),
        ]
        drawing.head(drawn, "Numbers of missing neighbours", handles)
    return drawn


def _draw(ax: Axes, counts: pd.DataFrame) -> Any:
    """One panel; returns the mesh of its cells."""
    true, guess = (counts[column].clip(upper=_LARGEST).to_numpy() for column in ("missing", "predicted"))
    size = int(max(true.max(), guess.max(), 1)) + 1
    cells = np.zeros((size, size))
    np.add.at(cells, (guess, true), counts["nodes"].to_numpy())
    edges = np.arange(size + 1) - 0.5
    mesh = ax.pcolormesh(edges, edges, np.ma.masked_equal(cells, 0), cmap="Blues", norm=LogNorm(1, max(2.0, cells.max())))
    weighed = counts.assign(bin=true, total=counts["predicted"] * counts["nodes"]).groupby("bin")[["total", "nodes"]].sum()
    ax.plot(
        weighed.index, weighed["total"] / weighed["nodes"], color=drawing.COLOURS[1], marker="o", markersize=3.5, linewidth=1.2
    )
    ax.plot([0, size - 1], [0, size - 1], color=drawing.INK, linestyle="--", linewidth=0.9)
    names = [f"{k}+" if k == _LARGEST else str(k) for k in range(size)]
    ax.set_xticks(range(size), names)
    ax.set_yticks(range(size), names)
    ax.grid(visible=False)
    return mesh
