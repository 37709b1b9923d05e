"""How many nodes have which degree, differentially private for edges (VESPER, Appendix C.2 and Figure 3).

Only noised counts leave :func:`measure`: neither the page nor the file of a run has the true ones.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.experiment.plan import Run
from feddep.measurements import Tables
from feddep.measurements.private_histogram import LARGEST_DEGREE, SENSITIVITY, private_degree_histogram
from feddep.methods.method import StepResult
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.labels import dataset_title, sort_datasets
from feddep.training.task import Task
from feddep.utils.seeding import generator

EPSILON = 0.1
"""ε of each histogram, as in the paper."""
RANGES = ((0, 1), (0, 3), (0, 5), (0, 10), (10, None), (20, None), (50, None))
"""Degrees that the table counts together, from the first to below the second: none, below candidates for D_min, and candidates
for D and more."""
_P = math.exp(-EPSILON / SENSITIVITY)
NOISE = math.sqrt(2 * _P) / (1 - _P)
"""Standard deviation of the noise on a count: discrete Laplace, P[k] ∝ e^(−ε|k|/4)."""
_NOTES = f"""\
Number of nodes by degree with noise, (ε, 0)-differentially private for an edge at ε = {EPSILON:g}. Noise on each count is
discrete Laplace of scale 4/ε = {SENSITIVITY / EPSILON:g}, standard deviation {NOISE:.1f}: an edge moves both of its ends, each
from one count to another, so that counts change by {SENSITIVITY} in sum. VESPER's paper says 2, and its scale 2/ε gives
ε = {2 * EPSILON:g} (docs/vesper.md). Shown is one draw, of the first seed; k draws of a graph are private at kε together. A draw
comes from the run's seed, so that it can be repeated, and not from a generator that would protect real data.

Shares are noised counts over the number of nodes, which is public, with the standard deviation of the noise; a share below 0 is
noise.
"""


def measure(run: Run, task: Task, parameters: Any, results: Mapping[str, StepResult]) -> Tables:
    """The noised histogram of the run's graph.

    The noise depends on the run's seed and the graph's name alone: methods share a draw, and graphs do not.

    Returns:
        ``degree_histograms``: rows with degree, from 0 to 50, which stands for 50 and more; nodes, the noised count, which may be
        negative; and of, the number of nodes of the graph.
    """
    rng = generator(task.seed, "degree histogram", variants.base(run.dataset))
    counts = private_degree_histogram(task.graph.degrees, EPSILON, rng)
    of = task.graph.num_nodes
    return {"degree_histograms": [{"degree": k, "nodes": int(nodes), "of": of} for k, nodes in enumerate(counts)]}


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/degree_histograms.csv and .md, and figures/degree_histograms."""
    counts = first_draws(tables["degree_histograms"])
    return {
        "tables/degree_histograms.csv": counts,
        "tables/degree_histograms.md": f"# Degrees\n\n{_NOTES}\n{_table(counts)}",
        "figures/degree_histograms": figure(counts),
    }


def first_draws(measured: pd.DataFrame) -> pd.DataFrame:
    """One draw a graph, that of the first seed: dataset, degree, nodes and of, in the papers' order."""
    counts = measured.assign(dataset=measured["dataset"].map(variants.base)).sort_values("seed", kind="stable")
    counts = counts.drop_duplicates(["dataset", "degree"])
    order = {name: rank for rank, name in enumerate(sort_datasets(measured["dataset"].map(variants.base)))}
    ranked = counts.assign(rank=counts["dataset"].map(order)).sort_values(["rank", "degree"])
    return ranked[["dataset", "degree", "nodes", "of"]].reset_index(drop=True)


def shares(counts: pd.DataFrame) -> list[tuple[float, float]]:
    """For each of :data:`RANGES` the noised share of a graph's nodes, and the standard deviation of its noise.

    Of the counts in the range and those outside it the fewer are added up, as all nodes together are public.
    """
    total, found = int(counts["of"].iloc[0]), []
    for low, end in RANGES:
        inside = (counts["degree"] >= low) & (counts["degree"] < (math.inf if end is None else end))
        here, there = counts[inside], counts[~inside]
        share = here["nodes"].sum() / total if len(here) <= len(there) else 1 - there["nodes"].sum() / total
        found.append((share, NOISE * math.sqrt(min(len(here), len(there))) / total))
    return found


def _range_name(low: int, end: int | None) -> str:
    if end is None:
        return f"{low} or more"
    return f"degree {low}" if end == low + 1 else f"below {end}"


def _table(counts: pd.DataFrame) -> str:
    lines = []
    for dataset, of_graph in counts.groupby("dataset", sort=False):
        numbers = (f"{share:.3f} ± {noise:.3f}" for share, noise in shares(of_graph))
        lines.append([dataset_title(str(dataset)), str(of_graph["of"].iloc[0]), *numbers])
    return md.table(["", "nodes", *(_range_name(low, end) for low, end in RANGES)], lines)


def figure(counts: pd.DataFrame) -> Figure:
    """A panel a graph: noised counts on a logarithmic scale, and the noise's standard deviation; none at counts below 1."""
    graphs = list(counts.groupby("dataset", sort=False))
    with drawing.style():
        drawn, axes = drawing.tiles(len(graphs), 3, lambda rows, columns: (0.6 + 3.2 * max(columns, 2), 1.1 + 2.1 * rows))
        for ax, (dataset, of_graph) in zip(axes.flat, graphs, strict=False):
            positive = of_graph[of_graph["nodes"] > 0]
            ax.bar(positive["degree"], positive["nodes"], width=0.8, color=drawing.COLOURS[0])
            ax.axhline(NOISE, color=drawing.INK, linestyle="--", linewidth=0.9)
            ax.set_yscale("log")
            ax.set_ylim(bottom=1)
            ax.set_xlim(-1, LARGEST_DEGREE + 1)
            ax.set_xticks([*range(0, LARGEST_DEGREE, 10), LARGEST_DEGREE], [*map(str, range(0, LARGEST_DEGREE, 10)), "≥ 50"])
            ax.set_title(dataset_title(str(dataset)), loc="left")
            ax.set_xlabel("degree")
            ax.grid(axis="x", visible=False)
        for ax in axes[:, 0]:
            ax.set_ylabel("nodes, with noise")
        line = drawing.sample("standard deviation of the noise", color=drawing.INK, linestyle="--", linewidth=0.9)
        drawing.head(drawn, f"Nodes by degree, (ε, 0)-differentially private for edges at ε = {EPSILON:g}", [line])
    return drawn
