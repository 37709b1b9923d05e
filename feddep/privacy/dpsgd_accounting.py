"""Accounting of DP-SGD: ε for a δ, from the noise multiplier σ, the sampling rate q and the number
of steps T as run.

Each step releases S + N(0, σ²C² I), where S sums, over a Poisson sample of the training nodes at
rate q, gradients of norm at most C (:mod:`feddep.privacy.dpsgd`).  ε by Rényi DP and by the tighter
privacy loss distributions (PLD):

* :func:`example_level`: a training node with its sampled tree is there or not.  That is the
  Poisson-subsampled Gaussian mechanism (Abadi et al., 2016; Mironov et al., 2019).
* :func:`edge_level`: an edge, or a node with its edges, changes the trees, and so replaces the
  gradients, of k training nodes.  A step is dominated by the pair P̂ = Σ_j b_j N(j, σ²), Q̂ = Σ_j
  b_j N(−j, σ²) for C = 1, where b_j is the probability that j of the sampled gradients are
  replaced, or any stochastically larger law: Bin(k, q) (:func:`binomial_changes`), or one from how
  likely an edge changes each tree.  The pair
  composes by Zhu et al. (2022, Theorem 10), on a grid by "connecting the dots" (Doroshenko et al.,
  2022), which can only raise δ.

docs/appendix/privacy_proofs.md has the proofs, and what is not covered.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from scipy.special import log_ndtr, logsumexp
from scipy.stats import binom

from feddep.privacy.accountant import PrivacyError, require_count, require_delta

SIGMAS = (0.1, 1000.0)
"""The least and the largest noise multiplier that a budget's is looked for in."""

RANGE = (1e-3, 1e6)
"""The least and the largest noise multiplier beside 0 whose ε is computed."""

LEAST_RATE = 1e-9
"""The least sampling rate beside 0 whose ε is computed on the example level."""

LEAST_PLD_DELTA = 1e-10
"""PLDs are composed by Fourier transforms in double precision; for a smaller δ their ε is not to be
relied on and is ∞ here.
"""

_ORDERS = [
    *(1 + np.geomspace(0.02, 0.8, 10)),
    *np.arange(2, 12, 0.5),
    *range(12, 33, 2),
    40,
    48,
    64,
    96,
    128,
    256,
    512,
    1024,
]

_CELLS = 10_000
"""Number of grid cells on either side of zero for one step's privacy loss."""

_MOST_AT_A_TIME = 4_000_000
"""Most numbers in memory at a time, some 100 MB."""

# dp-accounting warns of each order that it leaves out; the others still count.
logging.getLogger("absl").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Epsilons:
    """ε by two accountants, each an upper bound; ∞ where there is no guarantee.

    Attributes:
        rdp: by Rényi DP.
        pld: by privacy loss distributions.
    """

    rdp: float
    pld: float

    @property
    def least(self) -> float:
        """The smaller one, as both hold."""
        return min(self.rdp, self.pld)


NOTHING_SPENT = Epsilons(0.0, 0.0)
NO_GUARANTEE = Epsilons(math.inf, math.inf)


def example_level(sigma: float, rate: float, steps: int, delta: float) -> Epsilons:
    """ε of T steps on the example level.

    Args:
        sigma: noise multiplier σ; without noise, 0, ε is ∞.
        rate: probability q that a node is in a batch.
        steps: number of steps T.
        delta: δ.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    _check_rate(rate)
    _check(sigma, steps, delta)
    if 0 < rate < LEAST_RATE:
        raise PrivacyError(
            f"the sampling rate q is {rate}; it must be 0 or a number from {LEAST_RATE:g} to 1"
        )
    if rate == 0 or steps == 0:
        return NOTHING_SPENT
    if sigma == 0:
        return NO_GUARANTEE
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), int(steps))
    rdp = _bound(lambda: RdpAccountant(_ORDERS).compose(event).get_epsilon(delta))
    if delta < LEAST_PLD_DELTA:
        return Epsilons(rdp, math.inf)
    # Fine enough for what steps add up to, and the coarser the larger ε.
    interval = max(1e-5 * rdp, min(1e-3, 1e-2 / math.sqrt(steps)) / max(sigma, 1.0))
    return Epsilons(
        rdp,
        _bound(
            lambda: (
                PLDAccountant(value_discretization_interval=interval)
                .compose(event)
                .get_epsilon(delta)
            )
        ),
    )


def _bound(epsilon: Callable[[], float]) -> float:
    """ε; or ∞, which is a bound, too, where noise or rate are too small or large for a grid of
    doubles.
    """
    try:
        found = float(epsilon())
    except (ArithmeticError, IndexError, MemoryError, ValueError):
        return math.inf
    return math.inf if math.isnan(found) else max(found, 0.0)


def binomial_changes(roots: int, rate: float) -> np.ndarray:
    """The law of the simple bound, Bin(k, q): each of k training nodes is changed whenever it is
    sampled.

    Args:
        roots: number k of training nodes whose trees may depend on the edge; 0 hides it altogether.
        rate: probability q that a training node is in a batch.

    Returns:
        float64, shape (k + 1,).

    Raises:
        PrivacyError: if a value is outside its range.
    """
    _check_rate(rate)
    require_count("number of roots k", roots, least=0)
    return binom.pmf(np.arange(roots + 1), roots, rate)


def edge_level(sigma: float, changes: np.ndarray, steps: int, delta: float) -> Epsilons:
    """ε of T steps, in each of which a random number of examples is replaced.

    Args:
        sigma: noise multiplier σ; without noise, 0, ε is ∞.
        changes: probability b_j that j = 0 … k examples are replaced in a step, or a stochastically
            larger law; shape (k + 1,). Such as that of :func:`binomial_changes`.
        steps: number of steps T.
        delta: δ.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    _check(sigma, steps, delta)
    ever = steps * float(changes[1:].sum())
    if ever == 0:
        return NOTHING_SPENT
    if sigma == 0:
        return NO_GUARANTEE
    if ever <= delta:  # δ covers that anything is ever replaced
        return NOTHING_SPENT
    tail = min(1e-4 * delta / steps, 1e-12)
    step = _DominatingPair(sigma, changes, tail).on_grid()
    rest = delta - steps * step.infinite  # of δ, less the chance that some step's loss is infinite
    divergences = [steps * step.divergence(order) for order in _ORDERS]
    rdp = compute_epsilon(_ORDERS, divergences, rest)[0] if rest > 0 else math.inf
    if delta < LEAST_PLD_DELTA:
        return Epsilons(float(rdp), math.inf)
    return Epsilons(
        float(rdp),
        _bound(lambda: step.distribution().self_compose(int(steps)).get_epsilon_for_delta(delta)),
    )


def most_roots(degree: int, hops: int) -> int:
    """The most roots whose trees may depend on one edge, in any graph of no larger degree D: 2 Σ_{l
    < L} (D − 1)^l.

    Each end has at most D − 1 neighbours besides the other end, each of those D − 1 further ones,
    and so on.
    """
    require_count("degree D", degree)
    require_count("number of hops L", hops)
    return 2 * sum((degree - 1) ** hop for hop in range(hops))


def most_roots_of_node(degree: int, hops: int, replaced: bool = False) -> int:
    """The same for a node, which is read up to L hops away: 1 + Σ_{1 ≤ l ≤ L} D (D − 1)^(l−1), or 1
    + 2 Σ if it is replaced.

    Of a node that is replaced by one with other neighbours, those near either count.
    """
    return 1 + (1 + replaced) * degree * most_roots(degree, hops) // 2


def poisson_sampling(nodes: int, batch_size: int, epochs: int) -> tuple[float, int]:
    """How :class:`feddep.privacy.dpsgd.PrivateLearner` draws batches: rate q = B/n, at most 1, and
    T of ⌈n/B⌉ steps an epoch.

    Args:
        nodes: number of training nodes n; without any, nothing is sampled.
        batch_size: expected number of nodes in a batch, B.
        epochs: number of epochs in all rounds together.

    Raises:
        PrivacyError: if a count is out of range.
    """
    require_count("number of training nodes n", nodes, least=0)
    require_count("batch size B", batch_size)
    require_count("number of epochs", epochs)
    return min(batch_size, nodes) / max(nodes, 1), epochs * -(-nodes // batch_size)


def one_and_all_steps(
    sigma: float, rate: float, steps: int, delta: float, changes: np.ndarray | None = None
) -> tuple[Epsilons, Epsilons]:
    """ε of one step of DP-SGD and of all; see :func:`of_steps`."""
    of_one, of_all = (
        of_steps(sigma, rate, count, delta, changes) for count in (min(1, steps), steps)
    )
    return of_one, of_all


def of_steps(
    sigma: float, rate: float, steps: int, delta: float, changes: np.ndarray | None = None
) -> Epsilons:
    """ε of T steps of DP-SGD on the example level, or on that of an edge or node with that law of
    changed trees.
    """
    if changes is None:
        return example_level(sigma, rate, steps, delta)
    return edge_level(sigma, changes, steps, delta)


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise PrivacyError(f"the sampling rate q is {rate}; it must be a number from 0 to 1")


def _check(sigma: float, steps: int, delta: float) -> None:
    least, most = RANGE
    if sigma != 0 and not least <= sigma <= most:
        raise PrivacyError(
            f"the noise multiplier σ is {sigma}; it must be 0 or a number from {least:g} to "
            f"{most:g}"
        )
    require_count("number of steps T", steps, least=0)
    require_delta(delta)


@dataclass(frozen=True)
class _LossDistribution:
    """A discrete privacy loss distribution.

    Attributes:
        interval: gap of the grid.
        least: the least loss, in gaps.
        masses: probability of each loss from ``least`` upwards.
        infinite: probability of an infinite loss.
    """

    interval: float
    least: int
    masses: np.ndarray
    infinite: float

    @classmethod
    def from_profile(cls, interval: float, deltas: np.ndarray) -> "_LossDistribution":
        """The pair that has ``deltas`` at the losses −n … n gaps, and chords between them as
        functions of e^ε.

        Negative masses from rounding are set to 0, which can only raise δ.
        """
        ratio, drops = math.exp(-interval), -np.diff(deltas)
        inner = (drops[:-1] - ratio * drops[1:]) / (1 - ratio)
        first = 1 - deltas[0] - ratio * drops[0] / (1 - ratio)
        masses = np.concatenate([[first], inner, [drops[-1] / (1 - ratio)]]).clip(min=0)
        # Composition would overflow; counts as infinite.
        negligible = np.where(masses < 1e-30, masses, 0)
        return cls(
            interval, -(len(deltas) // 2), masses - negligible, float(deltas[-1] + negligible.sum())
        )

    def divergence(self, order: float) -> float:
        """Rényi divergence of the finite losses, at least 0."""
        losses = (self.least + np.arange(len(self.masses))) * self.interval
        return max(float(logsumexp((order - 1) * losses, b=self.masses)) / (order - 1), 0.0)

    def distribution(self) -> PrivacyLossDistribution:
        """As dp-accounting has it; the pair is symmetric."""
        masses = dict(enumerate(self.masses.tolist(), start=self.least))
        return PrivacyLossDistribution.create_from_rounded_probability(
            masses, self.infinite, self.interval
        )


class _DominatingPair:
    """The pair P̂, Q̂ of one step, scaled to σ = 1."""

    def __init__(self, sigma: float, changes: np.ndarray, tail: float) -> None:
        likely = changes > 1e-3 * tail / len(changes)
        self._means = np.flatnonzero(likely) / sigma
        self._shares = changes[likely]
        self._unlikely = float(changes[~likely].sum())  # counts as an infinite loss
        self._tail = tail

    def _in_parts(self, law: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        """Apply ``law`` to arrays of the same length in parts, as each entry takes a row as long as
        the mixture.
        """
        parts = -(-len(arrays[0]) * len(self._means) // _MOST_AT_A_TIME)
        return np.concatenate(
            [
                law(*each)
                for each in zip(*(np.array_split(array, parts) for array in arrays), strict=True)
            ]
        )

    def loss(self, points: np.ndarray) -> np.ndarray:
        """The privacy loss ln P̂/Q̂, an increasing and odd function."""
        return self._in_parts(self._loss, points)

    def _loss(self, points: np.ndarray) -> np.ndarray:
        common = -(self._means**2) / 2
        cross = np.multiply.outer(points, self._means)
        return logsumexp(common + cross, axis=1, b=self._shares) - logsumexp(
            common - cross, axis=1, b=self._shares
        )

    def delta(self, points: np.ndarray, losses: np.ndarray) -> np.ndarray:
        """P̂(S) − e^ε Q̂(S) for S = {z > t}, for points t and their losses ε."""
        return self._in_parts(self._delta, points, losses)

    def _delta(self, points: np.ndarray, losses: np.ndarray) -> np.ndarray:
        first = logsumexp(
            log_ndtr(np.subtract.outer(self._means, points)), axis=0, b=self._shares[:, None]
        )
        second = logsumexp(
            log_ndtr(-np.add.outer(self._means, points)), axis=0, b=self._shares[:, None]
        )
        return self._unlikely - np.exp(first) * np.expm1(np.minimum(losses + second - first, 0))

    def on_grid(self) -> _LossDistribution:
        """The distribution of the loss, on a grid that ends where δ is no more than the tail."""
        end = 1.0
        while self.delta(np.array([end]), self.loss(np.array([end])))[0] > self._tail:
            end *= 1.2
        points = np.linspace(0, end, _CELLS + 1)
        losses = self.loss(points)
        interval = losses[-1] / _CELLS
        epsilons = interval * np.arange(_CELLS + 1)
        # δ is stationary in t: the error of the interpolation enters only squared.
        deltas = self.delta(np.interp(epsilons, losses, points), epsilons)
        # H(P‖Q) for −ε, from H(Q‖P) for ε, which is the same.
        below = 1 - np.exp(-epsilons[:0:-1]) * (1 - deltas[:0:-1])
        return _LossDistribution.from_profile(interval, np.concatenate([below, deltas]))
