"""Degree histograms under (ε, 0)-edge-DP."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import chisquare

from feddep.measurements.private_histogram import SENSITIVITY, degree_histogram, private_degree_histogram
from feddep.privacy.accountant import PrivacyError
from message_changes import adjacency, small_graphs


def test_an_edge_changes_the_histogram_by_up_to_four():
    """Over all graphs of 5 nodes; the paper's 2 is what an edge changes in the degrees, not in their counts."""
    changes = set()
    for edges in small_graphs(5):
        both = (degree_histogram(adjacency(5, each).sum(1).astype(int)) for each in (edges, edges[1:]))
        changes.add(int(abs(next(both) - next(both)).sum()))
    assert changes == {2, 4}
    assert max(changes) == SENSITIVITY


def test_nodes_of_many_neighbours_are_counted_together():
    assert degree_histogram(np.array([0, 0, 2, 3, 9]), 3).tolist() == [2, 0, 1, 2]
    assert len(private_degree_histogram(np.array([1, 99]), 0.1, np.random.default_rng(0))) == 51


def test_the_noise_is_discrete_laplace():
    rng = np.random.default_rng(0)
    noise = np.concatenate([private_degree_histogram(np.zeros(0, dtype=int), 2.0, rng, 999) for _ in range(40)])
    values = np.arange(-8, 9)
    ratio = math.exp(-2.0 / SENSITIVITY)
    expected = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    seen = np.array([(noise == value).sum() for value in values] + [(np.abs(noise) > 8).sum()])
    assert chisquare(seen, len(noise) * np.append(expected, 1 - expected.sum())).pvalue > 1e-3


def test_the_guarantee_is_that_of_the_library():
    loss = privacy_loss_distribution.from_discrete_laplace_mechanism(0.1 / SENSITIVITY, sensitivity=SENSITIVITY)
    assert loss.get_epsilon_for_delta(0) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize(("epsilon", "largest"), [(0, 5), (1, -1)])
def test_what_is_out_of_range_is_refused(epsilon: float, largest: int):
    with pytest.raises(PrivacyError):
        private_degree_histogram(np.ones(3, dtype=int), epsilon, np.random.default_rng(0), largest)
