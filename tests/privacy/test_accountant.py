"""The published formulas, held against sixty digits and against their own limits."""

import csv
import dataclasses
import json
import math
from importlib.resources import files

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from feddep.privacy.accountant import (
    LARGEST,
    Guarantee,
    PrivacyError,
    PublishedGuarantee,
    SamplingParameters,
    amplified_epsilon_as_printed,
    amplify,
    compose,
    compose_as_printed,
    composed_epsilons,
    one_sampling,
    published_guarantee,
)
from feddep.utils.errors import FeddepError

mpmath.mp.dps = 60

counts = st.one_of(st.integers(1, 30), st.integers(1, LARGEST))
shares = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 1e-5, 1 - 2**-53]))
all_parameters = st.builds(SamplingParameters, fanout=counts, layers=counts, epochs=counts, rate=shares, slack=shares)


def precise(degree: int, parameters: SamplingParameters) -> dict[str, mpmath.mpf]:
    """Theorem 3.1 and its lemmas, written down as they are printed, in 60 digits of any size."""
    D, d, k = mpmath.mpf(degree), mpmath.mpf(parameters.fanout), mpmath.mpf(parameters.layers) * parameters.epochs
    r, slack = mpmath.mpf(parameters.rate), mpmath.mpf(parameters.slack)
    if d < D:
        epsilon, rest = mpmath.log((D + 1) / (D + 1 - d)), 1 - d / D
    else:
        epsilon, rest = d * mpmath.log((D + 1) / D), ((D - 1) / D) ** d
    basic = k * epsilon
    advanced = mpmath.inf
    if slack > 0:
        u = min(mpmath.sqrt(mpmath.log(mpmath.e + epsilon * mpmath.sqrt(k) / slack)), mpmath.sqrt(mpmath.log(1 / slack)))
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


@given(counts, all_parameters)
def test_nothing_overflows(degree, parameters):
    work = published_guarantee(degree, parameters)
    for guarantee in (work.one, work.composed, work.composed_as_printed, work.final, work.final_as_printed):
        assert 0 <= guarantee.epsilon < math.inf
        assert 0 <= guarantee.delta <= 1
    assert not any(math.isnan(step.value) for step in work.steps)
    json.dumps(work.as_dict(), allow_nan=False)


def test_the_published_pairs_are_reproduced():
    with (files("feddep.reporting") / "published" / "edge_ldp.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    for row in rows:
        epsilon = one_sampling(int(row["min_degree_D"]), int(row["sampling_size_d"])).epsilon
        assert f"{epsilon:.1f}" == row["epsilon"]


@pytest.mark.parametrize(
    ("degree", "epsilon", "delta"),
    [
        (15, math.log(16 / 11), 1 / 3),
        (10, math.log(11 / 6), 1 / 2),
        (3, 5 * math.log(4 / 3), 1 - (2 / 3) ** 5),
        (1, 5 * math.log(2), 1),
    ],
)
def test_one_sampling_of_five(degree, epsilon, delta):
    guarantee = one_sampling(degree, 5)
    assert guarantee.epsilon == pytest.approx(epsilon, rel=1e-15)
    assert guarantee.delta == pytest.approx(delta, rel=1e-15)


def worse(one: Guarantee, other: Guarantee) -> bool:
    """Whether ``one`` promises no more than ``other``, to rounding."""
    return one.epsilon >= other.epsilon * (1 - 1e-12) and one.delta >= other.delta * (1 - 1e-12)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_more_neighbours_hide_more_under_one_law(degree, longer, fanout):
    assume(degree < longer and (fanout < degree) == (fanout < longer))
    assert worse(one_sampling(degree, fanout), one_sampling(longer, fanout))


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_drawing_more_shows_more_under_one_law(degree, fanout, more):
    assume(fanout < more and (fanout < degree) == (more < degree))
    assert worse(one_sampling(degree, more), one_sampling(degree, fanout))


def test_the_least_degree_is_not_the_worst_across_the_border():
    at_border, beyond = one_sampling(5, 5), one_sampling(6, 5)
    assert beyond.epsilon > at_border.epsilon
    assert beyond.delta > at_border.delta


@given(counts, all_parameters, st.integers(1, LARGEST), st.sampled_from(["layers", "epochs"]))
def test_more_samplings_show_more(degree, parameters, more, which):
    assume(more > getattr(parameters, which))
    longer = dataclasses.replace(parameters, **{which: more})
    assert worse(published_guarantee(degree, longer).composed, published_guarantee(degree, parameters).composed)
    assert worse(published_guarantee(degree, longer).final, published_guarantee(degree, parameters).final)


@given(counts, all_parameters, shares)
def test_a_higher_rate_shows_more(degree, parameters, rate):
    assume(rate > parameters.rate)
    higher = dataclasses.replace(parameters, rate=rate)
    assert worse(published_guarantee(degree, higher).final, published_guarantee(degree, parameters).final)


@given(counts, all_parameters, shares)
def test_slack_buys_epsilon_for_delta(degree, parameters, slack):
    assume(slack > parameters.slack)
    with_slack = dataclasses.replace(parameters, slack=slack)
    one, other = (published_guarantee(degree, each).composed for each in (parameters, with_slack))
    assert other.epsilon <= one.epsilon * (1 + 1e-12)
    assert other.delta >= one.delta * (1 - 1e-12)


@given(counts, all_parameters)
def test_one_epoch_of_one_hop_composes_to_itself(degree, parameters):
    one = one_sampling(degree, parameters.fanout)
    assert compose(one, 1, 0.0) == one


def test_the_limits_of_slack():
    one = one_sampling(15, 5)
    assert compose(one, 100, 0.0).epsilon == 100 * one.epsilon
    whole = compose(one, 100, 1.0)
    assert whole.delta == 1
    assert whole.epsilon == pytest.approx(100 * one.epsilon * math.tanh(one.epsilon / 2))
    assert composed_epsilons(0.0, 100, 0.0) == (0.0, 0.0)


@given(st.floats(0, 1e30), st.floats(-1e6, 0))
def test_the_limits_of_the_rate(epsilon, log_rest):
    guarantee = Guarantee(epsilon, log_rest)
    assert amplify(guarantee, 0.0) == Guarantee(0.0, 0.0)
    assert amplify(guarantee, 1.0) == guarantee
    assert amplified_epsilon_as_printed(epsilon, 0.0) == 0


@pytest.mark.parametrize("epsilon", [699.9, 700.1, 1e6])
def test_a_large_epsilon_loses_the_logarithm_of_the_rate(epsilon):
    assert amplify(Guarantee(epsilon, -1.0), 0.25).epsilon == pytest.approx(epsilon + math.log(0.25), rel=1e-15)


def test_a_large_epsilon_and_a_tiny_rate():
    assert amplify(Guarantee(700.0, -1.0), 1e-300).epsilon == pytest.approx(
        float(mpmath.log1p(mpmath.mpf(1e-300) * mpmath.exp(700)))
    )
    assert amplify(Guarantee(710.0, -1.0), 5e-324).epsilon == pytest.approx(
        float(mpmath.log1p(mpmath.mpf(5e-324) * mpmath.exp(710)))
    )


def test_the_printed_delta_is_the_complement_and_falls_with_every_sampling():
    one = one_sampling(15, 5)
    for times in (1, 2, 10, 30):
        cited, printed = compose(one, times, 1e-5), compose_as_printed(one, times, 1e-5)
        assert cited.delta + printed.delta == pytest.approx(1, rel=1e-12)
        assert cited.epsilon == printed.epsilon
        assert compose_as_printed(one, times + 1, 1e-5).delta < printed.delta


@pytest.mark.parametrize("epsilon", [0.46, 2.0, 40.0])
def test_the_printed_amplification_promises_less_than_epsilon_for_no_subsampling_at_all(epsilon):
    printed = amplified_epsilon_as_printed(epsilon, 1.0)
    assert printed == pytest.approx(math.log1p(math.exp(epsilon - 1)))
    assert printed < epsilon == amplify(Guarantee(epsilon, -1.0), 1.0).epsilon


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_for_a_small_epsilon_the_printed_amplification_promises_more_than_need_be(rate):
    for epsilon in (0.0, 0.3747, 0.458):
        assert amplified_epsilon_as_printed(epsilon, rate) > amplify(Guarantee(epsilon, -1.0), rate).epsilon


def test_every_step_is_given():
    work = published_guarantee(15, SamplingParameters(5, layers=2, epochs=50, rate=0.5, slack=1e-5))
    symbols = ["ε", "δ", "k", "U₁", "U₂", "ε̃₁", "ε̃₂", "ε̃", "δ̃", "ln(1−δ̃)", "δ̃", "ε", "ε", "δ", "δ"]
    assert [step.symbol for step in work.steps] == symbols
    values = [step.value for step in work.steps]
    assert values[2] == 100
    assert values[7] == min(values[5:7]) == work.composed.epsilon
    assert values[11:] == [
        work.final.epsilon,
        amplified_epsilon_as_printed(work.composed.epsilon, 0.5),
        work.final.delta,
        work.final_as_printed.delta,
    ]
    assert isinstance(work, PublishedGuarantee)


def test_an_isolated_node_has_no_guarantee():
    with pytest.raises(PrivacyError, match="degree D is 0, an isolated node"):
        one_sampling(0, 5)


@pytest.mark.parametrize("degree", [-1, LARGEST + 1])
def test_a_degree_out_of_range_is_refused(degree):
    with pytest.raises(PrivacyError, match=f"degree D is {degree}; it must be a whole number from 1"):
        published_guarantee(degree, SamplingParameters(5))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"fanout": 0}, "fan-out d is 0"),
        ({"layers": 0}, "layers L is 0"),
        ({"epochs": LARGEST + 1}, f"epochs N is {LARGEST + 1}"),
        ({"rate": -0.1}, "rate r is -0.1"),
        ({"rate": math.nan}, "rate r is nan"),
        ({"slack": 1.5}, "slack δ' is 1.5"),
        ({"slack": math.inf}, "slack δ' is inf"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong, named):
    with pytest.raises(PrivacyError, match=named) as error:
        SamplingParameters(**{"fanout": 5, **wrong})
    assert isinstance(error.value, FeddepError)
