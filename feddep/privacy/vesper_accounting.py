"""Accountants of VESPER: ε for a δ, and the noise θ that keeps a budget.

All of them account for what party B sees of one edge in T steps.  :data:`ACCOUNTANTS` has them by
name:

* ``paper``: Theorem 2.1 as printed, as far as it has a value; no bound;
* ``paper_fixed``: the theorem that it cites (Wang, Balle and Kasiviswanathan 2019, Theorem 9), for
    whole orders α;
* ``rdp``: the sharper bound of the same paper's Theorem 27 that dp-accounting has for it, with the
    theorem's γ;
* ``no_amplification``: without amplification, since B looks labels up and so knows each batch; all
    else as in the paper;
* ``certified``: the corrected mechanism, whose bound is a guarantee.

The first three convert Rényi DP by Balle et al. (2020, Theorem 21), as dp-accounting does.  The
last two are mixtures of Gaussian mechanisms over how often known batches touch the edge.
docs/appendix/vesper_proofs.md says what each rests on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from dp_accounting import GaussianDpEvent, NeighboringRelation, SampledWithoutReplacementDpEvent
from dp_accounting.pld import common
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import binom, hypergeom, norm

from feddep.privacy.accountant import PrivacyError, least_noise, require_delta
from feddep.privacy.vesper_sensitivity import (
    NOISE_LAST,
    VerticalTraining,
    changed_outputs,
    layer_squares,
    published_roots,
    published_sensitivities,
    reading_roots,
)

NOISES = (1e-3, 1e6)
"""The least and the largest noise θ that :func:`noise_for` considers."""

_ORDERS = np.arange(2, 513)
# Whole ones, as its series is slow.
_LIBRARY_ORDERS = [
    *range(2, 13),
    *range(14, 33, 3),
    40,
    50,
    64,
    96,
    128,
    257,
    512,
]
_TAIL = 1e-14  # probability of rare numbers of touches that are left out
_ROUNDING = 1e-12  # of Fourier transforms in double precision, with that tail
_CELLS = 256  # of a grid for costs that are no multiples of one another


class Accountant(Protocol):
    """Accounts for noise of standard deviation θ on every entry of a released row."""

    def epsilon(self, noise: float, delta: float) -> float:
        """The least ε that is proven for δ; ∞ where none is."""


def touch_probability(nodes: int, roots: int, batch: int) -> float:
    """γ = 1 − C(N_T − N_e, B)/C(N_T, B): the probability that a batch drawn without replacement
    holds one of N_e nodes.

    Args:
        nodes: number of training nodes N_T.
        roots: number of nodes N_e; more than N_T count as N_T.
        batch: number of nodes B in a batch, at most N_T.
    """
    fewer, more = sorted((batch, min(roots, nodes)))
    if fewer + more > nodes:
        return 1.0
    # The quotient is the same with B and N_e exchanged, and a product over the smaller one.
    return float(-np.expm1(np.log1p(-more / (nodes - np.arange(fewer))).sum()))


def noise_for(
    accountant: Accountant, epsilon: float, delta: float, edges: int | None = None
) -> float:
    """The least noise θ that keeps ε at δ, to a ten-thousandth; never too little.

    Raises:
        PrivacyError: if ε or δ is outside its range, or no noise of :data:`NOISES` is enough; names
            the least ε there is.
    """
    require_delta(delta, edges)
    return least_noise(lambda noise: accountant.epsilon(noise, delta), epsilon, *NOISES, 1.0001)


def _check(noise: float, delta: float) -> None:
    require_delta(delta)
    if not NOISES[0] <= noise <= NOISES[1]:
        raise PrivacyError(
            f"the noise θ is {noise}; it must be a number from {NOISES[0]:g} to {NOISES[1]:g}"
        )


class RenyiBound:
    """A bound on the Rényi divergence of a step, composed and converted.

    Args:
        training: the training.
        of_step: from γ and ρ = Σ S_l²/(2θ²) to the bound of a step at orders 2 to 512; ε(α) = αρ is
            that without sampling.
    """

    def __init__(
        self, training: VerticalTraining, of_step: Callable[[float, float], np.ndarray]
    ) -> None:
        self._of_step, self._steps = of_step, training.steps
        self._gamma, self._squared = _published_terms(training)

    def epsilon(self, noise: float, delta: float) -> float:
        """See :class:`Accountant`."""
        _check(noise, delta)
        with np.errstate(over="ignore"):
            divergences = self._steps * self._of_step(self._gamma, self._squared / (2 * noise**2))
        return float(compute_epsilon(_ORDERS, divergences, delta)[0])


class LibraryBound:
    """Theorem 27 of Wang et al. for sampling without replacement, by dp-accounting; γ is rounded up
    to a share of whole numbers.

    Args:
        training: the training.
    """

    def __init__(self, training: VerticalTraining) -> None:
        self._steps = training.steps
        self._gamma, self._squared = _published_terms(training)

    def epsilon(self, noise: float, delta: float) -> float:
        """See :class:`Accountant`."""
        _check(noise, delta)
        source = 2**40
        event = GaussianDpEvent(noise / math.sqrt(self._squared))
        sampled = SampledWithoutReplacementDpEvent(source, math.ceil(self._gamma * source), event)
        accountant = RdpAccountant(_LIBRARY_ORDERS, NeighboringRelation.REPLACE_ONE)
        return float(accountant.compose(sampled, self._steps).get_epsilon(delta))


def _published_terms(training: VerticalTraining) -> tuple[float, float]:
    """γ and Σ S_l², as published."""
    roots = published_roots(training.degree, training.layers)
    squared = sum(each**2 for each in published_sensitivities(training))
    return touch_probability(training.nodes, roots, training.batch), squared


def _log_binomial(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _higher_terms(gamma: float, rho: float) -> np.ndarray:
    """Ln Σ_{j=3}^α γ^j C(α, j) e^{(j−1) ε(j)} · 2 for each order; min(2, ·) is 2, as ε(∞) is
    infinite for Gaussian noise.
    """
    j = np.arange(3, _ORDERS[-1] + 1)
    inside = j <= _ORDERS[:, None]
    binomials = _log_binomial(_ORDERS[:, None], np.minimum(j, _ORDERS[:, None]))
    terms = j * math.log(gamma) + binomials + (j - 1) * j * rho + math.log(2)
    return np.asarray(logsumexp(np.where(inside, terms, -np.inf), axis=1))


def subsampled_divergences(gamma: float, rho: float) -> np.ndarray:
    """Theorem 9 of Wang, Balle and Kasiviswanathan (2019) for a Gaussian mechanism, at orders 2 to
    512.

    ε_γ(α) ≤ ln(1 + γ² C(α, 2) min(4 (e^ε(2) − 1), 2 e^ε(2)) + Σ_{j=3}^α γ^j C(α, j) e^{(j−1) ε(j)}
    · 2) / (α − 1).

    Args:
        gamma: share γ of the records that is drawn without replacement.
        rho: ε(α)/α of the mechanism.
    """
    second = min(math.log(4) + math.log(-math.expm1(-2 * rho)), math.log(2)) + 2 * rho
    second_terms = 2 * math.log(gamma) + _log_binomial(_ORDERS, np.full_like(_ORDERS, 2)) + second
    return np.logaddexp(0, np.logaddexp(second_terms, _higher_terms(gamma, rho))) / (_ORDERS - 1)


def printed_divergences(gamma: float, rho: float) -> np.ndarray:
    """Equation 6 of the paper to the letter, at orders 2 to 512.

    ε_γ(α) ≤ ln(1 + γ² C(α, 2) min(4 (e^ε(2) − 1), 2 ε(2))) / (α − 1) + Σ_{j=3}^∞ γ^j C(α, j)
    e^{(j−1) ε(j)} · 2.

    The sum ends at α where α is whole, as C(α, j) = 0 beyond; for any other α > 1 it diverges.  It
    is no bound: with γ = 1, where nothing is left out, it gives ln(1 + 2 ε(2)) at α = 2, which is
    less than ε(2) from ε(2) = 1.26 on.
    """
    second = min(4 * math.expm1(min(2 * rho, 700.0)), 4 * rho)
    second_terms = (
        2 * math.log(gamma) + _log_binomial(_ORDERS, np.full_like(_ORDERS, 2)) + math.log(second)
    )
    with np.errstate(over="ignore"):
        return np.logaddexp(0, second_terms) / (_ORDERS - 1) + np.exp(_higher_terms(gamma, rho))


@dataclass(frozen=True)
class TouchMixture:
    """Gaussian mechanisms whose sensitivity depends on chance that B knows: δ(ε) = Σ_k Pr[k]
    δ_k(ε).

    δ_k(ε) = Φ(μ_k/2 − ε/μ_k) − e^ε Φ(−μ_k/2 − ε/μ_k) with μ_k = √s_k/θ (Balle and Wang 2018).

    Attributes:
        squares: squared sensitivity s_k of all releases together, in the units of θ²; shape (K,).
        weights: Pr[k]; shape (K,).
        missing: probability that is left out; counts as certain disclosure, so that there is no ε
            for this δ or a smaller one.
        largest: bound on s where it is left out; only used with ``convex_order``.
        convex_order: whether the law of s is not exact, but larger than the true one in increasing
            convex order: its mean of any increasing convex function is.  Then δ_k is replaced by
            such a function that is nowhere less: as a function of s it is convex up to 2(√(1 + ε²)
            − 1)θ² and concave beyond, where its tangent at that point takes its place.
    """

    squares: np.ndarray
    weights: np.ndarray
    missing: float = 0.0
    largest: float = 0.0
    convex_order: bool = False

    def delta(self, noise: float, epsilon: float) -> float:
        """The least δ that is proven for ε; at most 1."""
        touched = self.squares > 0
        squares, weights = self.squares[touched] / noise**2, self.weights[touched]
        if not self.convex_order:
            return min(float(weights @ gaussian_delta(squares, epsilon)) + self.missing, 1.0)
        values = convex_delta(np.append(squares, max(self.largest / noise**2, 1e-300)), epsilon)
        return min(float(weights @ values[:-1]) + self.missing * max(float(values[-1]), 1.0), 1.0)

    def epsilon(self, noise: float, delta: float) -> float:
        """See :class:`Accountant`."""
        _check(noise, delta)
        if delta <= self.missing:
            return math.inf
        if self.delta(noise, 0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(noise, high) > delta:
            high *= 2
        return float(
            brentq(lambda epsilon: self.delta(noise, epsilon) - delta, 0, high, xtol=1e-12)
        )


def gaussian_delta(squares: np.ndarray, epsilon: float) -> np.ndarray:
    """The least δ for ε of Gaussian mechanisms of squared sensitivity μ² > 0 over noise: Φ(μ/2 −
    ε/μ) − e^ε Φ(−μ/2 − ε/μ).
    """
    mu = np.sqrt(squares)
    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    ratio = np.where(first > -800, second - first, 0.0)
    return np.asarray(-np.exp(first) * np.expm1(np.minimum(ratio, 0)))


def convex_delta(squares: np.ndarray, epsilon: float) -> np.ndarray:
    """The convex function of μ² > 0 in place of :func:`gaussian_delta`: nowhere less, and
    increasing; ∞ for ε = 0.
    """
    turn = 2 * (math.hypot(1, epsilon) - 1)
    if turn == 0:
        return np.full_like(squares, np.inf)
    slope = norm.pdf(math.sqrt(turn) / 2 - epsilon / math.sqrt(turn)) / (2 * math.sqrt(turn))
    return gaussian_delta(np.minimum(squares, turn), epsilon) + slope * np.maximum(
        squares - turn, 0
    )


NO_BOUND = TouchMixture(np.zeros(0), np.zeros(0), 1.0)
"""Promises nothing: ε is ∞ and δ is 1."""


def known_batches(training: VerticalTraining) -> TouchMixture:
    """The published account without amplification, as B knows each batch; all else in it as
    published.

    k ~ Bin(T, γ) of the steps touch the edge; the squared sensitivity is k Σ S_l².
    """
    gamma, squared = _published_terms(training)
    law = binom(training.steps, gamma)
    low, high = (int(end) for end in law.ppf([_TAIL / 2, 1 - _TAIL / 2]))
    touches = np.arange(low, high + 1)
    return TouchMixture(touches * squared, law.pmf(touches), _TAIL)


def certified_guarantee(training: VerticalTraining) -> TouchMixture:
    """The corrected mechanism: degrees bounded once, batches public, weights as
    ``training.correction`` says.

    A row that changes in layer l costs its squared sensitivity whenever a root of the batch reads
    it.  In batches drawn afresh that has the probability γ_l, :func:`touch_probability` of
    :func:`~feddep.privacy.vesper_sensitivity.reading_roots`.  How rows and layers hang together
    depends on the graph; the sum of what they cost is largest in convex order if all rows of a
    layer are read together, and only where those of the layers before are.  DP-SGD's gradient costs
    (2/ratio)² where anything is read.
    """
    correction = training.correction
    if correction.weights == "trained":
        return NO_BOUND
    if training.aggregation in NOISE_LAST:
        return _noise_at_the_end(training)
    squares = np.array(layer_squares(training))
    always = float(squares.sum()) * (correction.evaluations + correction.one_shot)
    if training.aggregation == "gcn":
        always += 2 / correction.degree_ratio**2  # both ends of the edge have a degree less
    if correction.one_shot:
        return _certain(always)
    # The gradient shows the edge whenever anything does.
    squares = np.concatenate([[_gradient(training)], squares])
    roots = [reading_roots(training, layer) for layer in range(training.layers + 1)]
    reach = np.array(
        [1.0, *(touch_probability(training.nodes, each, training.batch) for each in roots), 0.0]
    )
    totals, weights = _compose(
        np.concatenate([[0.0], np.cumsum(squares)]), reach[:-1] - reach[1:], training.steps
    )
    largest = always + training.steps * float(squares.sum())
    return TouchMixture(always + totals, weights, _ROUNDING, largest, convex_order=True)


def _noise_at_the_end(training: VerticalTraining) -> TouchMixture:
    """VFGNN: each row of the last layer that the edge reaches may become another one, at a cost of
    2 if its node is in the batch.

    Rows have norm 1 at most and, after ReLU, no negative entry: ‖a − b‖² = ‖a‖² + ‖b‖² − 2 a·b ≤ 2,
    whatever weights come before.
    """
    correction = training.correction
    reached = changed_outputs(training)
    for_all = correction.evaluations + correction.one_shot
    if reached is None and for_all:
        found = (
            f"{training.aggregation} with bounding {correction.bounding!r} releases all "
            "nodes at once"
        )
        raise PrivacyError(
            f"{found}, and an edge may reach any number of them; bounding must be 'both'"
        )
    always = 2.0 * for_all * (reached or 0)
    if correction.one_shot:
        return _certain(always)
    changed = reading_roots(training, 0)
    counts = np.arange(min(changed, training.batch) + 1)
    law = hypergeom(training.nodes, changed, training.batch).pmf(counts)
    totals, weights = _compose(
        2.0 * counts + _gradient(training) * (counts > 0), law, training.steps
    )
    return TouchMixture(always + totals, weights, _ROUNDING)


def _gradient(training: VerticalTraining) -> float:
    """Squared sensitivity of A's clipped gradient: 2, for norm 1, over the ratio of its noise
    to θ.
    """
    correction = training.correction
    return 4 / correction.gradient_ratio**2 if correction.weights == "dpsgd" else 0.0


def _certain(squared: float) -> TouchMixture:
    return TouchMixture(np.array([squared]), np.ones(1))


def _compose(costs: np.ndarray, law: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The law of the sum of T independent costs, each rounded up to a grid, unless all are
    multiples of a part of the least.

    Args:
        costs: values of at least 0, one of them above it; shape (n,).
        law: their probabilities; shape (n,).
        steps: number of summands T.

    Returns:
        Values and probabilities, but for some of total probability :data:`_TAIL`.
    """
    # For example, costs 0, 2 and 3 of probabilities .5, .3 and .2: all are multiples of 2/2 = 1, so
    # the grid is exact with unit 1, places are 0, 2 and 3, and the law on the grid is (.5, 0, .3,
    # .2).  Convolved with itself it is that of T = 2 steps: 0 has .25, 2 has .3, 3 has .2, …
    least, largest = costs[costs > 0].min(), costs.max()
    # Else the grid would not fit into memory.
    units = [least / part for part in range(1, 9) if largest / least < 10**6]
    fitting = (
        unit
        for unit in units
        if np.abs(np.rint(costs / unit) * unit - costs).max() < 1e-12 * largest
    )
    unit = next(fitting, largest / _CELLS)
    places = np.ceil(costs / unit - 1e-9).astype(np.int64)
    first, weights = common.self_convolve(np.bincount(places, law), steps, _TAIL)
    weights = np.clip(weights, 0, None)
    likely = weights > 1e-22
    return unit * (first + np.flatnonzero(likely)), weights[likely]


ACCOUNTANTS: dict[str, Callable[[VerticalTraining], Accountant]] = {
    "paper": lambda training: RenyiBound(training, printed_divergences),
    "paper_fixed": lambda training: RenyiBound(training, subsampled_divergences),
    "rdp": LibraryBound,
    "no_amplification": known_batches,
    "certified": certified_guarantee,
}
"""The accountants by name."""
