"""Uniform neighbour sampling: the mini-batch of GraphSAGE and, by its randomness, the privacy mechanism of FedDEP.

The law, for a node of degree D and fan-out d (FedDEP, Appendix B, Lemma B.1; the implementation follows FederatedScope):

* D > d: d distinct neighbours, every d-subset equally likely (without replacement);
* 1 ≤ D ≤ d: d independent uniform draws (with replacement);
* D = 0: no neighbour; the places are filled with :data:`NOBODY`.

Every draw is exactly uniform: bounded integers are drawn by rejection, never by rounding a floating-point number.
"""

import numpy as np

from feddep.graph import Graph

NOBODY = -1
"""Stands where an isolated node has no neighbour to draw."""


def sample_neighbours(graph: Graph, nodes: np.ndarray, fanout: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``fanout`` neighbours of each node, independently for each entry of ``nodes``.

    Args:
        graph: the graph to sample from.
        nodes: node ids of any shape; :data:`NOBODY` has no neighbours.
        fanout: number of neighbours d to draw, at least 1.
        rng: source of randomness.

    Returns:
        Node ids, int32, shape ``(*nodes.shape, fanout)``.

    Raises:
        ValueError: if ``fanout`` is below 1.
    """
    if fanout < 1:
        raise ValueError(f"fanout is {fanout}; it must be at least 1")
    flat = np.asarray(nodes).ravel()
    degrees = np.where(flat == NOBODY, 0, graph.degrees[flat])
    picks = np.empty((len(flat), fanout), dtype=np.int64)

    few = np.flatnonzero((degrees > 0) & (degrees <= fanout))
    picks[few] = rng.integers(0, degrees[few, None], size=(len(few), fanout))
    many = np.flatnonzero(degrees > fanout)
    picks[many] = _distinct(degrees[many], fanout, rng)

    neighbours = np.full((len(flat), fanout), NOBODY, dtype=np.int32)
    some = degrees > 0
    neighbours[some] = graph.indices[graph.indptr[flat[some], None] + picks[some]]
    return neighbours.reshape(*np.shape(nodes), fanout)


def _distinct(sizes: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` distinct integers below each of ``sizes``, every subset equally likely, in ascending order.

    Floyd's algorithm, on all rows at once.  Its own order depends on what is drawn from, and would tell more than the subset.
    """
    picks = np.empty((len(sizes), count), dtype=np.int64)
    for i in range(count):
        top = sizes - count + i
        draw = rng.integers(0, top, endpoint=True)
        taken = (picks[:, :i] == draw[:, None]).any(axis=1)
        picks[:, i] = np.where(taken, top, draw)
    picks.sort(axis=1)
    return picks


def tree_width(fanout: int, hops: int) -> int:
    """Number of places in a sampled tree: (1 + d)^hops."""
    return (1 + fanout) ** hops


def sample_trees(graph: Graph, roots: np.ndarray, fanout: int, hops: int, rng: np.random.Generator) -> np.ndarray:
    """Sample the ``hops``-hop ego-graph of each root as a tree of fixed shape (GraphSAGE, Algorithm 2).

    The nodes needed k hops from the top are those needed k − 1 hops from it, followed by d fresh draws for each of
    them.  Draws are independent between hops: a root's neighbours are drawn anew for every layer, as the composition
    over L layers in FedDEP's Lemma B.2 assumes.

    Returns:
        Node ids, int32, shape ``(len(roots), (1 + d)^hops)``.  With s = (1 + d)^(hops − 1), the places ``[:s]`` are
        the tree of one hop less, and place ``s + i·d + j`` is the j-th neighbour drawn for place i.
    """
    trees = np.asarray(roots, dtype=np.int32)[:, None]
    for _ in range(hops):
        drawn = sample_neighbours(graph, trees, fanout, rng)
        trees = np.concatenate([trees, drawn.reshape(len(trees), trees.shape[1] * fanout)], axis=1)
    return trees
