"""How many nodes have which degree, with ε-differential privacy for every edge.

VESPER chooses its degree bounds by such histograms, at (0.1, 0) (Appendix C.2).  An edge more or less moves both its ends: each
leaves one count and joins another, so that the L1 sensitivity is 4.  The paper says 2; the histograms that it calls
(0.1, 0)-private are (0.2, 0)-private.
"""

import math

import numpy as np

SENSITIVITY = 4
"""The most that the counts can change, in sum, by one edge; attained if its ends have the same degree, or degrees two apart."""

LARGEST_DEGREE = 50
"""The paper's last count is of nodes of degree 50 or more."""


def degree_histogram(degrees: np.ndarray, largest: int = LARGEST_DEGREE) -> np.ndarray:
    """Number of nodes of degree 0, 1, …, ``largest`` or more; int64, shape (largest + 1,)."""
    return np.bincount(np.minimum(degrees, largest), minlength=largest + 1)


def private_degree_histogram(
    degrees: np.ndarray, epsilon: float, rng: np.random.Generator, largest: int = LARGEST_DEGREE
) -> np.ndarray:
    """The histogram with discrete Laplace noise: (ε, 0)-edge-DP.

    Noise k has a probability proportional to e^(−ε|k|/4): the Laplace mechanism on whole numbers (Ghosh, Roughgarden and
    Sundararajan 2009), which has no rounding that could betray the counts.

    Args:
        degrees: number of neighbours of each node; integers, shape (n,).
        epsilon: ε, above 0.
        rng: where the noise comes from.
        largest: nodes of this degree and of any larger one are counted together.

    Returns:
        int64, shape (largest + 1,); counts may be negative.
    """
    counts = degree_histogram(degrees, largest)
    stop = -math.expm1(-epsilon / SENSITIVITY)
    return counts + rng.geometric(stop, len(counts)) - rng.geometric(stop, len(counts))
