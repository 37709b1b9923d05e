"""What NeighGen gives nodes at the border of their client, beside what they lack (FedSage, Appendix D.1), in small tables."""

from typing import Any

import numpy as np

from feddep.errors import ConfigError
from feddep.halo import missing_neighbours
from feddep.neighbour_generation.quality import neighbourhood_distances, predicted_neighbours
from feddep.partition import Partition
from feddep.problem import Problem
from feddep.steps import Made

ALL, MISSING = "all", "missing"
"""Which nodes are averaged over: all, or those that miss a neighbour, which alone mending can help."""
NEIGHBOURHOODS = ("local", "mended", "empty")
"""The fields of :class:`feddep.neighbour_generation.quality.Distances`."""


def distances(problem: Problem, generated: Made) -> list[dict[str, Any]]:
    """How far neighbourhoods are from the true ones, before and after mending (Table 1).

    Args:
        problem: the run; its graph is the global one, with features as they are trained on.
        generated: what the run's stage ``generator`` has made.

    Returns:
        A row for each of :data:`ALL` and :data:`MISSING` and each of :data:`NEIGHBOURHOODS`: nodes, neighbourhood, count (of
        nodes), mean and std of the distance over these nodes; std is the sample standard deviation, NaN for a single node.

    Raises:
        ConfigError: as :func:`check`.
    """
    partition = check(problem, generated)
    found = neighbourhood_distances(problem.graph, partition, generated)
    chosen = {ALL: np.full(problem.graph.num_nodes, True), MISSING: _missing(problem, partition) > 0}
    rows = []
    for nodes, which in chosen.items():
        for neighbourhood in NEIGHBOURHOODS:
            of_nodes = getattr(found, neighbourhood)[which].astype(np.float64)
            mean = of_nodes.mean() if len(of_nodes) else np.nan
            std = of_nodes.std(ddof=1) if len(of_nodes) > 1 else np.nan
            rows.append({"nodes": nodes, "neighbourhood": neighbourhood, "count": len(of_nodes), "mean": mean, "std": std})
    return rows


def counts(problem: Problem, generated: Made) -> list[dict[str, int]]:
    """How many neighbours nodes miss, and how many dGen predicts, rounded as the paper does (Figure 1).

    Returns:
        A row for each pair that occurs: missing, predicted, and nodes, the number of nodes with this pair.

    Raises:
        ConfigError: as :func:`check`.
    """
    partition = check(problem, generated)
    predicted = np.rint(predicted_neighbours(problem.graph, partition, generated)).astype(np.int64)
    pairs, nodes = np.unique(np.stack([_missing(problem, partition), predicted]), axis=1, return_counts=True)
    columns = zip(*pairs.tolist(), nodes.tolist(), strict=True)
    return [{"missing": missing, "predicted": guess, "nodes": number} for missing, guess, number in columns]


def check(problem: Problem, generated: Made) -> Partition:
    """The partition of a run whose generators make up neighbours' features.

    Raises:
        ConfigError: if the run has no clients, or its generators make something else.
    """
    if problem.partition is None or not generated.of_clients("features"):
        raise ConfigError(f"{problem.name} generates no features of neighbours, so there is nothing to compare")
    return problem.partition


def _missing(problem: Problem, partition: Partition) -> np.ndarray:
    """n_v, the number of neighbours of each node that other clients hold; int64, shape (n,)."""
    return np.diff(missing_neighbours(problem.graph, partition).indptr).astype(np.int64)
