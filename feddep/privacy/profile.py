"""The exact guarantee of neighbour sampling: its privacy profile, the least δ for each ε.

Whoever sees which neighbours were drawn sees a sample of P, drawn from a list of n + 1 neighbours,
or of Q, from the same list without one of them.  The least δ for a given ε is the larger of both
hockey-stick divergences, Σ_o max(0, P(o) − e^ε Q(o)) and the same with P and Q exchanged (Balle,
Barthe and Gaboardi 2020, "Privacy profiles and amplification by subsampling").  Here it is the
total variation distance *for every* ε ≥ 0: the profile is flat.  docs/appendix/privacy_proofs.md
has the proof.
"""

import math

from feddep.privacy.accountant import Guarantee, PrivacyError, require_count


def exact_guarantee(degree: int, fanout: int, times: int = 1, ordered: bool = False) -> Guarantee:
    """The exact guarantee for a list of n neighbours and the same list with one more, sampled
    ``times`` times.

    δ = 1 − q^times, where q is the probability of the outputs that both lists can give, under the
    list that gives them less often:

    * n = 0: 0; an empty list gives :data:`~feddep.graph.sampling.PAD`, a list of one always this
        one;
    * 0 < n < d, both with replacement: (n/(n+1))^d, that the additional neighbour is not drawn;
    * n = d, with and without replacement: min(1/(d+1), d!/d^d), that each neighbour of the shorter
        list is drawn once;
    * n > d, both without replacement: 1 − d/(n+1), that the additional neighbour is not drawn.

    Args:
        degree: length n of the shorter list.
        fanout: number of neighbours d that are drawn at a time.
        times: number of independent samplings that are seen.
        ordered: whether the order in which the sampler gives them is seen as well.  It matters for
            n = d alone, where q is then min(1/(d+1), d^(−d)): ascending draws are likely to be
            without replacement.

    Returns:
        (0, δ); (ε, δ') does not hold for any δ' < δ, however large ε.

    Raises:
        PrivacyError: if a count is out of range.
    """
    require_count("degree", degree, least=0)
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


def exact_at_node(degree: int, fanout: int, times: int = 1) -> Guarantee:
    """The exact guarantee of a node with D neighbours: the worse of losing one, if there is one,
    and gaining one.
    """
    lengths = (max(degree - 1, 0), degree)
    return min(
        (exact_guarantee(length, fanout, times) for length in lengths),
        key=lambda guarantee: guarantee.log_rest,
    )
