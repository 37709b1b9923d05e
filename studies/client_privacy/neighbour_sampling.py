"""Where Theorem 3.1 of FedDEP fails, and what it does not count: the numbers of docs/privacy.md beyond the exact guarantee.

One side at a time (:func:`one_sided_losses`), least degrees for which Lemma B.1 is wrong (:func:`lemma_b1_fails`), a Bernoulli
sampler that really selects neighbours (:func:`selected_delta`), and how often a list is read (:func:`expected_samplings`).
"""

import math

import numpy as np

from feddep.graph.graph import Graph
from feddep.privacy.accountant import Guarantee, PrivacyError, one_sampling, require_count
from feddep.privacy.profile import exact_guarantee


def one_sided_losses(degree: int, fanout: int) -> tuple[Guarantee, Guarantee]:
    """The least loss of one sampling where a neighbour is absent, and where it is present.

    The list has n neighbours if it is absent and n + 1 if it is present, with the laws Q and P.  Where both lists are drawn from
    in the same way, Q is P given that the neighbour was not drawn, so that an absent neighbour is hidden without any δ, and a
    present one without any ε.  For n = d they are not, and neither is.

    Args:
        degree: length n of the shorter list.
        fanout: number of neighbours d that are drawn.

    Returns:
        (ε, δ) with Q(S) ≤ e^ε P(S) + δ and with P(S) ≤ e^ε Q(S) + δ for every set S of outputs: the least δ, and the least ε
        with it.  For n > 0 other than d that is (ln((n+1)/(n+1−d)), 0) or (d ln((n+1)/n), 0), the ε of Lemma B.1 for D = n, and
        (0, δ), the δ of Lemma B.1 for D = n + 1.

    Raises:
        PrivacyError: if a count is out of range.
    """
    exact = exact_guarantee(degree, fanout)
    if degree == 0:
        return exact, exact
    if degree != fanout:
        return Guarantee(-exact.log_rest, 0.0), exact
    absent, present = math.lgamma(fanout + 1) - fanout * math.log(fanout), -math.log(fanout + 1)  # ln of the common outputs
    return Guarantee(max(absent - present, 0.0), absent), Guarantee(max(present - absent, 0.0), present)


def selected_delta(degree: int, fanout: int, rate: float, epsilon: float = 0.0) -> float:
    """The least δ for ε where a Bernoulli sampler selects the neighbours that may be drawn, as Theorem B.4 supposes.

    Each neighbour is selected with probability r by itself, then d of those selected are drawn as from a list of their own.  The
    shorter a list, the likelier each of its neighbours is drawn: δ is at least the chance that one given neighbour is selected
    *and* drawn from what else was selected, which is more than the r δ(D) that the theorem has with the δ of the whole list.

    Outputs with the same number j of different neighbours, the given one not among them, have the same likelihood ratio.

    Args:
        degree: number n of neighbours in the shorter list; the other one has n + 1.
        fanout: number of neighbours d that are drawn.
        rate: probability r that a neighbour is selected.
        epsilon: ε ≥ 0.

    Raises:
        PrivacyError: if a value is out of range.
    """
    if degree != 0:
        require_count("degree", degree)
    require_count("fan-out d", fanout)
    for name, value, most in (("rate r", rate, 1.0), ("ε", epsilon, math.inf)):
        if not 0 <= value <= most:
            raise PrivacyError(f"the {name} is {value}; it must be a number from 0 to {most:g}")
    longer, shorter = (_without_given(degree, entries, fanout, rate) for entries in (degree + 1, degree))
    factor, drawn = math.exp(epsilon) if epsilon < 700 else math.inf, max(1 - sum(longer), 0.0)
    pairs = [(p, q) for p, q in zip(longer, shorter, strict=True) if p or q]
    with_neighbour = drawn + sum(max(p - factor * q, 0.0) if q else p for p, q in pairs)
    return max(with_neighbour, sum(max(q - factor * p, 0.0) if p else q for p, q in pairs))


def _without_given(others: int, entries: int, fanout: int, rate: float) -> list[float]:
    """The probability of all outputs with j = 0 … d different neighbours out of ``others``, from a list of ``entries``."""
    chances = [_binomial(selected, entries, rate) for selected in range(entries + 1)]
    found = [chances[0]]
    for different in range(1, min(fanout, others) + 1):
        # With replacement from up to d selected ones, without from more, which shows d different ones.
        most = entries if different == fanout else min(fanout, entries)
        found.append(0.0)
        for selected in range(different, most + 1):
            # Pairs of j of the others and a selection of so many that contains them, as a share of all selections.
            contained = _log_choose(others, different) + _log_choose(entries - different, selected - different)
            share = math.exp(
                contained - _log_choose(entries, selected) - (_log_choose(selected, fanout) if selected > fanout else 0)
            )
            shown = _surjections(fanout, different) / selected**fanout if selected <= fanout else 1.0
            found[-1] += chances[selected] * share * shown
    return found


def _binomial(count: int, trials: int, rate: float) -> float:
    """Pr[Bin(trials, rate) = count]."""
    if rate in (0, 1):
        return float(count == rate * trials)
    return math.exp(_log_choose(trials, count) + count * math.log(rate) + (trials - count) * math.log1p(-rate))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _surjections(draws: int, onto: int) -> int:
    """In how many orders ``draws`` draws give all of ``onto`` neighbours and no other."""
    return sum((-1) ** missing * math.comb(onto, missing) * (onto - missing) ** draws for missing in range(onto + 1))


def at_border(degree: int, fanout: int) -> bool:
    """Whether Lemma B.1 is wrong for a list of D neighbours, as it is drawn from in another way when it loses or gains one.

    It is for d ≥ 3 and D = d or d + 1: a list of d neighbours is drawn from with replacement, so that some neighbour nearly
    always appears twice, and a list of d + 1 without, where none ever does.  For other lists the δ of Lemma B.1 is the larger one
    of the exact values for D − 1 beside D and D beside D + 1, and its ε is not needed.
    """
    return fanout >= 3 and degree in (fanout, fanout + 1)


def lemma_b1_fails(degree: int, fanout: int, both_lists: bool = False) -> bool:
    """Whether Lemma B.1 is wrong for graphs of least degree D, for any ε.

    A graph of least degree D ≤ d may hold nodes of d neighbours, whose lists are :func:`at_border`: the lemma fails wherever its
    own δ for D is below their exact one.  For D = d + 1 it fails if a list may lose a neighbour and have d left.

    Args:
        degree: least degree D.
        fanout: number of neighbours d that are drawn.
        both_lists: whether both lists that are compared must have D neighbours, instead of one of them.
    """
    reached = degree <= fanout + (not both_lists)
    return fanout >= 3 and reached and one_sampling(degree, fanout).log_rest > exact_guarantee(fanout, fanout).log_rest


def expected_samplings(graph: Graph, fanout: int, layers: int) -> np.ndarray:
    """How often each node's list is read in an epoch in which every node is trained on once.

    Lemma B.2 counts L samplings an epoch, those of a root.  But :func:`feddep.graph.sampling.sample_trees` reads a node's list
    again at every place of every tree where the node was drawn as a neighbour.  In expectation, a node stands m_h(v) times
    among the nodes that are needed h hops from the top, m_0 = 1 and m_(h+1)(v) = m_h(v) + Σ_u m_h(u) d / deg(u) over the
    neighbours u of v, where d is ``fanout``; its list is read Σ_(h<L) m_h(v) times for L = ``layers``.

    Returns:
        Expected number of samplings; float64, shape (n,).
    """
    adjacency = graph.adjacency.astype(np.float64)
    chance = fanout / np.maximum(graph.degrees, 1)
    places = np.ones(graph.num_nodes)
    total = np.zeros(graph.num_nodes)
    for _ in range(layers):
        total += places
        places = places + adjacency @ (places * chance)
    return total
