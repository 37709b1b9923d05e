"""Where Theorem 3.1 fails and what it does not count, held against enumerated laws and the real sampler."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from feddep.graph.sampling import sample_trees
from feddep.privacy.accountant import Guarantee, amplify, one_sampling
from feddep.privacy.profile import exact_guarantee
from graphs import random_graph, star
from sampling_laws import Law, divergence, enumerated_delta, multisets
from studies.client_privacy.neighbour_sampling import expected_samplings, lemma_b1_fails, one_sided_losses, selected_delta

FANOUTS = range(1, 6)


def published(degree: int, fanout: int) -> Fraction:
    """δ of Lemma B.1, as a fraction."""
    return Fraction(fanout, degree) if fanout < degree else 1 - Fraction(degree - 1, degree) ** fanout


@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("degree", range(1, 8))
def test_the_published_bound_fails_where_replacement_begins_and_is_tight_elsewhere_for_any_epsilon(degree, fanout):
    law, *others = (multisets(range(n), fanout) for n in (degree, degree - 1, degree + 1))
    for factor in (Fraction(1), Fraction(math.exp(one_sampling(degree, fanout).epsilon))):
        delta = max(enumerated_delta(law, other, factor) for other in others)
        if fanout >= 3 and degree in (fanout, fanout + 1):
            assert delta > published(degree, fanout)
        else:
            assert delta == published(degree, fanout)


@pytest.mark.parametrize("both_lists", [False, True])
@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("degree", range(1, 9))
def test_for_which_least_degrees_the_published_bound_fails(degree, fanout, both_lists):
    """Over all pairs of lists of which one, or both, have at least D neighbours; longer ones than here differ less."""
    shortest = degree if both_lists else degree - 1
    laws = {n: multisets(range(n), fanout) for n in range(shortest, 11)}
    factor = Fraction(math.exp(one_sampling(degree, fanout).epsilon))
    worst = max(enumerated_delta(laws[n + 1], laws[n], factor) for n in range(shortest, 10))
    assert lemma_b1_fails(degree, fanout, both_lists) == (worst > published(degree, fanout))


@pytest.mark.parametrize("fanout", FANOUTS)
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
    assert one_sided_losses(0, fanout) == (Guarantee(0.0, -math.inf),) * 2  # nothing hides the first edge of a node


def selected(length: int, fanout: int, rate: Fraction) -> Law:
    """The law of the neighbours drawn from those of a list that a Bernoulli sampler has selected."""
    law: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for kept in itertools.product((False, True), repeat=length):
        chance = math.prod((rate if each else 1 - rate for each in kept), start=Fraction(1))
        for drawn, share in multisets(list(itertools.compress(range(length), kept)), fanout).items():
            law[drawn] += chance * share
    return law


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize("fanout", range(1, 5))
@pytest.mark.parametrize("length", range(6))
def test_drawing_from_selected_neighbours_is_that_of_the_enumeration(length, fanout, rate):
    longer, shorter = (selected(n, fanout, rate) for n in (length + 1, length))
    for factor in (Fraction(1), Fraction(3, 2), Fraction(7), Fraction(10**6)):
        found = selected_delta(length, fanout, float(rate), math.log(factor))
        assert found == pytest.approx(float(enumerated_delta(longer, shorter, factor)), abs=1e-12)


def test_a_bernoulli_sampler_does_not_amplify_as_published():
    """Six neighbours of which 2 are drawn, selected with r = 0.1: r d/D is 0.033, the truth 0.089."""
    assert selected_delta(5, 2, 0.1, amplify(one_sampling(6, 2), 0.1).epsilon) == pytest.approx(0.08893608, abs=1e-8)
    assert selected_delta(5, 2, 1.0) == pytest.approx(exact_guarantee(5, 2).delta)
    assert selected_delta(100_000, 5, 0.5) == pytest.approx(0.5 * 5 / 50_001, rel=1e-3)


@pytest.mark.parametrize(("fanout", "layers"), [(1, 1), (2, 2), (2, 3), (4, 2)])
def test_the_real_sampler_reads_lists_as_often_as_expected(fanout, layers):
    graph, epochs = random_graph(12, 10, seed=4), 4_000
    assert (graph.degrees == 0).any()
    roots = np.tile(np.arange(12), epochs)
    trees = sample_trees(graph, roots, (fanout,) * layers, np.random.default_rng(1)).nodes
    places = [trees[:, : (1 + fanout) ** hop].reshape(epochs, -1) for hop in range(layers)]
    read = np.stack([sum((each == node).sum(axis=1) for each in places) for node in range(12)], axis=1)
    error = read.std(axis=0) / np.sqrt(epochs)
    assert (np.abs(read.mean(axis=0) - expected_samplings(graph, fanout, layers)) <= 4.5 * error + 1e-12).all()
    assert expected_samplings(star(1), 5, 2).tolist() == [7, 7]
