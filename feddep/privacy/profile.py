"""The exact guarantee of neighbour sampling, to hold against the published one.

Whoever sees which neighbours were drawn sees a sample of one of two laws, P for a list of n + 1 neighbours and Q for the
same list without one of them.  The least δ for a given ε is the hockey-stick divergence, Σ_o max(0, P(o) − e^ε Q(o)), or
the same with P and Q exchanged, whichever is larger (Balle, Barthe and Gaboardi 2020, "Privacy profiles and amplification
by subsampling").  :func:`sequences` and :func:`multisets` enumerate the laws of :func:`feddep.sampling.sample_neighbours`
in exact fractions, and :func:`divergence` compares them.

Removing a neighbour u makes every output that contains u impossible, so that δ is at least the probability that u is
drawn, and no ε makes up for it.  The enumeration shows more: the least δ is the total variation distance, *for every*
ε ≥ 0.  The privacy profile is flat; :func:`exact_delta` has its closed form.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from feddep.privacy.accountant import Guarantee, PrivacyError, require_count
from feddep.sampling import NOBODY

Outcome = tuple[int, ...]
Law = Mapping[Outcome, Fraction]

MOST_OUTCOMES = 200_000
"""Longer laws are not enumerated; it takes seconds."""


def sequences(neighbours: Sequence[int], fanout: int) -> Law:
    """The law of the neighbours drawn from a list, in the order in which the sampler gives them.

    With replacement that is the order of drawing, without it is ascending.

    Args:
        neighbours: the list, in ascending order; it may be empty.
        fanout: number of neighbours d that are drawn.

    Raises:
        PrivacyError: if there are more than :data:`MOST_OUTCOMES` outcomes, or ``fanout`` is below 1.
    """
    require_count("fan-out d", fanout)
    degree = len(neighbours)
    if degree == 0:
        return {(NOBODY,) * fanout: Fraction(1)}
    if (math.comb(degree, fanout) if degree > fanout else degree**fanout) > MOST_OUTCOMES:
        raise PrivacyError(
            f"drawing {fanout} of {degree} neighbours has more than {MOST_OUTCOMES} outcomes; only short lists are enumerated"
        )
    if degree <= fanout:
        return dict.fromkeys(itertools.product(neighbours, repeat=fanout), Fraction(1, degree**fanout))
    return dict.fromkeys(itertools.combinations(neighbours, fanout), Fraction(1, math.comb(degree, fanout)))


def multisets(neighbours: Sequence[int], fanout: int) -> Law:
    """The law of the neighbours drawn from a list, whatever their order: all that a mean of them depends on.

    Arguments and errors as for :func:`sequences`.
    """
    law: defaultdict[Outcome, Fraction] = defaultdict(Fraction)
    for drawn, share in sequences(neighbours, fanout).items():
        law[tuple(sorted(drawn))] += share
    return law


def repeated(law: Law, times: int) -> Law:
    """The law of ``times`` independent outcomes, one after the other."""
    return {
        tuple(itertools.chain.from_iterable(outcomes)): math.prod((law[outcome] for outcome in outcomes), start=Fraction(1))
        for outcomes in itertools.product(law, repeat=times)
    }


def divergence(p: Law, q: Law, factor: Fraction) -> Fraction:
    """Hockey-stick divergence Σ_o max(0, p(o) − factor · q(o)): the least δ with P ≤ e^ε Q + δ, for factor = e^ε."""
    return sum((max(share - factor * q.get(outcome, Fraction(0)), Fraction(0)) for outcome, share in p.items()), Fraction(0))


def enumerated_delta(p: Law, q: Law, factor: Fraction) -> Fraction:
    """The least δ for ε = ln ``factor``, whichever of the two laws is the true one."""
    return max(divergence(p, q, factor), divergence(q, p, factor))


def exact(degree: int, fanout: int, times: int = 1, ordered: bool = False) -> Guarantee:
    """The exact guarantee for a list of n neighbours and the same list with one more, which is sampled ``times`` times.

    The outputs that both lists can give have, each time, under the list that gives them less often, the probability

    * n = 0: nothing; an empty list gives :data:`~feddep.sampling.NOBODY`, a list of one gives this one;
    * 0 < n < d, both with replacement: (n/(n+1))^d, that the additional neighbour is not drawn;
    * n = d, with and without: min(1/(d+1), d!/d^d), that each neighbour of the shorter list is drawn once;
    * n > d, both without replacement: 1 − d/(n+1), that the additional neighbour is not drawn.

    δ is 1 less that probability to the power ``times``, and it is the least δ for ε = 0 and for every other ε: the
    guarantee is (0, δ), and (ε, δ') is wrong for each δ' < δ, however large ε.  For on the outputs that both lists can give,
    one law, call it P, is nowhere above the other, nor are powers of it: Σ max(0, P − e^ε Q) is then what P gives to
    outputs that Q cannot have, for ε = 0 and any other.

    Args:
        degree: length n of the shorter list.
        fanout: number of neighbours d that are drawn at a time.
        times: number of independent samplings that are seen.
        ordered: whether the order in which the sampler gives them is seen as well.  It matters for n = d alone, where the
            probability is then min(1/(d+1), d^(−d)): ascending draws are likely to be without replacement.

    Raises:
        PrivacyError: if a count is out of range.
    """
    if degree != 0:
        require_count("degree", degree)
    require_count("fan-out d", fanout)
    if times < 1:
        raise PrivacyError(f"the number of samplings is {times}; it must be at least 1")
    if degree == 0:
        common = -math.inf
    elif degree < fanout:
        common = fanout * math.log1p(-1 / (degree + 1))
    elif degree == fanout:
        repeats = 0.0 if ordered else math.lgamma(fanout + 1)
        common = min(-math.log(fanout + 1), repeats - fanout * math.log(fanout))
    else:
        common = -math.log1p(fanout / (degree + 1 - fanout))
    return Guarantee(0.0, times * common)


def contradicts(degree: int, fanout: int) -> bool:
    """Whether Lemma B.1 is wrong for lists of D neighbours that lose or gain one.

    It is for d ≥ 3 and D = d or d + 1: a list of d neighbours is drawn from with replacement, so that some neighbour nearly
    always appears twice, and a list of d + 1 without, where none ever does.  Elsewhere its δ is the larger one of the exact
    values for D − 1 beside D and D beside D + 1, and its ε is not needed.
    """
    return fanout >= 3 and degree in (fanout, fanout + 1)
