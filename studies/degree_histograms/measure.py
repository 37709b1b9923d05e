"""How many nodes have which degree, differentially private for edges (VESPER, Appendix C.2 and Figure 3).

Only noised counts leave :func:`measure`: neither the page nor the file of a run has the true ones.
"""

import math

from feddep.config import variants
from feddep.utils.seeding import generator
from studies.degree_histograms.private_histogram import SENSITIVITY, private_degree_histogram
from studies.measuring import Case, Tables

EPSILON = 0.1
"""ε of each histogram, as in the paper."""
_P = math.exp(-EPSILON / SENSITIVITY)
NOISE = math.sqrt(2 * _P) / (1 - _P)
"""Standard deviation of the noise on a count: discrete Laplace, P[k] ∝ e^(−ε|k|/4)."""


def measure(case: Case) -> Tables:
    """The noised histogram of the run's graph.

    The noise depends on the run's seed and the graph's name alone: methods share a draw, and graphs do not.

    Returns:
        ``degree_histograms``: rows with degree, from 0 to 50, which stands for 50 and more; nodes, the noised count, which may be
        negative; and of, the number of nodes of the graph.
    """
    graph = case.task.graph
    rng = generator(case.task.seed, "degree histogram", variants.base(case.run.dataset))
    counts = private_degree_histogram(graph.degrees, EPSILON, rng)
    return {"degree_histograms": [{"degree": k, "nodes": int(nodes), "of": graph.num_nodes} for k, nodes in enumerate(counts)]}
