"""The published guarantee of neighbour sampling (FedDEP, Theorem 3.1 and Appendix B).

A mechanism R is (ε, δ)-edge-LDP if Pr[R(γ) ∈ S] ≤ e^ε · Pr[R(γ') ∈ S] + δ for any two neighbour
lists γ, γ' of one node that differ in one neighbour, and any set S of outputs (Definition B.2).
The paper's argument:

1. one sampling of d out of D neighbours (Lemma B.1, by Theorems B.1 and B.2): :func:`one_sampling`;
2. composition of L·N samplings, one a hop and epoch (Lemma B.2, by Theorem B.3): :func:`compose`;
3. amplification by a Bernoulli sampler of rate r (Theorem 3.1, by Theorem B.4): :func:`amplify`.

Two printed formulas disagree with the theorems that they rest on; both interpretations are
computed:

* δ̃ is printed as (1−δ)^LN (1−δ'), in Lemma B.2 and Theorem 3.1; Theorem B.3 gives 1 − (1−δ)^LN
    (1−δ').
* Theorem B.4 is printed with log(1 + p(e^(ε−1))); Theorem 3.1 uses it as log(1 + r(e^ε̃ − 1)),
    which is the theorem.

The exact guarantee, which shows where Lemma B.1 is wrong, is in :mod:`feddep.privacy.profile`; see
docs/results/privacy.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from feddep.utils.errors import FeddepError

LARGEST = 10**6
"""Largest degree, fan-out, number of hops and number of epochs: more than any graph or training of
this benchmark has.
"""


class PrivacyError(FeddepError):
    """There is no guarantee for these parameters, or a parameter is out of range."""


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-edge-LDP.

    Attributes:
        epsilon: ε ≥ 0.
        log_rest: ln(1 − δ), which still tells how far δ is from 1 where δ itself is rounded to 1;
            −∞ for δ = 1.
    """

    epsilon: float
    log_rest: float

    @property
    def delta(self) -> float:
        """δ, in 0 … 1."""
        return 0.0 - math.expm1(self.log_rest)  # not −0 for ln 1

    def format_delta(self) -> str:
        """δ with four significant digits; near 1 as ``1 − 2.5e-18``."""
        if self.log_rest > math.log(1e-4):
            return f"{self.delta:.4g}"
        if math.isinf(self.log_rest):
            return "1"
        exponent = math.floor(self.log_rest / math.log(10))  # 1 − δ itself may underflow
        digits, carry = f"{math.exp(self.log_rest - exponent * math.log(10)):.1e}".split("e")
        return f"1 − {digits}e{exponent + int(carry)}"


@dataclass(frozen=True)
class SamplingParameters:
    """How neighbour lists are sampled.  The defaults are a single sampling.

    Attributes:
        fanout: number of neighbours d drawn at a time.
        layers: number of hops L.
        epochs: number of epochs N of mini-batch training.
        rate: expected value r of the Bernoulli sampler; 1 keeps everything.
        slack: δ' of the composition theorem: how much δ is spent on a smaller ε; 0 spends nothing.

    Raises:
        PrivacyError: if a value is outside its range.
    """

    fanout: int
    layers: int = 1
    epochs: int = 1
    rate: float = 1.0
    slack: float = 0.0

    def __post_init__(self) -> None:
        """Validate the parameters."""
        require_count("fan-out d", self.fanout)
        require_count("number of layers L", self.layers)
        require_count("number of epochs N", self.epochs)
        for name, share in {"rate r": self.rate, "slack δ'": self.slack}.items():
            if not 0 <= share <= 1:  # true for NaN, too
                raise PrivacyError(f"the {name} is {share}; it must be a number from 0 to 1")

    @property
    def samplings(self) -> int:
        """Number of samplings L·N that the theorem composes."""
        return self.layers * self.epochs


def require_count(name: str, value: int, least: int = 1) -> None:
    """Raise :class:`PrivacyError`, naming ``name``, unless ``value`` is from ``least`` to
    :data:`LARGEST`.
    """
    if not least <= value <= LARGEST:
        raise PrivacyError(
            f"the {name} is {value}; it must be a whole number from {least} to {LARGEST}"
        )


def require_delta(delta: float, edges: int | None = None) -> None:
    """Raise :class:`PrivacyError` unless 0 < δ < 1 and, if the number of edges is given, δ <
    1/|E|.
    """
    if not 0 < delta < 1:
        raise PrivacyError(
            f"δ is {delta}; it must lie between 0 and 1, and Gaussian noise has no guarantee "
            "for δ = 0"
        )
    if edges is not None and delta * edges >= 1:
        raise PrivacyError(
            f"δ is {delta:g}; it must be below 1/|E| = {1 / edges:.3g}, as that share of the "
            "edges may be disclosed altogether"
        )


def least_noise(
    epsilon_of: Callable[[float], float], epsilon: float, low: float, high: float, ratio: float
) -> float:
    """The least noise from ``low`` to ``high`` that keeps a budget, by bisection; never too little.

    Args:
        epsilon_of: ε for an amount of noise, with which it falls.
        epsilon: the budget ε.
        low, high: the range of the noise.
        ratio: how many times the least noise the result is, at most; above 1.

    Raises:
        PrivacyError: if the budget is not above 0, the most noise does not keep it, or the least
            does with an ε above 0; names the least or the largest ε there is.
    """
    if not 0 < epsilon < math.inf:
        raise PrivacyError(f"the budget ε is {epsilon}; it must be a finite number above 0")
    if (least := epsilon_of(high)) > epsilon:
        reached = (
            f"the least ε, with noise {high:g}, is {least:.4g}"
            if math.isfinite(least)
            else "there is no finite ε"
        )
        raise PrivacyError(f"no noise keeps ε = {epsilon:g}; {reached}")
    if 0 < (largest := epsilon_of(low)) <= epsilon:
        raise PrivacyError(
            f"ε = {epsilon:g} is kept by any noise from {low:g}, which has ε = {largest:.4g}; "
            "give less, or the noise"
        )
    while high > low * ratio:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon_of(middle) <= epsilon else (middle, high)
    return high


def one_sampling(degree: int, fanout: int) -> Guarantee:
    """One sampling of one neighbour list, as published (Lemma B.1).

    * d < D, without replacement (Theorem B.1): ε = ln((D+1)/(D+1−d)), δ = d/D;
    * d ≥ D, with replacement (Theorem B.2): ε = d · ln((D+1)/D), δ = 1 − ((D−1)/D)^d.

    Neither is monotone in D: at d = 5, D = 6 has a larger ε and δ than D = 5, where the law
    changes.  The lemma is about all graphs of least degree D, and is wrong for some
    (docs/appendix/privacy_proofs.md).

    Args:
        degree: least number of neighbours D.
        fanout: number of neighbours d that are drawn.

    Raises:
        PrivacyError: if ``degree`` is 0: there is nothing to draw, and the theorem has no ε.
    """
    require_count("degree D", degree)
    require_count("fan-out d", fanout)
    if fanout < degree:
        return Guarantee(
            math.log1p(fanout / (degree + 1 - fanout)), -math.log1p(fanout / (degree - fanout))
        )
    rest = fanout * math.log1p(-1 / degree) if degree > 1 else -math.inf
    return Guarantee(fanout * math.log1p(1 / degree), rest)


def composed_epsilon(epsilon: float, times: int, slack: float) -> float:
    """ε̃ of k samplings by basic or by advanced composition, whichever is smaller (Theorem B.3).

    kε, or kε (e^ε − 1)/(e^ε + 1) + εU√(2k) with U = min(√ln(e + ε√k/δ'), √ln(1/δ')); the fraction
    is tanh(ε/2), which does not overflow.
    """
    basic = times * epsilon
    if epsilon == 0 or slack == 0:
        return basic
    factor = min(
        _log_add(1.0, math.log(epsilon) + math.log(times) / 2 - math.log(slack)), -math.log(slack)
    )
    return min(
        basic, basic * math.tanh(epsilon / 2) + epsilon * math.sqrt(factor) * math.sqrt(2 * times)
    )


def compose(each: Guarantee, times: int, slack: float) -> Guarantee:
    """k samplings, as in the cited theorem (Theorem B.3): δ̃ = 1 − (1−δ)^k (1−δ')."""
    log_rest = times * each.log_rest + (math.log1p(-slack) if slack < 1 else -math.inf)
    return Guarantee(composed_epsilon(each.epsilon, times, slack), log_rest)


def compose_as_printed(each: Guarantee, times: int, slack: float) -> Guarantee:
    """k samplings, as Lemma B.2 and Theorem 3.1 print it: δ̃ = (1−δ)^k (1−δ'), the complement of
    what they cite.
    """
    cited = compose(each, times, slack)
    return Guarantee(cited.epsilon, _log_complement(cited.log_rest))


def amplify(guarantee: Guarantee, rate: float) -> Guarantee:
    """Amplification by a Bernoulli sampler (Balle et al. 2020; Theorem 3.1): (ln(1 + r(e^ε − 1)),
    rδ).

    The theorem assumes that the sampler picks the records a mechanism may read.  FedDEP's picks
    generated embeddings, after neighbour lists have been read: the premise is not met.  Where it
    is, (ε, δ) must be that of the shorter lists that the sampler leaves; with that of the whole
    list, as in Theorem 3.1, rδ is too small (docs/appendix/privacy_proofs.md).
    """
    if rate in (0, 1):
        return guarantee if rate else Guarantee(0.0, 0.0)
    if guarantee.epsilon < 700:
        epsilon = math.log1p(rate * math.expm1(guarantee.epsilon))
    else:  # e^ε is too large for a number, and r(e^ε − 1) is r·e^ε to the last digit
        epsilon = _log_add(0.0, guarantee.epsilon + math.log(rate))
    return Guarantee(epsilon, math.log1p(rate * math.expm1(guarantee.log_rest)))


def amplified_epsilon_as_printed(epsilon: float, rate: float) -> float:
    """ε as Theorem B.4 prints it: ln(1 + p(e^(ε−1))); not a guarantee, since for p = 1 it is
    not ε.
    """
    return _log_add(0.0, epsilon - 1 + math.log(rate)) if rate > 0 else 0.0


def _log_add(x: float, y: float) -> float:
    """Ln(e^x + e^y)."""
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


def _log_complement(x: float) -> float:
    """Ln(1 − e^x) for x ≤ 0."""
    if x == 0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -math.log(2) else math.log1p(-math.exp(x))


@dataclass(frozen=True)
class PublishedGuarantee:
    """Theorem 3.1 for lists of at least D neighbours.

    Attributes:
        one: one sampling.
        composed, composed_as_printed: L·N samplings, by the cited theorem and with the printed δ̃.
        final, final_as_printed: behind the Bernoulli sampler: Theorem 3.1 with both misprints
            corrected, and with the printed δ̃.
    """

    one: Guarantee
    composed: Guarantee
    composed_as_printed: Guarantee
    final: Guarantee
    final_as_printed: Guarantee


def published_guarantee(degree: int, parameters: SamplingParameters) -> PublishedGuarantee:
    """Theorem 3.1 for lists of at least ``degree`` neighbours.

    Raises:
        PrivacyError: if ``degree`` is not from 1 to :data:`LARGEST`.
    """
    one = one_sampling(degree, parameters.fanout)
    composed, printed = (
        rule(one, parameters.samplings, parameters.slack) for rule in (compose, compose_as_printed)
    )
    return PublishedGuarantee(
        one,
        composed,
        printed,
        amplify(composed, parameters.rate),
        amplify(printed, parameters.rate),
    )
