"""The accounting of DP-SGD against closed forms, exact laws in one dimension, and the trees that
the sampler really draws.
"""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import PLDAccountant
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from feddep.graph.graph import Graph
from feddep.privacy.accountant import LARGEST, PrivacyError
from feddep.privacy.dpsgd_accounting import (
    _ORDERS,
    LEAST_RATE,
    NO_GUARANTEE,
    NOTHING_SPENT,
    RANGE,
    Epsilons,
    _DominatingPair,
    _LossDistribution,
    binomial_changes,
    edge_level,
    example_level,
    most_roots,
    most_roots_of_node,
    one_and_all_steps,
)
from sampling_laws import (
    SMALL,
    distance,
    law_of_trees,
    roots_of_edges,
    roots_of_nodes,
    without_edge,
)
from studies.privacy.client_privacy.changed_trees import most_changed, tree_changes

POINTS = np.linspace(-40, 40, 80_001)
"""Where densities are integrated."""


def mixture(sigma: float, rate: float, examples: int, shift: float) -> np.ndarray:
    """Density of a sum to which each example that is sampled adds ``shift``, with its noise."""
    counts = np.arange(examples + 1)
    shares = binom.pmf(counts, examples, rate)
    return sum(
        share * norm.pdf(POINTS, shift * count, sigma)
        for count, share in zip(counts, shares, strict=True)
    )


def exact_delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The least δ of two densities: ∫ max(0, p − e^ε q)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (POINTS[1] - POINTS[0]))


def replaced(sigma: float, rate: float, examples: int, tail: float) -> _LossDistribution:
    """One step in which each of so many examples is replaced whenever it is sampled."""
    return _DominatingPair(sigma, binomial_changes(examples, rate), tail).on_grid()


def simple_bound(sigma: float, rate: float, steps: int, delta: float, roots: int) -> Epsilons:
    """ε for one edge in the trees of so many training nodes, each changed whenever it is
    sampled.
    """
    return edge_level(sigma, binomial_changes(roots, rate), steps, delta)


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (2.0, 50), (8.0, 30)])
def test_without_subsampling_it_is_one_gaussian_of_less_noise(sigma, steps):
    exact = get_epsilon_gaussian(sigma / math.sqrt(steps), 1e-5)
    found = example_level(sigma, 1.0, steps, 1e-5)
    assert exact <= found.pld <= 1.001 * exact
    assert found.pld <= found.rdp <= 1.15 * exact
    exact = get_epsilon_gaussian(sigma / math.sqrt(steps) / 6, 1e-5)
    assert exact <= simple_bound(sigma, 1.0, steps, 1e-5, 3).pld <= 1.001 * exact


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (2.0, 0.3), (0.7, 0.02)])
def test_one_subsampled_step_is_the_exact_law(sigma, rate):
    p, q = mixture(sigma, rate, 1, 1.0), norm.pdf(POINTS, 0, sigma)
    epsilon = example_level(sigma, rate, 1, 1e-4).pld
    deltas = [
        max(exact_delta(p, q, value), exact_delta(q, p, value))
        for value in (epsilon, 0.99 * epsilon)
    ]
    assert deltas[0] <= 1e-4 * (1 + 1e-6) < deltas[1]


STEPS = [
    (1.0, 0.1, 1),
    (2.0, 0.06, 3),
    (1.5, 0.3, 5),
    (0.8, 1.0, 2),
    (3.0, 0.02, 20),
    (0.5, 0.01, 1),
]


def delta_of(losses: _LossDistribution, epsilon: float) -> float:
    """δ of a discrete distribution of the loss."""
    values = (losses.least + np.arange(len(losses.masses))) * losses.interval
    above = values > epsilon
    return losses.infinite - np.expm1(epsilon - values[above]) @ losses.masses[above]


@pytest.mark.parametrize(("sigma", "rate", "examples"), STEPS)
def test_one_step_is_the_law_of_gradients_that_turn_round(sigma, rate, examples):
    losses = replaced(sigma, rate, examples, 1e-12)
    assert losses.masses.sum() + losses.infinite == pytest.approx(1, abs=1e-8)
    first, second = (mixture(sigma, rate, examples, shift) for shift in (1.0, -1.0))
    for epsilon in (-1.0, -0.1, 0.0, 0.2, 1.0, 3.0):
        assert delta_of(losses, epsilon) == pytest.approx(
            exact_delta(first, second, epsilon), rel=1e-4, abs=1e-9
        )


def test_a_coarse_grid_has_the_profile_where_it_is_given():
    losses = 0.5 * np.arange(-3, 4)
    # Of unit Gaussians one apart.
    deltas = norm.cdf(0.5 - losses) - np.exp(losses) * norm.cdf(-0.5 - losses)
    found = _LossDistribution.from_profile(0.5, deltas)
    assert found.masses.sum() + found.infinite == pytest.approx(1)
    assert [delta_of(found, loss) for loss in losses] == pytest.approx(deltas)


def test_a_negative_mass_is_left_out():
    # Falls by little, then by much: no δ of any pair does.
    deltas = np.array([0.9, 0.6, 0.59, 0.1, 0.05])
    losses = _LossDistribution.from_profile(0.5, deltas)
    assert losses.masses.min() == 0
    for place, delta in enumerate(deltas, start=-2):
        assert delta_of(losses, 0.5 * place) >= delta - 1e-12


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"), [(2.0, 0.06, 200), (1.0, 0.01, 500), (4.0, 0.3, 50), (2.0, 1.0, 20)]
)
def test_one_replaced_example_is_what_the_library_has_for_it(sigma, rate, steps):
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), steps)
    theirs = PLDAccountant(NeighboringRelation.REPLACE_ONE, 1e-3).compose(event).get_epsilon(1e-5)
    found = simple_bound(sigma, rate, steps, 1e-5, 1)
    assert found.pld == pytest.approx(theirs, rel=3e-3)
    assert found.pld < found.rdp < 1.25 * found.pld


@pytest.mark.parametrize(("sigma", "rate", "examples"), STEPS)
def test_renyi_divergences_are_those_of_the_law(sigma, rate, examples):
    """Above only by what the grid makes of them; of larger orders the tail counts as infinite, and
    δ pays for it.
    """
    losses = replaced(sigma, rate, examples, 1e-40)
    first, second = (mixture(sigma, rate, examples, shift) for shift in (1.0, -1.0))
    seen = (first > 0) & (second > 0)
    for order in (*_ORDERS[::4][:3], 1.5, 2.0):
        powers = np.exp(order * np.log(first[seen]) + (1 - order) * np.log(second[seen]))
        exact = math.log(powers.sum() * (POINTS[1] - POINTS[0])) / (order - 1)
        assert exact * (1 - 1e-6) <= losses.divergence(order) <= exact * 1.02 + 1e-6


@pytest.mark.parametrize("level", [example_level, lambda *costs: simple_bound(*costs, 3)])
def test_the_ends_of_the_ranges(level):
    assert level(2.0, 0.0, 100, 1e-5) == level(2.0, 0.5, 0, 1e-5) == NOTHING_SPENT
    assert level(0.0, 0.5, 1, 1e-5) == NO_GUARANTEE
    assert level(0.0, 0.0, 100, 1e-5) == NOTHING_SPENT  # nobody is ever sampled
    assert simple_bound(2.0, 0.5, 10, 1e-5, 0) == NOTHING_SPENT
    assert [len(binomial_changes(roots, 0.1)) for roots in (0, 1, 7)] == [1, 2, 8]
    assert (
        level(2.0, 0.5, 3.0, 1e-5) == level(2.0, 0.5, np.int64(3), 1e-5) == level(2.0, 0.5, 3, 1e-5)
    )
    tiny = level(2.0, 0.1, 10, 1e-300)
    assert tiny.pld == math.inf
    assert not math.isnan(tiny.rdp)
    assert tiny.least == tiny.rdp


@pytest.mark.parametrize("chance", [1e-5, 1e-7, 1e-12, 1e-20, 1e-300])
def test_a_change_that_next_to_never_happens(chance):
    """Once δ covers that it ever does, ε is 0."""
    law = np.array([1 - chance, chance / 2, chance / 2])
    for steps, delta in itertools.product((1, 100), (1e-3, 1e-6, 1e-11)):
        found = edge_level(1.0, law, steps, delta)
        assert not any(math.isnan(value) for value in vars(found).values())
        assert (found == NOTHING_SPENT) == (steps * chance <= delta)
    assert simple_bound(2.0, chance * 1e-3, 1, 1e-5, 3) == NOTHING_SPENT


@pytest.mark.parametrize(
    "wrong",
    [
        *({"sigma": value} for value in (-1.0, math.nan, math.inf, 1e-4, 1e7, 5e-324)),
        *({"rate": value} for value in (1.5, -0.1, math.nan)),
        *({"steps": value} for value in (-1, 10**6 + 1)),
        *({"delta": value} for value in (0.0, 1.0, math.nan)),
    ],
)
def test_values_out_of_range_are_refused(wrong):
    values = {"sigma": 2.0, "rate": 0.1, "steps": 10, "delta": 1e-5, **wrong}
    with pytest.raises(PrivacyError):
        example_level(**values)
    with pytest.raises(PrivacyError):
        simple_bound(**values, roots=2)
    with pytest.raises(PrivacyError):
        binomial_changes(-1, 0.1)
    with pytest.raises(PrivacyError):
        example_level(2.0, LEAST_RATE / 2, 10, 1e-5)


def test_one_step_and_all_steps():
    law = np.array([0.8, 0.15, 0.04, 0.01])
    assert one_and_all_steps(2.0, 0.1, 30, 1e-5) == tuple(
        example_level(2.0, 0.1, steps, 1e-5) for steps in (1, 30)
    )
    assert one_and_all_steps(2.0, 0.1, 30, 1e-5, law) == tuple(
        edge_level(2.0, law, steps, 1e-5) for steps in (1, 30)
    )
    assert one_and_all_steps(2.0, 0.0, 0, 1e-5) == (NOTHING_SPENT, NOTHING_SPENT)


def signed(one: dict, other: dict, rate: float, positive: bool) -> dict[int, float]:
    """The law of ±1 that tells best which of two laws of trees a tree is from, 0 if it is not
    sampled or tells nothing.
    """
    law = {-1: 0.0, 0: 1 - rate, 1: 0.0}
    for tree, share in (one if positive else other).items():
        first, second = one.get(tree, 0), other.get(tree, 0)
        law[(first > second) - (first < second)] += rate * float(share)
    return law


def summed(laws: list[dict[int, float]], sigma: float) -> np.ndarray:
    """Density of the sum of independent numbers, with noise."""
    total = {0: 1.0}
    for law in laws:
        sums: defaultdict[int, float] = defaultdict(float)
        for (one, share), (other, chance) in itertools.product(total.items(), law.items()):
            sums[one + other] += share * chance
        total = sums
    return sum(share * norm.pdf(POINTS, shift, sigma) for shift, share in total.items())


def deltas_of_step(
    graph: Graph, edge: int, roots: list[int], hops: int, fanout: int, sigma: float, rate: float
):
    """One step, whose gradients are ±1 by the tree: number of roots whose trees change in law, and
    δ for some ε.

    Returns:
        That number; then for each ε, δ in both directions, and the bound on it for roots that may
        miss the edge.
    """
    worlds = graph, without_edge(graph, edge)
    pairs = [tuple(law_of_trees(world, root, hops, fanout) for world in worlds) for root in roots]
    changed = [(one, other) for one, other in pairs if one != other]
    present, absent = (
        summed([signed(*pair, rate, world) for pair in changed], sigma) for world in (True, False)
    )
    rates = []
    for one, other in changed:
        differ = rate * distance(one, other)
        rates.append(differ / (1 - rate + differ))
    bounding = [summed([{0: 1 - each, sign: each} for each in rates], sigma) for sign in (1, -1)]
    found = []
    for epsilon in (-0.5, 0.0, 0.3, 1.0, 2.0):
        both = exact_delta(present, absent, epsilon), exact_delta(absent, present, epsilon)
        found.append((epsilon, *both, exact_delta(*bounding, epsilon)))
    return len(changed), found


@pytest.mark.slow
@pytest.mark.parametrize("edges", SMALL.values(), ids=SMALL.keys())
@pytest.mark.parametrize(
    ("hops", "fanout", "sigma", "rate"), [(1, 1, 0.7, 0.3), (2, 1, 1.5, 0.8), (2, 2, 2.0, 0.1)]
)
def test_one_step_bounds_what_the_sampled_trees_show(edges, hops, fanout, sigma, rate):
    """From the exact law of every root's tree, with an edge and without: those that change are
    counted, and no others.
    """
    roots = [1, 3, 4]
    graph = Graph.from_edges(np.array(edges), np.eye(5), np.zeros(5), 1)
    counts = roots_of_edges(graph, np.array(roots), hops)
    changes = tree_changes(graph, np.array(roots), hops, fanout)
    bounds = {k: replaced(sigma, rate, k, 1e-12) for k in set(counts.tolist()) if k}
    worst = _DominatingPair(sigma, most_changed(changes, rate), 1e-12).on_grid()
    for edge, count in enumerate(counts.tolist()):
        changed, deltas = deltas_of_step(graph, edge, roots, hops, fanout, sigma, rate)
        assert changed == count
        own = (
            _DominatingPair(sigma, most_changed(changes[[edge]], rate), 1e-12).on_grid()
            if count
            else None
        )
        for epsilon, one, other, missed in deltas if count else []:
            assert max(one, other) <= missed * (1 + 1e-6) + 1e-9
            by_trees = delta_of(own, epsilon)
            assert missed <= by_trees * (1 + 1e-4) + 1e-9
            assert by_trees <= delta_of(bounds[count], epsilon) * (1 + 1e-4) + 1e-9
            assert by_trees <= delta_of(worst, epsilon) * (1 + 1e-4) + 1e-9


@pytest.mark.slow
@settings(max_examples=8)
@example(6.0, 1.0, LARGEST, 0.999999)
@given(
    st.floats(-3, 6),
    st.sampled_from([1.0, 0.5]) | st.floats(-9, 0).map(lambda power: 10**power),
    st.sampled_from([1, 2, 1000, LARGEST]),
    st.sampled_from([1e-300, 1e-12, 1e-5, 0.999999]),
)
def test_at_the_ends_of_all_ranges_there_is_a_bound(power, rate, steps, delta):
    """PLD may have none, and is ∞ then; from σ = 0.01 on RDP has one where δ is not next to
    nothing.
    """
    if delta > 0.5 and power < 6:  # its grid takes a minute and gigabytes for the most steps
        steps = min(steps, 1000)
    found = example_level(
        min(max(10**power, RANGE[0]), RANGE[1]), max(rate, LEAST_RATE), steps, delta
    )
    assert found.rdp >= 0
    assert found.pld >= 0
    assert math.isfinite(found.rdp) or power < -2 or delta < 1e-200


def grown(
    tops: list[tuple[int, int]], edges: list[tuple[int, int]], degree: int, depth: int
) -> Graph:
    """Trees of that depth from tops with so many branches each, in which all but the last nodes
    have ``degree`` neighbours.
    """
    edges, nodes = list(edges), len(tops)
    for _ in range(depth):
        fresh = []
        for top, branches in tops:
            for _ in range(branches):
                edges.append((top, nodes))
                fresh.append((nodes, degree - 1))
                nodes += 1
        tops = fresh
    return Graph.from_edges(np.array(edges).reshape(-1, 2), np.eye(nodes), np.zeros(nodes), 1)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_bounds_on_roots_are_attained(degree, hops):
    """By an edge between the tops of two trees; by a node that is replaced, which leaves one top
    and becomes another.
    """
    joined = grown([(0, degree - 1), (1, degree - 1)], [(0, 1)], degree, hops - 1)
    assert roots_of_edges(joined, np.arange(joined.num_nodes), hops)[0] == most_roots(degree, hops)
    apart = grown([(0, degree), (1, degree)], [], degree, hops)
    left, entered = roots_of_nodes(apart, np.arange(apart.num_nodes), hops)[:2]
    assert left == entered == most_roots_of_node(degree, hops)
    assert left + entered - 1 == most_roots_of_node(degree, hops, replaced=True)
