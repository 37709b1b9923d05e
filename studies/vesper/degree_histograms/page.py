"""The page: shares of nodes by degree, a line a graph; and a figure of the counts."""

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order
from feddep.reporting.labels import dataset_title
from studies import measuring
from studies.vesper.degree_histograms.measure import EPSILON, LARGEST_DEGREE, NOISE, SENSITIVITY

RANGES = ((0, 1), (0, 3), (0, 5), (0, 10), (10, None), (20, None), (50, None))
"""Degrees that the table counts together, from the first to below the second: none, below
candidates for D_min, and candidates for D and more."""


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table, the text and the figure."""
    counts = first_draws(tables["degree_histograms"])
    facts = {"epsilon": EPSILON, "sensitivity": SENSITIVITY, "noise": NOISE}
    text = measuring.text("degree_histograms", table=_table(counts), **facts)
    return {"table.csv": counts, "page.md": text, "figure": figure(counts)}


def first_draws(measured: pd.DataFrame) -> pd.DataFrame:
    """One draw a graph, that of the first seed: dataset, degree, nodes and of, in the papers'
    order.
    """
    counts = measured.assign(dataset=measured["dataset"].map(variants.base)).sort_values(
        ["seed", "degree"], kind="stable"
    )
    counts = counts.drop_duplicates(["dataset", "degree"])
    return in_paper_order(counts, ["dataset"])[["dataset", "degree", "nodes", "of"]]


def shares(counts: pd.DataFrame) -> list[tuple[float, float]]:
    """For each of :data:`RANGES` the noised share of a graph's nodes, and the standard deviation of
    its noise.

    Of the counts in the range and those outside it the fewer are added up, as all nodes together
    are public.
    """
    total, found = int(counts["of"].iloc[0]), []
    for low, end in RANGES:
        inside = (counts["degree"] >= low) & (counts["degree"] < (math.inf if end is None else end))
        here, there = counts[inside], counts[~inside]
        share = (
            here["nodes"].sum() / total
            if len(here) <= len(there)
            else 1 - there["nodes"].sum() / total
        )
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
    """A panel a graph: noised counts on a logarithmic scale, and the noise's standard deviation;
    none at counts below 1.
    """
    graphs = list(counts.groupby("dataset", sort=False))
    with drawing.style():
        drawn, axes = drawing.tiles([dataset_title(str(dataset)) for dataset, _ in graphs], 1.4, 2)
        for ax, (_, of_graph) in zip(axes.flat, graphs, strict=False):
            positive = of_graph[of_graph["nodes"] > 0]
            ax.bar(positive["degree"], positive["nodes"], width=0.8, color="#888888")
            ax.axhline(NOISE, color=drawing.INK, linestyle="--", linewidth=0.9)
            ax.set_yscale("log")
            ax.set_ylim(bottom=1)
            ax.set_xlim(-1, LARGEST_DEGREE + 1)
            ticks = range(0, LARGEST_DEGREE, 10)
            ax.set_xticks([*ticks, LARGEST_DEGREE], [*map(str, ticks), f"{LARGEST_DEGREE}+"])
            ax.grid(axis="x", visible=False)
        for ax in axes[:, 0]:
            ax.set_ylabel("nodes, with noise")
        line = drawing.sample(
            "standard deviation of the noise", color=drawing.INK, linestyle="--", linewidth=0.9
        )
        drawing.head(
            drawn,
            f"{(counts['nodes'].abs() < NOISE).mean():.0%} of the counts are below their noise\n"
            f"Nodes by degree, (ε, 0)-differentially private for edges at ε = {EPSILON:g}",
            [line],
            below="degree",
        )
    return drawn
