"""Where the published account of VESPER does not hold, by counterexamples;
docs/appendix/vesper_proofs.md proves the others.
"""

import math

import numpy as np
import pytest
import torch
from scipy.stats import hypergeom, norm

from feddep.privacy.vesper_accounting import (
    ACCOUNTANTS,
    TouchMixture,
    _compose,
    certified_guarantee,
)
from feddep.privacy.vesper_sensitivity import Correction, VerticalTraining, eta
from message_changes import adjacency, gcn


def test_nothing_is_amplified_against_whoever_knows_the_batch():
    """One layer: of an edge, a batch shows a row for each end that is in it, and the exact δ is a
    sum over what B knows.

    The amplified accounts promise 1e-5 for an ε at which it is above 0.3; the corrected one is a
    tenth above the exact ε.
    """
    training = VerticalTraining(10_000, 32, 3000, 1, 10, correction=Correction(bounding="none"))
    ends = np.arange(3.0)
    exact = TouchMixture(*_compose(ends, hypergeom(10_000, 2, 32).pmf(ends), 3000))
    for name in ("paper", "paper_fixed", "rdp"):
        promised = ACCOUNTANTS[name](training).epsilon(2.0, 1e-5)
        assert exact.delta(2.0, promised) > 0.3
    true = exact.epsilon(2.0, 1e-5)
    assert ACCOUNTANTS["no_amplification"](training).epsilon(2.0, 1e-5) > true
    assert true < certified_guarantee(training).epsilon(2.0, 1e-5) < 1.11 * true


@pytest.mark.parametrize("m", [5, 10, 20, 100])
def test_senders_of_low_degree_change_truncated_gcn_by_more_than_eta(m: int):
    """A node with D_min + 1 leaves loses one: its row is not truncated in either graph, theirs are
    in both.
    """
    with_edge, without = (
        gcn(adjacency(m + 2, [(0, leaf) for leaf in range(1, m + 1 + edge)]))[0] for edge in (1, 0)
    )
    assert np.abs(with_edge - without).sum() > eta(m)
    assert np.abs(with_edge - without).sum() > 1 / math.sqrt(2 * (m + 2))


@pytest.mark.parametrize("m", [2, 10, 40, 160])
def test_a_node_that_crosses_the_minimum_degree_changes_its_branch(m: int):
    """Its row goes from GCN's to the MLP's: ‖W_tr‖ and b count, and GCN's row may be as long as
    √(D_min/2).
    """
    row = gcn(adjacency(m + 1, [(0, leaf) for leaf in range(1, m + 1)]))[
        0
    ].sum()  # all neighbours are leaves and alike
    assert row > math.sqrt(m / 2) * 0.8
    weights, bias = -1.0, -3.0
    assert abs(row - (weights + bias)) > row + 3 > eta(m)


def test_power_iteration_underestimates_the_norm():
    """PyTorch's spectral normalisation leaves weights longer than 1, so that the sensitivity is not
    bounded by √2.
    """
    torch.manual_seed(0)
    norms = []
    for width in (16, 64, 128):
        layer = torch.nn.utils.parametrizations.spectral_norm(
            torch.nn.Linear(width, width, bias=False), n_power_iterations=1
        )
        with torch.no_grad():
            # A step of training.
            layer.parametrizations.weight.original += 0.1 * torch.randn(width, width)
            norms.append(float(torch.linalg.matrix_norm(layer.weight, 2)))
    assert min(norms) > 1.02


def second_step(edge: bool, noise: float, rng: np.random.Generator, detached: bool) -> np.ndarray:
    """Rows that B receives in two steps of a layer: the second batch is in another component than
    the edge.

    Spectral norms are exactly 1, rows pass ReLU and are normalised, B follows the protocol with a
    linear decoder.
    """

    def sent(weights: np.ndarray, heard: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if detached:  # noise before the weights
            heard = heard + noise * rng.standard_normal(2)
            pre = weights @ heard
        else:
            pre = weights @ heard + noise * rng.standard_normal(2)
        row = np.maximum(pre, 0)
        return row / max(np.linalg.norm(row), 1e-12), heard

    weights, decoder = np.eye(2), np.array([1.0, 1.0])
    # The node itself, and its only neighbour.
    first, heard = sent(weights, np.array([1.0, 1.0 * edge]))
    # Of the logistic loss, taken as that of the row before ReLU.
    gradient = -decoder / (1 + math.exp(decoder @ first))
    weights = weights - 1000 * np.outer(gradient, heard)
    weights /= np.linalg.norm(weights, 2)
    second, _ = sent(weights, np.array([0.0, 60.0]))  # a node of 60 neighbours that are all alike
    return second


def test_later_steps_tell_of_an_edge_through_the_weights():
    """The first step shows the edge with an advantage of at most 2Φ(1/(2θ)) − 1; the second, which
    never reads it, tells it.
    """
    noise, rng = 5.0, np.random.default_rng(0)
    allowed = 2 * norm.cdf(1 / (2 * noise)) - 1
    assert allowed < 0.09

    def advantage(detached: bool) -> float:
        drawn = [
            np.array([second_step(edge, noise, rng, detached).min() for _ in range(1500)])
            for edge in (True, False)
        ]
        # Both entries are large exactly where the weights carry the neighbours' common direction
        # to B's.
        cut = 0.3
        return float(abs((drawn[0] > cut).mean() - (drawn[1] > cut).mean()))

    assert advantage(detached=False) > 0.7
    assert advantage(detached=True) < allowed + 0.05
