"""The accountants of VESPER against slow references, exact laws and simulated transcripts."""

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, hypergeom, norm

from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import (
    ACCOUNTANTS,
    NO_BOUND,
    NOISES,
    TouchMixture,
    _compose,
    certified_guarantee,
    convex_delta,
    gaussian_delta,
    noise_for,
    printed_divergences,
    subsampled_divergences,
    touch_probability,
)
from feddep.privacy.vesper_sensitivity import (
    Correction,
    VerticalTraining,
    layer_squares,
    published_roots,
)
from message_changes import bounded_pairs

SMALL = VerticalTraining(nodes=320, batch=32, steps=500, layers=2, degree=5)
LARGE = VerticalTraining(nodes=3672, batch=32, steps=5750, layers=2, degree=5)


@pytest.mark.parametrize(
    ("training", "expected"),
    [(SMALL, (15.34, 20.56, 20.56, 9.428)), (LARGE, (11.27, 12.42, 7.746, 12.594))],
)
def test_values_worked_by_hand(training: VerticalTraining, expected: tuple[float, ...]):
    """θ = 20, Σ S² = 4, δ = 1e-5.  The library's bound is the sharper one where steps are rare."""
    for name, epsilon in zip(
        ("paper", "paper_fixed", "rdp", "no_amplification"), expected, strict=True
    ):
        assert ACCOUNTANTS[name](training).epsilon(20, 1e-5) == pytest.approx(epsilon, rel=1e-3)


@given(st.integers(1, 60), st.integers(1, 80), st.integers(1, 60))
def test_the_probability_of_a_touch_is_exact(nodes: int, roots: int, batch: int):
    batch = min(batch, nodes)
    exact = 1 - Fraction(math.comb(max(nodes - roots, 0), batch), math.comb(nodes, batch))
    assert touch_probability(nodes, roots, batch) == pytest.approx(float(exact), rel=1e-12)


def test_touches_where_binomials_have_millions_of_digits_or_nearly_agree():
    assert [published_roots(5, layers) for layers in (1, 2, 3)] == [2, 12, 62]
    assert published_roots(1, 3) == 6  # where the quotient is 0/0
    assert touch_probability(10**9, 2, 1) == pytest.approx(2e-9, rel=1e-12)
    assert touch_probability(10**6, 4000, 256) == pytest.approx(
        hypergeom(10**6, 4000, 256).sf(0), rel=1e-9
    )


def slow_divergence(gamma: float, rho: float, order: int, printed: bool) -> mpmath.mpf:
    """Theorem 9, or equation 6 as printed, with 60 digits."""
    with mpmath.workdps(60):
        g, e = mpmath.mpf(gamma), lambda j: j * mpmath.mpf(rho)
        inner = e(2) * 2 if printed else mpmath.exp(e(2)) * 2
        second = g**2 * mpmath.binomial(order, 2) * min(4 * (mpmath.exp(e(2)) - 1), inner)
        terms = (
            g**j * mpmath.binomial(order, j) * mpmath.exp((j - 1) * e(j)) * 2
            for j in range(3, order + 1)
        )
        higher = mpmath.fsum(terms)
        if printed:
            return mpmath.log(1 + second) / (order - 1) + higher
        return mpmath.log(1 + second + higher) / (order - 1)


@pytest.mark.parametrize(
    ("gamma", "rho"), [(0.1, 0.005), (0.72, 0.005), (1e-6, 2.0), (1.0, 1e-4), (0.01, 1e-9)]
)
@pytest.mark.parametrize("order", [2, 3, 17, 512])
def test_the_divergences_are_those_of_a_slow_reference(gamma: float, rho: float, order: int):
    assert subsampled_divergences(gamma, rho)[order - 2] == pytest.approx(
        float(slow_divergence(gamma, rho, order, False)), rel=1e-9
    )
    slow = slow_divergence(gamma, rho, order, True)
    if slow < 1e300:
        assert printed_divergences(gamma, rho)[order - 2] == pytest.approx(float(slow), rel=1e-9)


@pytest.mark.parametrize(
    ("squared", "epsilon"), [(0.01, 0.1), (2.0, 1.0), (30.0, 12.0), (1e-4, 0.0), (400.0, 1.0)]
)
def test_the_loss_of_a_gaussian_is_an_integral(squared: float, epsilon: float):
    mu = math.sqrt(squared)
    start = epsilon / mu + mu / 2  # where the densities are equal but for e^ε
    above, _ = quad(
        lambda z: norm.pdf(z - mu) - math.exp(epsilon) * norm.pdf(z),
        start,
        start + mu + 40,
        epsabs=1e-14,
    )
    assert gaussian_delta(np.array([squared]), epsilon)[0] == pytest.approx(
        above, rel=1e-6, abs=1e-13
    )


def test_known_batches_are_a_mixture():
    training = VerticalTraining(nodes=100, batch=10, steps=30, layers=2, degree=2)
    touched = binom(30, touch_probability(100, 6, 10))
    exact = sum(
        touched.pmf(k) * gaussian_delta(np.array([4 * k / 36]), 1.0)[0] for k in range(1, 31)
    )
    assert ACCOUNTANTS["no_amplification"](training).delta(6.0, 1.0) == pytest.approx(
        exact, rel=1e-9
    )


@given(st.floats(0.05, 20), st.floats(0.001, 100))
def test_a_convex_function_takes_the_place_of_delta(epsilon: float, squared: float):
    """It is no less than δ_k, increases, and is convex."""
    grid = np.linspace(1e-3, 2, 41) * squared
    values = convex_delta(grid, epsilon)
    assert (values >= gaussian_delta(grid, epsilon) - 1e-12).all()
    assert (np.diff(values) >= -1e-12).all()
    assert (np.diff(values, 2) >= -1e-9).all()
    assert np.isinf(convex_delta(grid, 0.0)).all()


def test_numbers_of_touches_are_composed_exactly():
    totals, weights = _compose(np.array([0.0, 3.0, 5.0]), np.array([0.7, 0.2, 0.1]), 40)
    law = np.ones(1)
    for _ in range(40):
        law = np.convolve(law, [0.7, 0, 0, 0.2, 0, 0.1])
    assert totals == pytest.approx(np.rint(totals))
    assert weights == pytest.approx(law[np.rint(totals).astype(int)], abs=1e-14)
    rounded, weights = _compose(np.array([0.0, 1.0, math.pi]), np.array([0.7, 0.2, 0.1]), 40)
    mean = rounded @ weights
    assert 40 * (0.2 + 0.1 * math.pi) <= mean <= 40 * (0.2 + 0.1 * math.pi) * 1.02


def test_simulated_transcripts_keep_the_guarantee():
    """Two layers with noise before the weights, weights that learn from what was released, public
    batches, two bounded graphs.

    The loss of a transcript is the log of the ratio of its densities in both graphs; its mean
    positive part gives the exact δ.
    """
    nodes, degree, batch, steps, noise, runs = 12, 2, 2, 6, 3.0, 20_000
    # Of which at least three rows differ.
    pair = next(
        (one, other)
        for one, other in bounded_pairs(nodes, degree, 0.125, 1000)
        if (one != other).any(1).sum() >= 3
    )
    graphs = [a + np.eye(nodes) for a in pair]
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=nodes)))
    worst = signs[(((graphs[0] - graphs[1]) @ signs.T) ** 2).sum(0).argmax()]
    terms = VerticalTraining(nodes=nodes, batch=batch, steps=steps, layers=2, degree=degree)
    guarantee = certified_guarantee(terms)
    rng = np.random.default_rng(0)
    encodings = np.outer(worst, [0.6, 0.8])
    union = (graphs[0] + graphs[1]) > 0
    losses = np.zeros(runs)
    weights = np.ones((runs, 1, 2))
    for _ in range(steps):
        roots = rng.permuted(np.tile(np.arange(nodes), (runs, 1)), axis=1)[:, :batch]
        read = np.zeros((runs, nodes), dtype=bool)
        np.put_along_axis(read, roots, True, axis=1)
        inner = (read.astype(float) @ union) > 0  # rows of the first layer that the second reads
        rows = np.broadcast_to(encodings, (runs, nodes, 2))
        for released in (inner, read):
            means = [np.einsum("vu,rud->rvd", a, rows) for a in graphs]
            drawn = means[0] + noise * rng.standard_normal(means[0].shape)
            squares = [((drawn - mean) ** 2).sum(2) for mean in means]
            losses += ((squares[1] - squares[0]) * released).sum(1) / (2 * noise**2)
            rows = np.maximum(drawn * weights, 0)
            rows = rows / np.maximum(np.linalg.norm(rows, axis=2, keepdims=True), 1e-12)
        weights = weights + 0.5 * (drawn * read[:, :, None]).mean(1, keepdims=True)
    for epsilon in (0.5, 1.0, 2.0):
        values = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0)), 0)
        slack = 4 * values.std() / math.sqrt(runs)
        assert values.mean() <= guarantee.delta(noise, epsilon) + slack
    assert (
        values.mean()
        > TouchMixture(guarantee.squares / 4, guarantee.weights, convex_order=True).delta(
            noise, 2.0
        )
        + slack
    )


NOT_BOUNDED, FROZEN = {"bounding": "none"}, {"weights": "frozen"}
ONCE: dict[str, Any] = {"bounding": "none", "one_shot": True}
VFGNN = {"aggregation": "vfgnn"}
WHOLE = {"batch": 320, "steps": 50}
"""Every batch has all training nodes."""


@pytest.mark.parametrize(
    ("correction", "fields", "square"),
    [
        (ONCE, {}, 4),
        ({**ONCE, "evaluations": 3}, {}, 16),
        (ONCE, {"aggregation": "gcn", "least_degree": 4}, 2 * 2 / 25 + 2),
        (NOT_BOUNDED, {**WHOLE, "layers": 1}, 50 * 2),
        (NOT_BOUNDED, WHOLE, 50 * (2 + 2)),
        ({"nonnegative": True}, WHOLE, 50 * 8 * 2),
        (
            {**NOT_BOUNDED, "weights": "dpsgd", "gradient_ratio": 2.0},
            WHOLE,
            50 * (2 + 2 + 1),
        ),
        (FROZEN, {**VFGNN, **WHOLE}, 50 * 2 * 4 * 5),
        ({**FROZEN, "one_shot": True}, VFGNN, 2 * 4 * 5),
    ],
)
def test_what_the_corrected_mechanism_costs(correction: Any, fields: Any, square: float):
    """Cases of one Gaussian mechanism."""
    training = dataclasses.replace(SMALL, correction=Correction(**correction), **fields)
    assert certified_guarantee(training).epsilon(20, 1e-5) == pytest.approx(
        get_epsilon_gaussian(20 / math.sqrt(square), 1e-5)
    )


def test_no_sum_of_costs_is_above_the_largest():
    guarantee, squares = certified_guarantee(SMALL), layer_squares(SMALL)
    assert guarantee.largest == SMALL.steps * sum(squares) >= guarantee.squares.max()


def test_batches_drawn_afresh_show_a_random_number_of_the_rows_of_vfgnn():
    counts = np.arange(21)
    exact = TouchMixture(*_compose(2.0 * counts, hypergeom(320, 20, 32).pmf(counts), 500))
    frozen, learned = (
        dataclasses.replace(SMALL, aggregation="vfgnn", correction=Correction(weights=weights))
        for weights in ("frozen", "dpsgd")
    )
    afresh = certified_guarantee(frozen).epsilon(20, 1e-5)
    assert afresh == pytest.approx(exact.epsilon(20, 1e-5))
    assert certified_guarantee(learned).epsilon(20, 1e-5) > afresh
    with pytest.raises(PrivacyError):
        certified_guarantee(dataclasses.replace(frozen, correction=Correction(**FROZEN, **ONCE)))


def test_weights_that_learn_through_edges_have_no_guarantee():
    trained = dataclasses.replace(SMALL, correction=Correction(weights="trained"))
    assert ACCOUNTANTS["certified"](trained) is NO_BOUND
    assert NO_BOUND.epsilon(1e5, 0.1) == math.inf
    assert NO_BOUND.delta(1e5, 9.0) == 1
    with pytest.raises(PrivacyError):
        noise_for(NO_BOUND, 8, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon"),
    [*((name, 25.0) for name in ACCOUNTANTS), ("paper", 0.5), ("paper_fixed", 0.5)],
)
def test_noise_is_the_least_that_keeps_a_budget(name: str, epsilon: float):
    accountant = ACCOUNTANTS[name](
        VerticalTraining(nodes=500, batch=50, steps=40, layers=2, degree=3)
    )
    if epsilon < 1:
        # Two is in the theorem's place of a divergence that vanishes: its orders above 2 do not
        # vanish with noise.
        assert accountant.epsilon(NOISES[1], 1e-5) > epsilon
        with pytest.raises(PrivacyError):
            noise_for(accountant, epsilon, 1e-5)
        return
    noise = noise_for(accountant, epsilon, 1e-5)
    assert accountant.epsilon(noise, 1e-5) <= epsilon < accountant.epsilon(0.999 * noise, 1e-5)


@pytest.mark.slow
@settings(max_examples=4)
@given(
    st.sampled_from([1, 500, 10**6]),
    st.sampled_from([1, 50, 10**6]),
    st.sampled_from([1, 10**6]),
    st.sampled_from([1e-9, 1.0, 1e9]),
    st.sampled_from([*NOISES, 1.0]),
)
def test_at_the_ends_of_all_ranges_there_is_a_bound(nodes, degree, steps, ratio, noise):
    correction = Correction(weights="dpsgd", gradient_ratio=ratio)
    training = VerticalTraining(nodes, min(32, nodes), steps, 2, degree, correction=correction)
    for account in ACCOUNTANTS.values():
        for delta in (1e-300, 0.999999):
            assert account(training).epsilon(noise, delta) >= 0


@pytest.mark.parametrize("name", ACCOUNTANTS)
@pytest.mark.parametrize(
    ("noise", "delta"), [(0, 1e-5), (math.inf, 1e-5), (1.0, 0.0), (1.0, math.nan)]
)
def test_what_is_out_of_range_is_refused(name: str, noise: float, delta: float):
    with pytest.raises(PrivacyError):
        ACCOUNTANTS[name](SMALL).epsilon(noise, delta)
