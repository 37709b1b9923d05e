"""Tests of paired differences, by hand, in closed form, by simulation and by slow references."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from fabricated import T_95_TWO_DEGREES, two_sided_p
from feddep.reporting import inference

DIFFERENCES = st.lists(st.floats(-1, 1), min_size=3, max_size=12).filter(
    lambda values: np.std(values) > 1e-6
)


def test_interval_in_closed_form() -> None:
    found = inference.t_test([0.01, 0.02, 0.03])
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    assert [found["mean_difference"], found["std_difference"]] == pytest.approx([0.02, 0.01])
    assert [found["low"], found["high"]] == pytest.approx([0.02 - half, 0.02 + half])
    assert found["p"] == pytest.approx(two_sided_p(2 * math.sqrt(3)))
    # Two degrees of freedom: Γ(1) / (Γ(1/2) √1) is one over √π.
    assert [found["d_z"], found["g_z"]] == pytest.approx([2.0, 2.0 / math.sqrt(math.pi)])


@given(DIFFERENCES)
def test_interval_against_the_quantile(values: list[float]) -> None:
    found, n = inference.t_test(values), len(values)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n)
    assert [found["low"], found["high"]] == pytest.approx(
        [np.mean(values) - half, np.mean(values) + half]
    )
    t = np.mean(values) / np.std(values, ddof=1) * math.sqrt(n)
    density = integrate.quad(lambda x: stats.t.pdf(x, n - 1), 0, abs(t))[0]
    assert found["p"] == pytest.approx(1 - 2 * density, abs=1e-6)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.2], [0.1, 0.1, 0.1]])
def test_too_few_or_equal_differences_have_no_t_test(values: list[float]) -> None:
    found = inference.t_test(values)
    assert all(math.isnan(found[name]) for name in ("low", "high", "p", "d_z", "g_z"))
    assert found["mean_difference"] == pytest.approx(
        np.mean(values) if values else math.nan, nan_ok=True
    )


@given(DIFFERENCES, st.floats(0.001, 0.5))
def test_margin_tests_are_those_of_scipy(values: list[float], margin: float) -> None:
    below, above = inference.margin_tests(values, margin)
    assert below == pytest.approx(stats.ttest_1samp(values, margin, alternative="less").pvalue)
    assert above == pytest.approx(stats.ttest_1samp(values, -margin, alternative="greater").pvalue)
    # Both are small where the interval of 90 % is within the margin.
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    if abs(max(below, above) - 0.05) > 1e-9:
        assert (max(below, above) < 0.05) == (-margin < low and high < margin)


def test_equal_differences_are_within_the_margin_or_not() -> None:
    for value, p in ((0.0, 0), (0.02, 1), (-0.02, 1)):
        found = max(inference.margin_tests([value] * 3, 0.01))
        assert found == pytest.approx(p, abs=1e-9)
    assert all(map(math.isnan, inference.margin_tests([0.0] * 2, 0.01)))


@given(
    st.lists(st.integers(-400, 400).filter(bool), min_size=3, max_size=9, unique_by=abs),
)
def test_wilcoxon_by_counting_all_signs(values: list[int]) -> None:
    ranks = np.argsort(np.argsort(np.abs(values))) + 1
    centre = ranks.sum() / 2
    seen = abs(ranks[np.array(values) > 0].sum() - centre)
    counts = [
        abs(np.dot(signs, ranks) - centre) >= seen for signs in product((0, 1), repeat=len(values))
    ]
    assert inference.wilcoxon(np.array(values) / 1000) == pytest.approx(np.mean(counts))


def test_wilcoxon_needs_differences() -> None:
    assert math.isnan(inference.wilcoxon([0.0, 0.0, 0.0]))
    assert math.isnan(inference.wilcoxon([0.1, 0.2]))


@pytest.mark.parametrize(("n", "tests"), [(3, 1), (5, 1), (10, 1), (10, 15)])
def test_four_of_five_experiments_see_the_detectable_difference(n: int, tests: int) -> None:
    effect = inference.detectable(0.02, n, tests)
    drawn = np.random.default_rng(0).normal(effect, 0.02, (20_000, n))
    p = stats.ttest_1samp(drawn, 0, axis=1).pvalue
    assert np.mean(p < 0.05 / tests) == pytest.approx(0.8, abs=0.01)


def test_two_seeds_see_nothing() -> None:
    assert math.isnan(inference.detectable(0.02, 2, 1))


def test_region_probabilities_against_plain_draws() -> None:
    values, margin, rng = [0.03, -0.004, 0.012, 0.02, -0.001], 0.01, np.random.default_rng(1)
    places = [0.0, *values]
    counts = [0, 0, 0]
    for _ in range(2000):
        gammas = [rng.gamma(0.5), *(rng.gamma(1.0) for _ in values)]
        masses = [0.0, 0.0, 0.0]
        for i, j in product(range(6), repeat=2):
            mean = (places[i] + places[j]) / 2
            region = 0 if mean > margin else 2 if mean < -margin else 1
            masses[region] += gammas[i] * gammas[j]
        counts[masses.index(max(masses))] += 1
    found = inference.region_probabilities(values, margin)
    assert sum(found) == pytest.approx(1)
    assert found == pytest.approx(np.array(counts) / 2000, abs=0.03)
    mirrored = inference.region_probabilities([-value for value in values], margin)
    assert mirrored == pytest.approx(found[::-1], abs=0.01)


def test_regions_of_clear_cases() -> None:
    assert all(map(math.isnan, inference.region_probabilities([0.05, 0.05], 0.01)))
    assert inference.region_probabilities([0.05] * 9, 0.01)[0] > 0.99
    assert inference.region_probabilities([0.001] * 9, 0.01)[1] == 1
    assert inference.region_probabilities([-0.05] * 9, 0.01)[2] > 0.99


def test_holm_by_hand() -> None:
    assert inference.holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx(
        [0.03, 0.06, math.nan, 0.06], nan_ok=True
    )


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_is_the_closure_of_bonferroni(values: list[float]) -> None:
    """Adjusted p of one: the largest Bonferroni p of all sets of tests that it is in."""
    places = range(len(values))
    expected = [
        max(
            min(1.0, len(chosen) * min(values[k] for k in chosen))
            for size in range(1, len(values) + 1)
            for chosen in combinations(places, size)
            if place in chosen
        )
        for place in places
    ]
    assert inference.holm(values).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mean", "p", "p_equivalent", "word"),
    [
        (0.02, 0.01, 0.9, "better"),
        (-0.02, 0.01, 0.9, "worse"),
        (0.004, 0.01, 0.01, "equivalent"),
        (-0.001, 0.7, 0.02, "equivalent"),
        (0.02, 0.06, 0.9, "undecided"),
        (0.02, 0.05, 0.05, "undecided"),
        (0.1, math.nan, math.nan, "undecided"),
    ],
)
def test_verdicts(mean: float, p: float, p_equivalent: float, word: str) -> None:
    assert inference.verdict(mean, p, p_equivalent) == word
