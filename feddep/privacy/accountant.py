"""The guarantee that FedDEP states for its neighbour sampling, step by step (FedDEP, Theorem 3.1 and Appendix B).

A mechanism is (ε, δ)-edge-LDP if for any two neighbour lists γ, γ' of one node that differ in one neighbour, and any set S
of outputs, Pr[R(γ) ∈ S] ≤ e^ε · Pr[R(γ') ∈ S] + δ (Definition B.2).  The paper's argument has three steps:

1. one sampling of d out of D neighbours (Lemma B.1, by Theorems B.1 and B.2): :func:`one_sampling`;
2. L·N samplings, one a hop and epoch (Lemma B.2, by Theorem B.3): :func:`compose`;
3. a Bernoulli sampler of rate r (Theorem 3.1, by Theorem B.4): :func:`amplify`.

The paper has two slips.  Where the printed formula and the theorem it rests on disagree, both are here:

* δ̃ is printed as (1−δ)^LN (1−δ'), in Lemma B.2 and Theorem 3.1; Theorem B.3 gives 1 − (1−δ)^LN (1−δ').
* Theorem B.4 is printed with log(1 + p(e^(ε−1))); Theorem 3.1 uses it as log(1 + r(e^ε̃ − 1)), which is the theorem.

What is computed here is what the theorem says.  Whether it holds is another matter: see :mod:`feddep.privacy.profile`.
"""

import math
from dataclasses import dataclass

from feddep.errors import FeddepError

LARGEST = 10**6
"""Largest degree, fan-out, number of hops and number of epochs: more than any graph or training of this benchmark has."""

VACUOUS = 0.99
"""A guarantee with this δ or a larger one is called vacuous: it permits an edge to be known almost always."""


class PrivacyError(FeddepError):
    """A guarantee was asked for where there is none, or with parameters that mean nothing."""


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-edge-LDP.

    Attributes:
        epsilon: ε ≥ 0.
        log_rest: ln(1 − δ), which still tells how far δ is from 1 where δ itself is rounded to 1; −∞ for δ = 1.
    """

    epsilon: float
    log_rest: float

    @property
    def delta(self) -> float:
        """δ, in 0 … 1."""
        return 0.0 - math.expm1(self.log_rest)  # not −0 for ln 1

    def as_dict(self) -> dict[str, float | None]:
        """Ready for JSON, which knows no infinity: ``log_rest`` is null for δ = 1."""
        return {"epsilon": self.epsilon, "delta": self.delta, "log_rest": self.log_rest if math.isfinite(self.log_rest) else None}


@dataclass(frozen=True)
class Terms:
    """How neighbour lists are read.  The defaults are one sampling and nothing else.

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
        """Check the ranges."""
        for name, count in {
            "fan-out d": self.fanout,
            "number of layers L": self.layers,
            "number of epochs N": self.epochs,
        }.items():
            require_count(name, count)
        for name, share in {"rate r": self.rate, "slack δ'": self.slack}.items():
            if not 0 <= share <= 1:  # also where it is not a number
                raise PrivacyError(f"the {name} is {share}; it must be a number from 0 to 1")

    @property
    def samplings(self) -> int:
        """Number of samplings L·N that the theorem composes."""
        return self.layers * self.epochs


def require_count(name: str, value: int) -> None:
    """Refuse what is no count from 1 to :data:`LARGEST`.

    Raises:
        PrivacyError: naming ``name``.
    """
    if not 1 <= value <= LARGEST:
        raise PrivacyError(f"the {name} is {value}; it must be a whole number from 1 to {LARGEST}")


def one_sampling(degree: int, fanout: int) -> Guarantee:
    """One sampling of one neighbour list, as published (Lemma B.1).

    * d < D, without replacement (Theorem B.1): ε = ln((D+1)/(D+1−d)), δ = d/D;
    * d ≥ D, with replacement (Theorem B.2): ε = d · ln((D+1)/D), δ = 1 − ((D−1)/D)^d.

    Neither falls steadily as D grows: at d = 5, D = 6 has a larger ε and δ than D = 5, since the law changes between them.

    Args:
        degree: number of neighbours D.
        fanout: number of neighbours d that are drawn.

    Raises:
        PrivacyError: if ``degree`` is 0: there is nothing to draw, and the theorem has no ε.
    """
    if degree == 0:
        raise PrivacyError("the degree D is 0, an isolated node; the theorem needs at least one neighbour to draw from")
    require_count("degree D", degree)
    require_count("fan-out d", fanout)
    if fanout < degree:
        return Guarantee(math.log1p(fanout / (degree + 1 - fanout)), -math.log1p(fanout / (degree - fanout)))
    rest = fanout * math.log1p(-1 / degree) if degree > 1 else -math.inf
    return Guarantee(fanout * math.log1p(1 / degree), rest)


def spread(epsilon: float, times: int, slack: float) -> tuple[float, float]:
    """The two candidates for U, the smaller of which counts: √ln(e + ε√k/δ') and √ln(1/δ') (Theorem B.3); ∞ for δ' = 0."""
    if slack == 0:
        return math.inf, math.inf
    first = _log_add(1.0, math.log(epsilon) + math.log(times) / 2 - math.log(slack)) if epsilon > 0 else 1.0
    return math.sqrt(first), math.sqrt(-math.log(slack))


def composed_epsilons(epsilon: float, times: int, slack: float) -> tuple[float, float]:
    """ε̃ of k samplings, by basic and by advanced composition, the smaller of which counts (Theorem B.3).

    Returns:
        kε and kε (e^ε − 1)/(e^ε + 1) + εU√(2k); the fraction is tanh(ε/2), which does not overflow.
    """
    if epsilon == 0:
        return 0.0, 0.0  # also where U is infinite
    basic = times * epsilon
    return basic, basic * math.tanh(epsilon / 2) + epsilon * min(spread(epsilon, times, slack)) * math.sqrt(2 * times)


def compose(each: Guarantee, times: int, slack: float) -> Guarantee:
    """k samplings, as the cited theorem has it (Theorem B.3): δ̃ = 1 − (1−δ)^k (1−δ')."""
    return Guarantee(min(composed_epsilons(each.epsilon, times, slack)), _log_never(each, times, slack))


def compose_as_printed(each: Guarantee, times: int, slack: float) -> Guarantee:
    """k samplings, as Lemma B.2 and Theorem 3.1 print it: δ̃ = (1−δ)^k (1−δ'), the complement of what they cite."""
    log_delta = _log_never(each, times, slack)
    return Guarantee(min(composed_epsilons(each.epsilon, times, slack)), _log_complement(log_delta))


def _log_never(each: Guarantee, times: int, slack: float) -> float:
    """Ln((1−δ)^k (1−δ'))."""
    return times * each.log_rest + (math.log1p(-slack) if slack < 1 else -math.inf)


def amplify(guarantee: Guarantee, rate: float) -> Guarantee:
    """Amplification by a Bernoulli sampler (Balle et al. 2020; Theorem 3.1): (ln(1 + r(e^ε − 1)), rδ).

    The theorem is about a sampler that picks the records a mechanism may read.  FedDEP's sampler picks generated
    embeddings, after neighbour lists have been read: the formula is the paper's, its premise is not met.
    """
    if rate in (0, 1):
        return guarantee if rate else Guarantee(0.0, 0.0)
    if guarantee.epsilon < 700:
        epsilon = math.log1p(rate * math.expm1(guarantee.epsilon))
    else:  # e^ε is too large for a number, and r(e^ε − 1) is r·e^ε to the last digit
        epsilon = _log_add(0.0, guarantee.epsilon + math.log(rate))
    return Guarantee(epsilon, math.log1p(rate * math.expm1(guarantee.log_rest)))


def amplified_epsilon_as_printed(epsilon: float, rate: float) -> float:
    """ε as Theorem B.4 prints it: ln(1 + p(e^(ε−1))); not a guarantee, since for p = 1 it is not ε."""
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
class Step:
    """One line of an account: ``symbol`` = ``formula`` = ``value``, and where the formula stands; ``name`` may be empty."""

    name: str
    symbol: str
    value: float
    formula: str
    source: str


@dataclass(frozen=True)
class Account:
    """Theorem 3.1 for lists of at least D neighbours.

    Attributes:
        degree: number of neighbours D.
        terms: how the lists are read.
        one: one sampling.
        composed: L·N samplings, by the cited theorem.
        composed_as_printed: the same with the printed δ̃.
        final: Theorem 3.1 with both slips put right: what follows from the theorems that it cites.
        final_as_printed: Theorem 3.1 with the printed δ̃.
        steps: every quantity on the way, in the paper's order.
    """

    degree: int
    terms: Terms
    one: Guarantee
    composed: Guarantee
    composed_as_printed: Guarantee
    final: Guarantee
    final_as_printed: Guarantee
    steps: tuple[Step, ...]

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON; infinite values (U for δ' = 0) are null."""
        return {
            "degree": self.degree,
            "one": self.one.as_dict(),
            "composed": self.composed.as_dict(),
            "composed_as_printed": self.composed_as_printed.as_dict(),
            "final": self.final.as_dict(),
            "final_as_printed": self.final_as_printed.as_dict(),
            "steps": [{**vars(step), "value": step.value if math.isfinite(step.value) else None} for step in self.steps],
        }


def account(degree: int, terms: Terms) -> Account:
    """Work Theorem 3.1 out for lists of at least ``degree`` neighbours.

    Raises:
        PrivacyError: if ``degree`` is not from 1 to :data:`LARGEST`.
    """
    times, slack, rate = terms.samplings, terms.slack, terms.rate
    one = one_sampling(degree, terms.fanout)
    first, second = spread(one.epsilon, times, slack)
    basic, advanced = composed_epsilons(one.epsilon, times, slack)
    composed, printed = compose(one, times, slack), compose_as_printed(one, times, slack)
    final, final_printed = amplify(composed, rate), amplify(printed, rate)
    without = terms.fanout < degree
    law, cited = ("without replacement", "Theorem B.1") if without else ("with replacement", "Theorem B.2")
    steps = (
        Step(f"one sampling, {law}", "ε", one.epsilon, "ln((D+1)/(D+1−d))" if without else "d ln((D+1)/D)", cited),
        Step("", "δ", one.delta, "d/D" if without else "1 − ((D−1)/D)^d", cited),
        Step("composition", "k", times, "L N", "Lemma B.2"),
        Step("", "U₁", first, "√ln(e + ε√k/δ')", "Theorem B.3"),
        Step("", "U₂", second, "√ln(1/δ')", "Theorem B.3"),
        Step("basic", "ε̃₁", basic, "k ε", "Theorem B.3"),
        Step("advanced", "ε̃₂", advanced, "k ε (e^ε−1)/(e^ε+1) + ε min(U₁, U₂) √(2k)", "Theorem B.3"),
        Step("the smaller", "ε̃", composed.epsilon, "min(ε̃₁, ε̃₂)", "Theorem B.3, Lemma B.2"),
        Step("as cited", "δ̃", composed.delta, "1 − (1−δ)^k (1−δ')", "Theorem B.3"),
        Step("", "ln(1−δ̃)", composed.log_rest, "k ln(1−δ) + ln(1−δ')", "Theorem B.3"),
        Step("as printed", "δ̃", printed.delta, "(1−δ)^k (1−δ')", "Lemma B.2, Theorem 3.1"),
        Step("amplification", "ε", final.epsilon, "ln(1 + r (e^ε̃ − 1))", "Theorem 3.1"),
        Step("as printed", "ε", amplified_epsilon_as_printed(composed.epsilon, rate), "ln(1 + r e^(ε̃−1))", "Theorem B.4"),
        Step("as cited", "δ", final.delta, "r (1 − (1−δ)^k (1−δ'))", "Theorems B.3 and 3.1"),
        Step("as printed", "δ", final_printed.delta, "r (1−δ)^k (1−δ')", "Theorem 3.1"),
    )
    return Account(degree, terms, one, composed, printed, final, final_printed, steps)
