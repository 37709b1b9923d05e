"""The exact laws of sampled trees, on small graphs."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

from feddep.graph import Graph
from feddep.privacy.profile import divergence, sequences

SMALL = {
    "path": [[0, 1], [1, 2], [2, 3], [3, 4]],
    "ring": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]],
    "star": [[0, 1], [0, 2], [0, 3], [0, 4]],
    "triangle with a tail": [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]],
    "two parts": [[0, 1], [2, 3], [3, 4]],
}
"""Edges of graphs with five nodes."""


def law_of_trees(graph: Graph, root: int, hops: int, fanout: int) -> dict[tuple[int, ...], Fraction]:
    """The law of a root's tree, place by place, as :func:`feddep.sampling.sample_trees` draws it."""
    lists = [graph.indices[start:end].tolist() for start, end in itertools.pairwise(graph.indptr.tolist())]
    law = {(root,): Fraction(1)}
    for _ in range(hops):
        longer: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for tree, share in law.items():
            for drawn in itertools.product(*(sequences(lists[node] if node >= 0 else [], fanout).items() for node in tree)):
                places = itertools.chain(tree, *(outcome for outcome, _ in drawn))
                longer[tuple(places)] += share * math.prod((chance for _, chance in drawn), start=Fraction(1))
        law = longer
    return law


def without_edge(graph: Graph, edge: int) -> Graph:
    """The graph less one of its edges, by its place in :meth:`feddep.graph.Graph.edges`."""
    return Graph.from_edges(np.delete(graph.edges(), edge, axis=0), graph.features, graph.labels, graph.num_classes)


def distance(one: dict[tuple[int, ...], Fraction], other: dict[tuple[int, ...], Fraction]) -> float:
    """The total-variation distance of two laws."""
    return float(divergence(one, other, Fraction(1)))
