"""How many nodes have which degree, with ε-differential privacy for every edge (VESPER, Appendix
C.2 and Figure 3).

VESPER chooses its degree bounds by such histograms, at (0.1, 0).  An edge more or less moves both
its ends: each leaves one count and joins another, so that the L1 sensitivity is 4.  The paper says
2, so that its histograms are (0.2, 0)-private.
"""

import math

import numpy as np

from feddep.utils.seeding import generator
from studies.measuring import Case, Tables

SENSITIVITY = 4
"""The most that the counts can change, in sum, by one edge; attained if its ends have the same
degree, or degrees two apart.
"""

LARGEST_DEGREE = 50
"""The paper's last count is of nodes of degree 50 or more."""

EPSILON = 0.1
"""ε of each histogram, as in the paper."""
_P = math.exp(-EPSILON / SENSITIVITY)
NOISE = math.sqrt(2 * _P) / (1 - _P)
"""Standard deviation of the noise on a count: discrete Laplace, P[k] ∝ e^(−ε|k|/4)."""


def measure(case: Case) -> Tables:
    """The noised histogram of the run's graph.

    The noise depends on the run's seed and the graph's name alone: methods share a draw, and graphs
    do not.

    Returns:
        ``degree_histograms``: rows with degree; nodes, the noised count; and of, the number of
            nodes of the graph.
    """
    graph = case.task.graph
    rng = generator(case.task.seed, "degree histogram", case.run.dataset.name)
    counts = private_degree_histogram(graph.degrees, EPSILON, rng)
    return {
        "degree_histograms": [
            {"degree": k, "nodes": int(nodes), "of": graph.num_nodes}
            for k, nodes in enumerate(counts)
        ]
    }


def degree_histogram(degrees: np.ndarray) -> np.ndarray:
    """Number of nodes of degree 0, 1, …, 50 or more; int64, shape (51,)."""
    return np.bincount(np.minimum(degrees, LARGEST_DEGREE), minlength=LARGEST_DEGREE + 1)


def private_degree_histogram(
    degrees: np.ndarray, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """The histogram with discrete Laplace noise, (ε, 0)-edge-DP; int64, shape (51,); counts may be
    negative.

    Noise k has a probability proportional to e^(−ε|k|/4): the Laplace mechanism on whole numbers
    (Ghosh, Roughgarden and Sundararajan 2009), which has no rounding that could betray the counts.
    """
    counts = degree_histogram(degrees)
    stop = -math.expm1(-epsilon / SENSITIVITY)
    return counts + rng.geometric(stop, len(counts)) - rng.geometric(stop, len(counts))
