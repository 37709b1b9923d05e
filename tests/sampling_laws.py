"""The laws of sampled neighbours and trees, enumerated in exact fractions, and their hockey-stick
divergence.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.sampling import PAD

RunResult = tuple[int, ...]
Law = Mapping[RunResult, Fraction]

SMALL = {
    "path": [[0, 1], [1, 2], [2, 3], [3, 4]],
    "ring": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]],
    "star": [[0, 1], [0, 2], [0, 3], [0, 4]],
    "triangle with a tail": [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]],
    "two parts": [[0, 1], [2, 3], [3, 4]],
}
"""Edges of graphs with five nodes."""


def sequences(neighbours: Sequence[int], fanout: int) -> Law:
    """The law of :func:`feddep.graph.sampling.sample_neighbours`, in the order in which neighbours
    are drawn from a list.

    With replacement that is the order of drawing, without it is ascending.

    Args:
        neighbours: the list, in ascending order; it may be empty.
        fanout: number of neighbours d that are drawn.
    """
    degree = len(neighbours)
    if degree == 0:
        return {(PAD,) * fanout: Fraction(1)}
    if degree <= fanout:
        return dict.fromkeys(
            itertools.product(neighbours, repeat=fanout), Fraction(1, degree**fanout)
        )
    return dict.fromkeys(
        itertools.combinations(neighbours, fanout), Fraction(1, math.comb(degree, fanout))
    )


def multisets(neighbours: Sequence[int], fanout: int) -> Law:
    """The law of the neighbours drawn from a list, whatever their order: all that a mean of them
    depends on.
    """
    law: defaultdict[RunResult, Fraction] = defaultdict(Fraction)
    for drawn, share in sequences(neighbours, fanout).items():
        law[tuple(sorted(drawn))] += share
    return law


def repeated(law: Law, times: int) -> Law:
    """The law of ``times`` independent outcomes, one after the other."""
    return {
        tuple(itertools.chain.from_iterable(outcomes)): math.prod(
            (law[outcome] for outcome in outcomes), start=Fraction(1)
        )
        for outcomes in itertools.product(law, repeat=times)
    }


def divergence(p: Law, q: Law, factor: Fraction) -> Fraction:
    """Hockey-stick divergence Σ_o max(0, p(o) − factor · q(o)): the least δ with P ≤ e^ε Q + δ, for
    factor = e^ε.
    """
    return sum(
        (
            max(share - factor * q.get(outcome, Fraction(0)), Fraction(0))
            for outcome, share in p.items()
        ),
        Fraction(0),
    )


def enumerated_delta(p: Law, q: Law, factor: Fraction) -> Fraction:
    """The least δ for ε = ln ``factor``, whichever of the two laws is the true one."""
    return max(divergence(p, q, factor), divergence(q, p, factor))


def distance(one: Law, other: Law) -> float:
    """The total variation distance of two laws."""
    return float(divergence(one, other, Fraction(1)))


def law_of_trees(graph: Graph, root: int, hops: int, fanout: int) -> dict[RunResult, Fraction]:
    """The law of a root's tree, place by place, as :func:`feddep.graph.sampling.sample_trees` draws
    it.
    """
    lists = [
        graph.indices[start:end].tolist()
        for start, end in itertools.pairwise(graph.indptr.tolist())
    ]
    law = {(root,): Fraction(1)}
    for _ in range(hops):
        longer: defaultdict[RunResult, Fraction] = defaultdict(Fraction)
        for tree, share in law.items():
            for drawn in itertools.product(
                *(sequences(lists[node] if node >= 0 else [], fanout).items() for node in tree)
            ):
                places = itertools.chain(tree, *(outcome for outcome, _ in drawn))
                longer[tuple(places)] += share * math.prod(
                    (chance for _, chance in drawn), start=Fraction(1)
                )
        law = longer
    return law


def without_edge(graph: Graph, edge: int) -> Graph:
    """The graph less one of its edges, by its place in :meth:`feddep.graph.graph.Graph.edges`."""
    return Graph.from_edges(
        np.delete(graph.edges(), edge, axis=0), graph.features, graph.labels, graph.num_classes
    )


def reached(graph: Graph, hops: int) -> sp.csr_array:
    """Which nodes are within so many hops of each other, 1 or 0; shape (n, n)."""
    near = sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
    for _ in range(hops):
        near = near @ (
            graph.adjacency + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
        )
        near.data[:] = 1
    return sp.csr_array(near)


def roots_of_edges(graph: Graph, roots: np.ndarray, hops: int) -> np.ndarray:
    """For each edge, the number k of roots whose trees depend on it: those within L − 1 hops of
    either end; shape (|E|,).
    """
    near, ends = reached(graph, hops - 1)[:, roots], graph.edges()
    counts = np.asarray(near.sum(axis=1)).ravel()
    both = np.asarray(near[ends[:, 0]].multiply(near[ends[:, 1]]).sum(axis=1)).ravel()
    return (counts[ends].sum(axis=1) - both).astype(np.int64)


def roots_of_nodes(graph: Graph, roots: np.ndarray, hops: int) -> np.ndarray:
    """For each node, the number of roots whose trees depend on it: itself, if it is one, and those
    up to L hops from it.
    """
    return np.diff(reached(graph, hops)[:, roots].tocsr().indptr).astype(np.int64)
