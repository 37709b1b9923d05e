"""What DP-SGD guarantees: ε for a δ, from the noise multiplier σ, the sampling rate q and the number of steps T as run.

Each step gives out S + N(0, σ²C² I), where S sums, over a Poisson sample of the training nodes at rate q, gradients of norm at
most C (:mod:`feddep.privacy.dpsgd`); C = 1 in what follows.  Everything later, the average on the server included, is computed
from that.  Two notions of what is hidden, each by Rényi DP and by privacy loss distributions (PLD), which are tighter:

**Example level** (:func:`example_level`), the usual one of DP-SGD: a training node with its sampled tree is a record that is
there or is not.  S changes by at most 1 if it is sampled: the Poisson-subsampled Gaussian mechanism (Abadi et al., 2016; Mironov
et al., 2019).  q and T, which follow from the number of training nodes, count as known.  What is hidden is the node as a root, so
its label and the draws of its own tree: its features and edges are in the trees of other roots.  (FedDEP names σ beside the ε of
its own mechanism in Sections 4.1 and 4.5, but not how the one follows from the other.)

**Edge level** (:func:`edge_level`, :func:`changed_level`): two graphs that differ in one edge {u, v}.  The trees of a root differ
in law only if the list of u or of v is read, which are read for the nodes up to L − 1 hops from a root.  Before a path meets u or
v it is the same in both graphs, so these are in both the k roots within L − 1 hops of u or v (:func:`roots_of_edges`;
:func:`most_roots` for all graphs up to a degree).  The fan-out d is not in k: with any d such a root may draw the edge.  The
largest k of a graph's edges is read off that graph, and bounds what each of them shows.  Two nodes without an edge may be near
more roots than any two with one: a promise for all graphs takes a bound on degrees.  (Node-level bounds with sampled
neighbourhoods count in the same way: Daigavane et al., 2021, whose batches of fixed size make the number of those sampled
hypergeometric; Sajadmanesh et al., 2023, bound degrees in advance.)

Of these k, Poisson sampling takes a set J, |J| ~ Bin(k, q), in both graphs alike; all other roots have the same law in both.
Condition on the other roots' part of the sum, and measure from there.  The output is a mixture P = Σ_i p_i N(x_i, σ² I) in one
graph and Q = Σ_i p_i N(y_i, σ² I) in the other; i runs over J and the trees in both, and ‖x_i‖, ‖y_i‖ ≤ r_i = |J|.  The laws

    P̂ = Σ_j b_j N(j, σ²),    Q̂ = Σ_j b_j N(−j, σ²),    b_j = Pr[Bin(k, q) = j]

have at least their divergence H_a(P‖Q) = ∫ max(0, P − aQ), for every a > 0, and are P and Q themselves if the edge turns all
gradients round.  *Proof.*  P̂/Q̂ increases, so that H_a(P̂‖Q̂) = P̂(S) − aQ̂(S) with S = {z > t} for the t at which P̂ = aQ̂.  Let φ be
the density of N(0, σ²), m_i = p_i φ(t − r_i) and n_i = a p_i φ(t + r_i), which have the same sum, and w_ij any coupling of m and
n.  With u_ij = w_ij / φ(t − r_i) and v_ij = w_ij / φ(t + r_j), P − aQ is the sum of all u_ij N(x_i) − v_ij N(y_j).  The integral
of the positive part of each of these is largest where x_i and y_j are r_i + r_j apart, since Gaussians grow less alike with
distance: as far apart as N(r_i) and N(−r_j), and for those it is the integral over S, because both terms are equal at t.  So
the positive part of the whole sum integrates to no more than Σ_ij u_ij N(r_i)(S) − v_ij N(−r_j)(S) = P̂(S) − aQ̂(S).  ∎

As it dominates a step whatever came before, its T-fold product dominates the training (Zhu et al., 2022, Theorem 10).  It is
put on a grid by "connecting the dots" (Doroshenko et al., 2022), which can only raise δ; PLD and Rényi DP come from that grid.
For k = 1 it is the pair that dp-accounting has for the replacement of a record.  Without this, plain group privacy would
multiply ε by 2k, and δ by about e^(2kε).  (Mixtures for groups that are added or removed: Ganesh, 2024; couplings of the parts of
mixtures: Schuchardt et al., 2024.)

A stochastically larger law b of |J| has the larger ε: draw it together with |J|, never smaller, for r_i; the proof asks for
nothing but ‖x_i‖, ‖y_i‖ ≤ r_i.  It may be *any* law, which gives two bounds:

* The *simple bound* (:func:`edge_level`) takes Bin(k, q) as above.  It counts each of the k roots as changed whenever it is
  sampled, though its tree may miss the edge, and needs no graph but k.  It is attained where no tree can: two nodes without other
  neighbours.  On real graphs it is loose.
* The *bound by trees* (:func:`changed_level`).  Draw the trees of root r in both graphs such that they differ with a probability
  ρ_r as small as one can, and condition on the roots that are sampled with equal trees as well.  Each other one is sampled, with
  unequal trees, with probability q_r = qρ_r / (1 − q + qρ_r) ≤ q, independently; these are now J.  Counting the former in J, too,
  only makes it larger: b is the law of a sum of k Bernoulli variables of rates q_r.  It is smaller by far where lists are long or
  u is seldom drawn.  :mod:`feddep.privacy.changed_trees` has the ρ_r, and one law for all edges of a graph.

All this is about training the classifier from given inputs: mended embeddings are computed without noise, from edges and by
models that learned from labels; and what a client reports beside its weights (losses, correct answers) is not covered by either
notion.
"""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from scipy.special import log_ndtr, logsumexp
from scipy.stats import binom

from feddep.graph import Graph
from feddep.privacy.accountant import LARGEST, PrivacyError, require_count

SIGMAS = (0.1, 1000.0)
"""The least and the largest noise multiplier that :func:`noise_for` considers."""

LEAST_PLD_DELTA = 1e-10
"""PLDs are composed by Fourier transforms in double precision; for a smaller δ their ε is not to be relied on and is ∞ here."""

_ORDERS = [*(1 + np.geomspace(0.02, 0.8, 10)), *np.arange(2, 12, 0.5), *range(12, 33, 2), 40, 48, 64, 96, 128, 256, 512, 1024]

_CELLS = 10_000
"""Number of grid cells on either side of zero for one step's privacy loss."""

_MOST_AT_A_TIME = 4_000_000
"""Most numbers that are worked on at a time, some 100 MB."""


@dataclass(frozen=True)
class Epsilons:
    """ε by two accountings, each an upper bound; ∞ where there is no guarantee.

    Attributes:
        rdp: by Rényi DP.
        pld: by privacy loss distributions.
    """

    rdp: float
    pld: float

    @property
    def least(self) -> float:
        """The smaller one: as both hold, so does it."""
        return min(self.rdp, self.pld)

    def as_dict(self) -> dict[str, float | None]:
        """Ready for JSON, which knows no infinity: null."""
        return {name: value if math.isfinite(value) else None for name, value in vars(self).items()}


NOTHING_SPENT = Epsilons(0.0, 0.0)
NO_GUARANTEE = Epsilons(math.inf, math.inf)


def example_level(sigma: float, rate: float, steps: int, delta: float) -> Epsilons:
    """ε of T steps for one training node with its tree.

    Args:
        sigma: noise multiplier σ; without noise, 0, ε is ∞.
        rate: probability q that a node is in a batch.
        steps: number of steps T.
        delta: δ.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    _check(sigma, rate, steps, delta)
    if rate == 0 or steps == 0:
        return NOTHING_SPENT
    if sigma == 0:
        return NO_GUARANTEE
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), int(steps))
    with _quietly():
        rdp = float(RdpAccountant(_ORDERS).compose(event).get_epsilon(delta))
    if delta < LEAST_PLD_DELTA:
        return Epsilons(rdp, math.inf)
    # Fine enough for what steps add up to, and the coarser the larger ε.
    interval = max(1e-5 * rdp, min(1e-3, 1e-2 / math.sqrt(steps)) / max(sigma, 1.0))
    pld = PLDAccountant(value_discretization_interval=interval).compose(event).get_epsilon(delta)
    return Epsilons(rdp, float(pld))


def edge_level(sigma: float, rate: float, steps: int, delta: float, roots: int) -> Epsilons:
    """ε of T steps for one edge, by the simple bound: each of ``roots`` training nodes is changed whenever it is sampled.

    Args:
        sigma: noise multiplier σ; without noise, 0, ε is ∞.
        rate: probability q that a training node is in a batch.
        steps: number of steps T.
        delta: δ.
        roots: number k of training nodes whose trees may depend on the edge; 0 hides it altogether.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    _check(sigma, rate, steps, delta)
    if roots != 0:
        require_count("number of roots k", roots)
    return changed_level(sigma, binom.pmf(np.arange(roots + 1), roots, rate), steps, delta)


def changed_level(sigma: float, shares: np.ndarray, steps: int, delta: float) -> Epsilons:
    """ε of T steps, in each of which a random number of examples is replaced.

    Args:
        sigma: noise multiplier σ; without noise, 0, ε is ∞.
        shares: probability b_j that j = 0 … k examples are replaced in a step, or a stochastically larger law; shape (k + 1,).
            For edges by :func:`feddep.privacy.changed_trees.most_changed`.
        steps: number of steps T.
        delta: δ.

    Raises:
        PrivacyError: if a value is outside its range.
    """
    _check(sigma, 1.0, steps, delta)
    ever = steps * float(shares[1:].sum())
    if ever == 0:
        return NOTHING_SPENT
    if sigma == 0:
        return NO_GUARANTEE
    if ever <= delta:  # ε = 0: δ covers that anything is ever replaced
        return NOTHING_SPENT
    tail = min(1e-4 * delta / steps, 1e-12)
    step = _Replaced(sigma, shares, tail).on_grid()
    rest = delta - steps * step.infinite  # of δ, less the chance that some step's loss is infinite
    divergences = [steps * step.divergence(order) for order in _ORDERS]
    rdp = compute_epsilon(_ORDERS, divergences, rest)[0] if rest > 0 else math.inf
    pld = math.inf if delta < LEAST_PLD_DELTA else step.distribution().self_compose(int(steps)).get_epsilon_for_delta(delta)
    return Epsilons(float(rdp), float(pld))


def noise_for(epsilon: float, spent: Callable[[float], Epsilons], purpose: str) -> float:
    """A noise multiplier that keeps ε in a budget, at most a thousandth larger than the least one.

    Args:
        epsilon: the budget ε.
        spent: what a noise multiplier σ costs, which falls with σ.
        purpose: ends the sentence "a budget of ε = 1 cannot be kept …".

    Returns:
        σ, in the range of :data:`SIGMAS`.

    Raises:
        PrivacyError: if a value is outside its range, or no σ in that range is large enough; names the least ε that one keeps.
    """
    if not 0 < epsilon < math.inf:
        raise PrivacyError(f"the budget ε is {epsilon}; it must be a finite number above 0")
    high, most = SIGMAS
    low = high
    while (least := spent(high).least) > epsilon:  # ε is slow to compute for much noise, and a budget seldom needs it
        if high == most:
            raise PrivacyError(
                f"a budget of ε = {epsilon:g} cannot be kept {purpose}; "
                f"the least that can, with the largest σ considered, {high:g}, is ε = {_rounded_up(least)}"
            )
        low, high = high, min(16 * high, most)
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle).least <= epsilon else (middle, high)
    return high


def _rounded_up(value: float) -> str:
    """Three significant digits, never less than ``value``."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit) * unit:.6g}"


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep dp-accounting from warning that it leaves out an order whose series does not converge: the others still count."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _check(sigma: float, rate: float, steps: int, delta: float) -> None:
    if not 0 <= sigma < math.inf:
        raise PrivacyError(f"the noise multiplier σ is {sigma}; it must be a finite number of at least 0")
    if not 0 <= rate <= 1:
        raise PrivacyError(f"the sampling rate q is {rate}; it must be a number from 0 to 1")
    if not (0 <= steps <= LARGEST and steps == int(steps)):
        raise PrivacyError(f"the number of steps T is {steps}; it must be a whole number from 0 to {LARGEST}")
    if not 0 < delta < 1:
        raise PrivacyError(f"δ is {delta}; it must lie between 0 and 1, and Gaussian noise has no guarantee for δ = 0")


@dataclass(frozen=True)
class _Losses:
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
    def from_profile(cls, interval: float, deltas: np.ndarray) -> "_Losses":
        """The pair of laws that has ``deltas`` at the losses −n … n gaps, and chords between them as functions of e^ε.

        Where rounding asks for a negative mass, there is none: this can only raise δ.
        """
        ratio, drops = math.exp(-interval), -np.diff(deltas)
        inner = (drops[:-1] - ratio * drops[1:]) / (1 - ratio)
        first = 1 - deltas[0] - ratio * drops[0] / (1 - ratio)
        masses = np.concatenate([[first], inner, [drops[-1] / (1 - ratio)]]).clip(min=0)
        negligible = np.where(masses < 1e-30, masses, 0)  # so small that composition would overflow; counts as infinite
        return cls(interval, -(len(deltas) // 2), masses - negligible, float(deltas[-1] + negligible.sum()))

    def divergence(self, order: float) -> float:
        """Rényi divergence of the finite losses, at least 0."""
        losses = (self.least + np.arange(len(self.masses))) * self.interval
        return max(float(logsumexp((order - 1) * losses, b=self.masses)) / (order - 1), 0.0)

    def distribution(self) -> PrivacyLossDistribution:
        """The same for dp-accounting; the pair is symmetric."""
        masses = dict(enumerate(self.masses.tolist(), start=self.least))
        return PrivacyLossDistribution.create_from_rounded_probability(masses, self.infinite, self.interval)


class _Replaced:
    """One step in which j examples are replaced with probability b_j: the pair P̂, Q̂ of the module's docstring, for σ = 1."""

    def __init__(self, sigma: float, shares: np.ndarray, tail: float) -> None:
        likely = shares > 1e-3 * tail / len(shares)
        self._means = np.flatnonzero(likely) / sigma
        self._shares = shares[likely]
        self._unlikely = float(shares[~likely].sum())  # counts as known for certain
        self._tail = tail

    def _in_parts(self, law: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        """What ``law`` makes of arrays of the same length, a part at a time: each entry takes a row as long as the mixture."""
        parts = -(-len(arrays[0]) * len(self._means) // _MOST_AT_A_TIME)
        return np.concatenate([law(*each) for each in zip(*(np.array_split(array, parts) for array in arrays), strict=True)])

    def loss(self, points: np.ndarray) -> np.ndarray:
        """The privacy loss ln P̂/Q̂, which increases; it is odd."""
        return self._in_parts(self._loss, points)

    def _loss(self, points: np.ndarray) -> np.ndarray:
        common = -(self._means**2) / 2
        cross = np.multiply.outer(points, self._means)
        return logsumexp(common + cross, axis=1, b=self._shares) - logsumexp(common - cross, axis=1, b=self._shares)

    def delta(self, points: np.ndarray, losses: np.ndarray) -> np.ndarray:
        """P̂(S) − e^ε Q̂(S) for the points t from which S begins, and their losses ε."""
        return self._in_parts(self._delta, points, losses)

    def _delta(self, points: np.ndarray, losses: np.ndarray) -> np.ndarray:
        first = logsumexp(log_ndtr(np.subtract.outer(self._means, points)), axis=0, b=self._shares[:, None])
        second = logsumexp(log_ndtr(-np.add.outer(self._means, points)), axis=0, b=self._shares[:, None])
        return self._unlikely - np.exp(first) * np.expm1(np.minimum(losses + second - first, 0))

    def on_grid(self) -> _Losses:
        """The distribution of the loss, on a grid that ends where δ is no more than the tail."""
        end = 1.0
        while self.delta(np.array([end]), self.loss(np.array([end])))[0] > self._tail:
            end *= 1.2
        points = np.linspace(0, end, _CELLS + 1)
        losses = self.loss(points)
        interval = losses[-1] / _CELLS
        epsilons = interval * np.arange(_CELLS + 1)
        # δ is stationary in t: what the interpolation is off by counts only squared.
        deltas = self.delta(np.interp(epsilons, losses, points), epsilons)
        below = 1 - np.exp(-epsilons[:0:-1]) * (1 - deltas[:0:-1])  # H(P‖Q) for −ε, from H(Q‖P) for ε, which is the same
        return _Losses.from_profile(interval, np.concatenate([below, deltas]))


def roots_of_edges(graph: Graph, roots: np.ndarray, hops: int) -> np.ndarray:
    """For each edge, the number k of roots whose trees depend on it: those within L − 1 hops of either end.

    Args:
        graph: the graph.
        roots: the nodes whose trees are sampled, each once.
        hops: number of hops L of the trees.

    Returns:
        int64, shape (|E|,), in the order of :meth:`feddep.graph.Graph.edges`.
    """
    require_count("number of hops L", hops)
    n = graph.num_nodes
    closed = graph.adjacency + sp.eye_array(n, dtype=np.float32, format="csr")
    near = sp.eye_array(n, dtype=np.float32, format="csr")
    for _ in range(hops - 1):
        near = near @ closed
        near.data[:] = 1
    reached = sp.csr_array(near)[:, roots]  # who reads whose list
    ends = graph.edges()
    counts = np.asarray(reached.sum(axis=1)).ravel()
    both = np.asarray(reached[ends[:, 0]].multiply(reached[ends[:, 1]]).sum(axis=1)).ravel()
    return (counts[ends].sum(axis=1) - both).astype(np.int64)


def most_roots(degree: int, hops: int) -> int:
    """The most roots whose trees may depend on one edge, in any graph of no larger degree D: 2 Σ_{l < L} (D − 1)^l.

    Each end has at most D − 1 neighbours besides the other end, each of those D − 1 further ones, and so on.
    """
    require_count("degree D", degree)
    require_count("number of hops L", hops)
    return 2 * sum((degree - 1) ** hop for hop in range(hops))
