"""The laws of sampled neighbours and trees, enumerated in exact fractions, and their hockey-stick divergence."""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.sampling import PAD
from feddep.privacy.accountant import PrivacyError, require_count

RunResult = tuple[int, ...]
Law = Mapping[RunResult, Fraction]

MOST_OUTCOMES = 200_000
"""Longer laws are not enumerated; it takes seconds."""

SMALL = {
    "path": [[0, 1], [1, 2], [2, 3], [3, 4]],
    "ring": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]],
    "star": [[0, 1], [0, 2], [0, 3], [0, 4]],
    "triangle with a tail": [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]],
    "two parts": [[0, 1], [2, 3], [3, 4]],
}
"""Edges of graphs with five nodes."""


def sequences(neighbours: Sequence[int], fanout: int) -> Law:
    """The law of :func:`feddep.graph.sampling.sample_neighbours`, in the order in which neighbours are drawn from a list.

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
        return {(PAD,) * fanout: Fraction(1)}
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
    law: defaultdict[RunResult, Fraction] = defaultdict(Fraction)
    for drawn, share in sequences(neighbours, fanout).items():
        law[tuple(sorted(drawn))] += share
    return law


def selected(neighbours: Sequence[int], fanout: int, rate: Fraction) -> Law:
    """The law of the neighbours drawn, whatever their order, from those that a Bernoulli sampler has selected.

    Each is selected with probability ``rate``.  Other arguments and errors as for :func:`sequences`.
    """
    law: defaultdict[RunResult, Fraction] = defaultdict(Fraction)
    for kept in itertools.product((False, True), repeat=len(neighbours)):
        chance = math.prod((rate if each else 1 - rate for each in kept), start=Fraction(1))
        for drawn, share in multisets(list(itertools.compress(neighbours, kept)), fanout).items():
            law[drawn] += chance * share
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


def distance(one: Law, other: Law) -> float:
    """The total variation distance of two laws."""
    return float(divergence(one, other, Fraction(1)))


def law_of_trees(graph: Graph, root: int, hops: int, fanout: int) -> dict[RunResult, Fraction]:
    """The law of a root's tree, place by place, as :func:`feddep.graph.sampling.sample_trees` draws it."""
    lists = [graph.indices[start:end].tolist() for start, end in itertools.pairwise(graph.indptr.tolist())]
    law = {(root,): Fraction(1)}
    for _ in range(hops):
        longer: defaultdict[RunResult, Fraction] = defaultdict(Fraction)
        for tree, share in law.items():
            for drawn in itertools.product(*(sequences(lists[node] if node >= 0 else [], fanout).items() for node in tree)):
                places = itertools.chain(tree, *(outcome for outcome, _ in drawn))
                longer[tuple(places)] += share * math.prod((chance for _, chance in drawn), start=Fraction(1))
        law = longer
    return law


def without_edge(graph: Graph, edge: int) -> Graph:
    """The graph less one of its edges, by its place in :meth:`feddep.graph.graph.Graph.edges`."""
    return Graph.from_edges(np.delete(graph.edges(), edge, axis=0), graph.features, graph.labels, graph.num_classes)


def roots_of_edges(graph: Graph, roots: np.ndarray, hops: int) -> np.ndarray:
    """For each edge, the number k of roots whose trees depend on it: those within L − 1 hops of either end.

    Args:
        graph: the graph.
        roots: the nodes whose trees are sampled, each once.
        hops: number of hops L of the trees.

    Returns:
        int64, shape (|E|,), in the order of :meth:`feddep.graph.graph.Graph.edges`.
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
