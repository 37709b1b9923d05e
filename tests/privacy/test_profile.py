"""The exact guarantee is proven on every short list, in fractions, and the law it rests on is that of the real sampler."""

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from sampling_laws import divergence, enumerated_delta, multisets, repeated, selected, sequences
from scipy.stats import chisquare

from feddep.graph.graph import Graph
from feddep.graph.sampling import PAD, sample_neighbours
from feddep.privacy.accountant import Guarantee, PrivacyError, amplify, one_sampling
from feddep.privacy.profile import at_border, exact_guarantee, lemma_b1_fails, one_sided_losses, selected_delta
from graphs import star

FANOUTS = range(1, 5)
LENGTHS = range(6)
FACTORS = [Fraction(1), Fraction(3, 2), Fraction(7), Fraction(10**6)]
DRAWS = 20_000
SIGNIFICANCE = 1e-4


def shorter(neighbours: list[int]) -> list[list[int]]:
    """The list without one of its neighbours, for each of them."""
    return [neighbours[:rank] + neighbours[rank + 1 :] for rank in range(len(neighbours))]


def published(degree: int, fanout: int) -> Fraction:
    """δ of Lemma B.1, as a fraction."""
    return Fraction(fanout, degree) if fanout < degree else 1 - Fraction(degree - 1, degree) ** fanout


@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("ordered", [False, True])
def test_the_exact_delta_is_that_of_the_enumeration_for_every_epsilon(length, fanout, ordered):
    law = sequences if ordered else multisets
    longer = list(range(length + 1))
    expected = exact_guarantee(length, fanout, ordered=ordered).delta
    for factor in FACTORS:
        deltas = [enumerated_delta(law(longer, fanout), law(other, fanout), factor) for other in shorter(longer)]
        assert float(max(deltas)) == pytest.approx(expected, abs=1e-13)
        if not ordered:
            assert len(set(deltas)) == 1  # whichever neighbour it is


@pytest.mark.parametrize(
    ("length", "fanout", "times"), [(0, 2, 2), (1, 3, 3), (2, 2, 2), (3, 2, 3), (3, 3, 2), (4, 2, 2), (3, 4, 2)]
)
@pytest.mark.parametrize("factor", FACTORS)
def test_several_samplings(length, fanout, times, factor):
    longer, other = (repeated(multisets(range(n), fanout), times) for n in (length + 1, length))
    assert float(enumerated_delta(longer, other, factor)) == pytest.approx(
        exact_guarantee(length, fanout, times).delta, abs=1e-13
    )


@pytest.mark.parametrize(("length", "fanout"), [(3, 2), (2, 2)])
def test_several_samplings_whose_order_is_seen(length, fanout):
    longer = list(range(length + 1))
    p = repeated(sequences(longer, fanout), 2)
    deltas = [enumerated_delta(p, repeated(sequences(other, fanout), 2), Fraction(3)) for other in shorter(longer)]
    assert float(max(deltas)) == pytest.approx(exact_guarantee(length, fanout, 2, ordered=True).delta, abs=1e-13)


@pytest.mark.parametrize("fanout", [*FANOUTS, 5])
@pytest.mark.parametrize("degree", range(1, 8))
def test_the_published_bound_fails_at_the_border_and_is_tight_elsewhere(degree, fanout):
    laws = {n: multisets(range(n), fanout) for n in (degree - 1, degree, degree + 1)}
    factor = Fraction(math.exp(one_sampling(degree, fanout).epsilon))
    deltas = [enumerated_delta(laws[degree], laws[other], factor) for other in (degree - 1, degree + 1)]
    if at_border(degree, fanout):
        assert max(deltas) > published(degree, fanout)
    else:
        assert max(deltas) == published(degree, fanout)
        assert max(enumerated_delta(laws[degree], laws[other], Fraction(1)) for other in (degree - 1, degree + 1)) == max(deltas)


@pytest.mark.parametrize("both_lists", [False, True])
@pytest.mark.parametrize("fanout", [*FANOUTS, 5])
@pytest.mark.parametrize("degree", range(1, 9))
def test_for_which_least_degrees_the_published_bound_fails(degree, fanout, both_lists):
    """Over all pairs of lists of which one, or both, have at least D neighbours; longer ones than here differ less."""
    shortest = degree if both_lists else degree - 1
    laws = {n: multisets(range(n), fanout) for n in range(shortest, 11)}
    factor = Fraction(math.exp(one_sampling(degree, fanout).epsilon))
    worst = max(enumerated_delta(laws[n + 1], laws[n], factor) for n in range(shortest, 10))
    assert lemma_b1_fails(degree, fanout, both_lists) == (worst > published(degree, fanout))


def test_which_least_degrees_are_refuted_for_a_fan_out_of_five():
    assert [degree for degree in range(1, 30) if lemma_b1_fails(degree, 5)] == [3, 4, 5, 6]
    assert [degree for degree in range(1, 30) if lemma_b1_fails(degree, 5, both_lists=True)] == [3, 4, 5]


@pytest.mark.parametrize("fanout", [*FANOUTS, 5])
@pytest.mark.parametrize("length", range(1, 8))
def test_each_side_has_its_own_loss(length, fanout):
    present, absent = multisets(range(length + 1), fanout), multisets(range(length), fanout)
    for found, (true, other) in zip(one_sided_losses(length, fanout), ((absent, present), (present, absent)), strict=True):
        assert float(divergence(true, other, Fraction(math.exp(found.epsilon)))) == pytest.approx(found.delta, abs=1e-12)
        assert float(divergence(true, other, Fraction(10**9))) == pytest.approx(found.delta, abs=1e-12)  # δ is the least
        if found.epsilon > 0:  # and ε the least with it
            assert float(divergence(true, other, Fraction(math.exp(0.99 * found.epsilon)))) > found.delta + 1e-4
    hidden, shown = one_sided_losses(length, fanout)
    if length != fanout:
        assert (hidden.delta, shown.epsilon) == (0, 0)
        assert hidden.epsilon == pytest.approx(one_sampling(length, fanout).epsilon)
        assert shown.delta == pytest.approx(one_sampling(length + 1, fanout).delta)


def test_nothing_hides_the_first_edge_of_a_node():
    assert one_sided_losses(0, 5) == (Guarantee(0.0, -math.inf),) * 2


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("length", LENGTHS)
def test_drawing_from_selected_neighbours_is_that_of_the_enumeration(length, fanout, rate):
    longer, shorter = (selected(range(n), fanout, rate) for n in (length + 1, length))
    for factor in FACTORS:
        found = selected_delta(length, fanout, float(rate), math.log(factor))
        assert found == pytest.approx(float(enumerated_delta(longer, shorter, factor)), abs=1e-12)


def test_a_bernoulli_sampler_does_not_amplify_as_published():
    """Six neighbours of which 2 are drawn, selected with r = 0.1: r d/D is 0.033, the truth 0.089."""
    theirs = amplify(one_sampling(6, 2), 0.1)
    assert theirs.delta == pytest.approx(0.1 * 2 / 6)
    assert selected_delta(5, 2, 0.1, theirs.epsilon) == pytest.approx(0.08893608, abs=1e-8)
    drawn = {n: sum(share for drawn, share in selected(range(n), 2, Fraction(1, 10)).items() if n - 1 in drawn) for n in (6,)}
    assert selected_delta(5, 2, 0.1, 30.0) == pytest.approx(float(drawn[6]))  # no ε lowers it
    assert selected_delta(5, 2, 1.0) == pytest.approx(exact_guarantee(5, 2).delta)


def test_long_lists_are_no_trouble():
    assert selected_delta(100_000, 5, 0.5) == pytest.approx(0.5 * 5 / 50_001, rel=1e-3)


def test_the_counter_example_of_fan_out_five():
    six, five = multisets(range(6), 5), multisets(range(5), 5)
    assert enumerated_delta(six, five, Fraction(1)) == enumerated_delta(six, five, Fraction(10**9)) == 1 - Fraction(120, 5**5)
    assert exact_guarantee(5, 5).delta == pytest.approx(0.9616)
    assert published(5, 5) == Fraction(2101, 3125)
    assert published(6, 5) == Fraction(5, 6)


@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("length", LENGTHS)
def test_delta_is_at_least_the_chance_that_the_neighbour_is_drawn(length, fanout):
    law = multisets(range(length + 1), fanout)
    drawn = sum((share for outcome, share in law.items() if length in outcome), Fraction(0))
    assert divergence(law, multisets(range(length), fanout), Fraction(10**9)) >= drawn
    assert exact_guarantee(length, fanout).delta >= float(drawn) - 1e-13


def test_an_edge_of_an_isolated_node_is_certain():
    assert exact_guarantee(0, 5) == Guarantee(0.0, -math.inf)
    assert exact_guarantee(0, 5).delta == 1
    assert sequences([], 2) == {(PAD, PAD): 1}


@pytest.mark.parametrize(("length", "fanout"), [(14, 5), (15, 5), (3, 5), (10, 5), (400, 25)])
def test_unknown_lists_are_drawn_from_as_the_inclusion_probability_says(length, fanout):
    drawn = fanout / (length + 1) if length > fanout else 1 - (length / (length + 1)) ** fanout
    assert exact_guarantee(length, fanout).delta == pytest.approx(drawn, rel=1e-13)
    assert exact_guarantee(length, fanout, 3).delta == pytest.approx(1 - (1 - drawn) ** 3, rel=1e-13)


@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("length", LENGTHS)
def test_laws_are_laws(length, fanout):
    assert sum(sequences(range(length), fanout).values()) == 1
    law = multisets(range(length), fanout)
    assert sum(law.values()) == 1
    if length > fanout:
        assert law == dict.fromkeys(itertools.combinations(range(length), fanout), Fraction(1, math.comb(length, fanout)))
    elif length > 0:
        for outcome, share in law.items():
            orders = math.factorial(fanout) // math.prod(math.factorial(n) for n in Counter(outcome).values())
            assert share == Fraction(orders, length**fanout)


def test_the_order_tells_something_at_the_border_alone():
    assert (2, 0) not in sequences([0, 1, 2, 3], 2)
    assert exact_guarantee(2, 2, ordered=True).delta > exact_guarantee(2, 2).delta
    assert exact_guarantee(1, 2, ordered=True) == exact_guarantee(1, 2)
    assert exact_guarantee(3, 2, ordered=True) == exact_guarantee(3, 2)


@functools.cache
def drawn(degree: int, fanout: int, without: int | None) -> list[tuple[int, ...]]:
    """What the real sampler draws from the centre of a star, one of whose leaves may be cut off."""
    graph = star(degree)
    edges = graph.edges()
    if without is not None:
        edges = edges[edges[:, 1] != without]
    graph = Graph.from_edges(edges, graph.features, graph.labels, 1)
    rows = sample_neighbours(graph, np.zeros(DRAWS, dtype=np.int64), fanout, np.random.default_rng(degree * 10 + fanout))
    return [tuple(row) for row in rows.tolist()]


@pytest.mark.parametrize(("degree", "fanout"), [(1, 2), (2, 3), (3, 3), (4, 3), (5, 3), (6, 2), (5, 4)])
@pytest.mark.parametrize("without", [None, 1])
@pytest.mark.parametrize("law", [sequences, multisets])
def test_the_real_sampler_follows_the_enumerated_law(degree, fanout, without, law):
    expected = law([leaf for leaf in range(1, degree + 1) if leaf != without], fanout)
    outcomes = drawn(degree, fanout, without)
    counts = Counter(outcomes if law is sequences else (tuple(sorted(outcome)) for outcome in outcomes))
    assert set(counts) <= set(expected)
    if len(expected) > 1:
        observed = [counts[outcome] for outcome in expected]
        assert chisquare(observed, [float(share) * DRAWS for share in expected.values()]).pvalue > SIGNIFICANCE


def test_the_counter_example_in_the_real_sampler():
    repeats = {degree: np.mean([len(set(row)) < 5 for row in drawn(degree, 5, None)]) for degree in (5, 6)}
    assert repeats[6] == 0
    assert repeats[5] == pytest.approx(0.9616, abs=4.5 * math.sqrt(0.9616 * 0.0384 / DRAWS))
    assert repeats[5] > math.exp(one_sampling(5, 5).epsilon) * repeats[6] + one_sampling(5, 5).delta


def test_only_short_lists_are_enumerated():
    with pytest.raises(PrivacyError, match="drawing 8 of 25 neighbours has more than"):
        sequences(range(25), 8)


@pytest.mark.parametrize(
    ("wrong", "named"), [((-1, 2), "degree is -1"), ((2, 0), "fan-out d is 0"), ((2, 2, 0), "number of samplings is 0")]
)
def test_counts_out_of_range_are_refused(wrong, named):
    with pytest.raises(PrivacyError, match=named):
        exact_guarantee(*wrong)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [((-1, 2, 0.5), "degree is -1"), ((2, 0, 0.5), "fan-out d is 0"), ((2, 2, 1.5), "rate r is 1.5"), ((2, 2, 1, -1), "ε is -1")],
)
def test_a_selection_out_of_range_is_refused(wrong, named):
    with pytest.raises(PrivacyError, match=named):
        selected_delta(*wrong)


def test_a_fanout_below_one_has_no_law():
    with pytest.raises(PrivacyError, match="fan-out d is 0"):
        sequences(range(3), 0)
