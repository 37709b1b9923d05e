"""The published formulas, held against sixty digits and against their own limits."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.privacy.accountant import (
    LARGEST,
    Guarantee,
    PrivacyError,
    SamplingParameters,
    amplified_epsilon_as_printed,
    amplify,
    composed_epsilon,
    least_noise,
    published_guarantee,
    require_delta,
)

mpmath.mp.dps = 60

counts = st.one_of(st.integers(1, 30), st.integers(1, LARGEST))
shares = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 1e-5, 1 - 2**-53]))
all_parameters = st.builds(
    SamplingParameters, fanout=counts, layers=counts, epochs=counts, rate=shares, slack=shares
)


def precise(degree: int, parameters: SamplingParameters) -> dict[str, mpmath.mpf]:
    """Theorem 3.1 and its lemmas, written down as they are printed, in 60 digits of any size."""
    D = mpmath.mpf(degree)
    d = mpmath.mpf(parameters.fanout)
    k = mpmath.mpf(parameters.layers) * parameters.epochs
    r, slack = mpmath.mpf(parameters.rate), mpmath.mpf(parameters.slack)
    if d < D:
        epsilon, rest = mpmath.log((D + 1) / (D + 1 - d)), 1 - d / D
    else:
        epsilon, rest = d * mpmath.log((D + 1) / D), ((D - 1) / D) ** d
    basic = k * epsilon
    advanced = mpmath.inf
    if slack > 0:
        u = min(
            mpmath.sqrt(mpmath.log(mpmath.e + epsilon * mpmath.sqrt(k) / slack)),
            mpmath.sqrt(mpmath.log(1 / slack)),
        )
        advanced = basic * mpmath.tanh(epsilon / 2) + epsilon * u * mpmath.sqrt(2 * k)
    composed = min(basic, advanced)
    never = rest**k * (1 - slack)
    return {
        "epsilon": epsilon,
        "delta": 1 - rest,
        "composed_epsilon": composed,
        "never": never,
        "final_epsilon": mpmath.log1p(r * mpmath.expm1(composed)),
        "final_delta": r * (1 - never),
        "printed_delta": r * never,
    }


def close(ours: float, precise: mpmath.mpf) -> bool:
    return abs(ours - precise) <= 1e-9 * abs(precise) + 1e-300


@given(counts, all_parameters)
def test_every_number_agrees_with_sixty_digits(degree, parameters):
    ours, theirs = published_guarantee(degree, parameters), precise(degree, parameters)
    assert close(ours.one.epsilon, theirs["epsilon"])
    assert close(ours.one.delta, theirs["delta"])
    assert close(ours.composed.epsilon, theirs["composed_epsilon"])
    assert close(ours.composed.delta, 1 - theirs["never"])
    assert close(ours.composed_as_printed.delta, theirs["never"])
    if theirs["never"] > 0:
        assert close(ours.composed.log_rest, mpmath.log(theirs["never"]))
    assert close(ours.final.delta, theirs["final_delta"])
    assert close(ours.final_as_printed.delta, theirs["printed_delta"])
    assert close(ours.final.epsilon, theirs["final_epsilon"])
    for guarantee in vars(ours).values():
        assert 0 <= guarantee.epsilon < math.inf
        assert 0 <= guarantee.delta <= 1


@pytest.mark.parametrize(
    ("epsilon", "rate"),
    [(699.9, 0.25), (700.1, 0.25), (1e6, 0.25), (700.0, 1e-300), (710.0, 5e-324)],
)
def test_a_large_epsilon_loses_the_logarithm_of_the_rate(epsilon, rate):
    exact = mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))
    assert amplify(Guarantee(epsilon, -1.0), rate).epsilon == pytest.approx(float(exact))


@pytest.mark.parametrize("epsilon", [0.46, 2.0, 40.0])
def test_the_printed_amplification_promises_less_than_epsilon_for_no_subsampling_at_all(epsilon):
    printed = amplified_epsilon_as_printed(epsilon, 1.0)
    assert printed == pytest.approx(math.log1p(math.exp(epsilon - 1)))
    assert printed < epsilon == amplify(Guarantee(epsilon, -1.0), 1.0).epsilon
    assert amplified_epsilon_as_printed(epsilon, 0.0) == 0
    assert amplified_epsilon_as_printed(1.0, 0.5) == pytest.approx(math.log(1.5))


def test_what_never_differs_costs_nothing_however_often():
    assert composed_epsilon(0.0, 5, 1e-6) == 0


@given(st.floats(0.02, 900), st.floats(0.5, 50), st.floats(1.0001, 2))
def test_the_least_noise_for_a_budget(budget, scale, ratio):
    """ε is ``scale`` over the noise."""
    low, high = 1e-2, 1e2
    if scale / high > budget or scale / low <= budget:
        with pytest.raises(PrivacyError):
            least_noise(lambda noise: scale / noise, budget, low, high, ratio)
        return
    found = least_noise(lambda noise: scale / noise, budget, low, high, ratio)
    exact = scale / budget
    assert exact <= found * (1 + 1e-12)
    assert found <= exact * ratio * (1 + 1e-12)


def test_what_is_out_of_range_is_refused():
    wrong = [
        {"fanout": 0},
        {"layers": 0},
        {"epochs": LARGEST + 1},
        {"rate": -0.1},
        {"rate": math.nan},
        {"slack": 1.5},
    ]
    for each in wrong:
        with pytest.raises(PrivacyError):
            SamplingParameters(**{"fanout": 5, **each})
    for degree in (-1, 0, LARGEST + 1):  # an isolated node has no guarantee
        with pytest.raises(PrivacyError):
            published_guarantee(degree, SamplingParameters(5))
    for budget in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(PrivacyError):
            least_noise(lambda noise: 0.0, budget, 1.0, 10.0, 1.1)
    # The most is just enough.
    assert least_noise(lambda noise: 1 / noise, 0.1, 1.0, 10.0, 1.1) == 10
    # Nothing to hide.
    assert least_noise(lambda noise: 0.0, 0.1, 1.0, 10.0, 1.1) == pytest.approx(1, rel=0.1)
    for delta, edges in ((0.0, None), (1.0, None), (math.nan, None), (1e-3, 1000)):
        with pytest.raises(PrivacyError):
            require_delta(delta, edges)
    require_delta(0.99e-3, 1000)
    assert SamplingParameters(LARGEST, rate=0.0, slack=1.0).samplings == 1


@pytest.mark.parametrize(
    ("log_rest", "shown"),
    [
        *(
            (0.0, "0"),
            (math.log(0.5), "0.5"),
            (-math.inf, "1"),
            (-2302.585092994046, "1 − 1.0e-1000"),
        ),
        *((math.log(2.46e-18), "1 − 2.5e-18"), (math.log(9.99e-6), "1 − 1.0e-5")),
    ],
)
def test_a_delta_near_one_is_shown_by_its_distance(log_rest, shown):
    assert Guarantee(0.0, log_rest).format_delta() == shown
