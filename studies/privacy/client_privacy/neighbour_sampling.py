"""Where Theorem 3.1 of FedDEP fails, and what it does not count: see
docs/appendix/privacy_proofs.md.

One side at a time (:func:`one_sided_losses`), least degrees for which Lemma B.1 is wrong
(:func:`lemma_b1_fails`), a Bernoulli sampler that really selects neighbours
(:func:`selected_delta`), and how often a list is read (:func:`expected_samplings`).
"""

import math

import numpy as np
from scipy.special import stirling2
from scipy.stats import binom

from feddep.graph.graph import Graph
from feddep.privacy.accountant import Guarantee, one_sampling
from feddep.privacy.profile import exact_guarantee


def one_sided_losses(degree: int, fanout: int) -> tuple[Guarantee, Guarantee]:
    """The least loss of one sampling where a neighbour is absent, and where it is present.

    The list has n neighbours if it is absent and n + 1 if it is present, with the laws Q and P.
    Where both lists are drawn from in the same way, Q is P given that the neighbour was not drawn,
    so that an absent neighbour is hidden without any δ, and a present one without any ε.  For n = d
    they are not, and neither is.

    Args:
        degree: length n of the shorter list.
        fanout: number of neighbours d that are drawn.

    Returns:
        (ε, δ) with Q(S) ≤ e^ε P(S) + δ and with P(S) ≤ e^ε Q(S) + δ for every set S of outputs: the
        least δ, and the least ε with it.  For n > 0 other than d: (ln((n+1)/(n+1−d)), 0) or (d
        ln((n+1)/n), 0), the ε of Lemma B.1 for D = n, and (0, δ), the δ of Lemma B.1 for D = n + 1.
    """
    exact = exact_guarantee(degree, fanout)
    if degree == 0:
        return exact, exact
    if degree != fanout:
        return Guarantee(-exact.log_rest, 0.0), exact
    # ln of the common outputs.
    absent = math.lgamma(fanout + 1) - fanout * math.log(fanout)
    present = -math.log(fanout + 1)
    return Guarantee(max(absent - present, 0.0), absent), Guarantee(
        max(present - absent, 0.0), present
    )


def selected_delta(degree: int, fanout: int, rate: float, epsilon: float = 0.0) -> float:
    """The least δ for ε where a Bernoulli sampler selects the neighbours that may be drawn, as
    Theorem B.4 supposes.

    Each neighbour is selected with probability r by itself, then d of those selected are drawn as
    from a list of their own.  The shorter a list, the likelier each of its neighbours is drawn: δ
    is at least the chance that one given neighbour is selected *and* drawn from what else was
    selected, which is more than the r δ(D) that the theorem has with the δ of the whole list.

    Outputs with the same number j of different neighbours, the given one not among them, have the
    same likelihood ratio.

    Args:
        degree: number n of neighbours in the shorter list; the other one has n + 1.
        fanout: number of neighbours d that are drawn.
        rate: probability r that a neighbour is selected.
        epsilon: ε ≥ 0.
    """
    longer, shorter = (
        _without_given(degree, entries, fanout, rate) for entries in (degree + 1, degree)
    )
    factor, drawn = math.exp(epsilon) if epsilon < 700 else math.inf, max(1 - sum(longer), 0.0)
    pairs = [(p, q) for p, q in zip(longer, shorter, strict=True) if p or q]
    with_neighbour = drawn + sum(max(p - factor * q, 0.0) if q else p for p, q in pairs)
    return max(with_neighbour, sum(max(q - factor * p, 0.0) if p else q for p, q in pairs))


def _without_given(others: int, entries: int, fanout: int, rate: float) -> list[float]:
    """The probability of all outputs with j = 0 … d different neighbours out of ``others``, from a
    list of ``entries``.
    """
    # So many selected ones are drawn from with replacement.
    few = range(1, min(fanout, entries) + 1)
    chances = binom.pmf(few, entries, rate)
    found = [float(binom.pmf(0, entries, rate))]
    for different in range(1, min(fanout, others) + 1):
        # Draws that give just these neighbours.
        orders = math.factorial(different) * stirling2(fanout, different, exact=True)
        drawn = sum(
            p * math.comb(s, different) * orders / s**fanout
            for s, p in zip(few, chances, strict=True)
        )
        if different == fanout:
            drawn += binom.sf(fanout, entries, rate)  # without replacement from more than d
        # A set of j selected ones is as likely one set of the list as another.
        found.append(float(drawn) * math.comb(others, different) / math.comb(entries, different))
    return found


def lemma_b1_fails(degree: int, fanout: int, both_lists: bool = False) -> bool:
    """Whether Lemma B.1 is wrong for graphs of least degree D, for any ε; ``both_lists``: where
    both have D neighbours or more.

    For d ≥ 3, in a sample of d neighbours some one nearly always appears twice; of d + 1, without
    replacement, none ever does. A graph of least degree D ≤ d may hold nodes of d neighbours: the
    lemma fails wherever its own δ for D is below the exact one of d beside d + 1.  For D = d + 1 it
    fails if a list may lose a neighbour and have d left.
    """
    reached = degree <= fanout + (not both_lists)
    return (
        fanout >= 3
        and reached
        and one_sampling(degree, fanout).log_rest > exact_guarantee(fanout, fanout).log_rest
    )


def expected_samplings(graph: Graph, fanout: int, layers: int) -> np.ndarray:
    """How often each node's list is read in an epoch in which every node is trained on once;
    float64, shape (n,).

    Lemma B.2 counts L samplings an epoch, those of a root.  But
    :func:`feddep.graph.sampling.sample_trees` reads a node's list again at every place of every
    tree where the node was drawn as a neighbour.  In expectation, a node stands m_h(v) times among
    the nodes that are needed h hops from the top, m_0 = 1 and m_(h+1)(v) = m_h(v) + Σ_u m_h(u) d /
    deg(u) over the neighbours u of v, where d is ``fanout``; its list is read Σ_(h<L) m_h(v) times
    for L = ``layers``.
    """
    chance = fanout / np.maximum(graph.degrees, 1)
    places, total = np.ones(graph.num_nodes), np.zeros(graph.num_nodes)
    for _ in range(layers):
        total += places
        places = places + graph.adjacency @ (places * chance)
    return total
