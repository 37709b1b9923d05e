"""Uniform neighbour sampling: the mini-batch of GraphSAGE and, by its randomness, the privacy
mechanism of FedDEP.

The law, for a node of degree D and fan-out d (FedDEP, Appendix B, Lemma B.1; the implementation
follows FederatedScope):

* D > d: d distinct neighbours, every d-subset equally likely (without replacement);
* 1 ≤ D ≤ d: d independent uniform draws (with replacement);
* D = 0: no neighbour; all d entries are :data:`PAD`.

Every draw is exactly uniform: bounded integers are drawn by rejection, never by rounding a
floating-point number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from feddep.graph.graph import Graph

Rows = TypeVar("Rows", bound=Any)

PAD = -1
"""Stands where an isolated node has no neighbour to draw."""


def sample_neighbours(
    graph: Graph, nodes: np.ndarray, fanout: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw ``fanout`` neighbours of each node, independently for each entry of ``nodes``.

    Args:
        graph: the graph to sample from.
        nodes: node ids of any shape; :data:`PAD` has no neighbours.
        fanout: number of neighbours d to draw, at least 1.
        rng: source of randomness.

    Returns:
        Node ids, int32, shape ``(*nodes.shape, fanout)``.
    """
    flat = np.asarray(nodes).ravel()
    degrees = np.where(flat == PAD, 0, graph.degrees[flat])
    picks = np.empty((len(flat), fanout), dtype=np.int64)

    few = np.flatnonzero((degrees > 0) & (degrees <= fanout))
    picks[few] = rng.integers(0, degrees[few, None], size=(len(few), fanout))
    many = np.flatnonzero(degrees > fanout)
    picks[many] = distinct_integers(degrees[many], fanout, rng)

    neighbours = np.full((len(flat), fanout), PAD, dtype=np.int32)
    some = degrees > 0
    neighbours[some] = graph.indices[graph.indptr[flat[some], None] + picks[some]]
    return neighbours.reshape(*np.shape(nodes), fanout)


def distinct_integers(sizes: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` distinct integers below each of ``sizes``, every subset equally likely, in
    ascending order.

    Floyd's algorithm, on all rows at once.  Its own order depends on what is drawn from, and would
    tell more than the subset.
    """
    picks = np.empty((len(sizes), count), dtype=np.int64)
    for i in range(count):
        top = sizes - count + i
        draw = rng.integers(0, top, endpoint=True)
        taken = (picks[:, :i] == draw[:, None]).any(axis=1)
        picks[:, i] = np.where(taken, top, draw)
    picks.sort(axis=1)
    return picks


@dataclass(frozen=True, eq=False)
class SampledTrees:
    """Sampled ego-graphs of B roots, as trees of one shape.

    A tree of one hop more has f more tree nodes for each tree node p, the neighbours drawn for it:
    in a tree of s tree nodes, the j-th of them is tree node s + p f + j.

    Attributes:
        nodes: the graph's node at each tree node, the root first; int32, shape (B, (1 + f_1) … (1 +
            f_L)).
        fanouts: number of neighbours f_1 … f_L drawn for a node in each hop, that of the roots
            first.
    """

    nodes: np.ndarray
    fanouts: tuple[int, ...]

    def __len__(self) -> int:
        """Number of trees B."""
        return len(self.nodes)

    def __getitem__(self, batch: slice | np.ndarray) -> "SampledTrees":
        """Some of the trees."""
        return SampledTrees(self.nodes[batch], self.fanouts)

    @property
    def inner(self) -> "SampledTrees":
        """The trees without their last hop."""
        return SampledTrees(self.split(self.nodes)[0], self.fanouts[:-1])

    @property
    def has_neighbours(self) -> np.ndarray:
        """Which of the P tree nodes before the last hop have neighbours: all f drawn for them, or
        none; bool, shape (B, P).
        """
        return self.split(self.nodes)[1][:, :, 0] != PAD

    def split(self, rows: Rows) -> tuple[Rows, Rows]:
        """Rows of all tree nodes, split into those of the P tree nodes before the last hop, and of
        the f drawn for each of them.

        Args:
            rows: an array or a tensor, shape (B, P (1 + f), …).

        Returns:
            Shapes (B, P, …) and (B, P, f, …).
        """
        fanout = self.fanouts[-1]
        inner = rows.shape[1] // (1 + fanout)
        return rows[:, :inner], rows[:, inner:].reshape(len(rows), inner, fanout, *rows.shape[2:])


def sample_trees(
    graph: Graph | Sequence[Graph],
    roots: np.ndarray,
    fanouts: Sequence[int],
    rng: np.random.Generator,
) -> SampledTrees:
    """Sample the ego-graph of each root (GraphSAGE, Algorithm 2), a hop for each of ``fanouts``.

    The nodes needed k hops from the top are those needed k − 1 hops from it, followed by f_k fresh
    draws for each of them.  Draws are independent between hops: a root's neighbours are drawn anew
    for every layer, as the composition over L layers in FedDEP's Lemma B.2 assumes.

    Args:
        graph: the graph to draw from, or one for each hop.
        roots: node ids, shape (B,).
        fanouts: number of neighbours to draw for a node in each hop, that of the roots first.
        rng: source of randomness.
    """
    graphs = [graph] * len(fanouts) if isinstance(graph, Graph) else graph
    nodes = np.asarray(roots, dtype=np.int32)[:, None]
    for each, fanout in zip(graphs, fanouts, strict=True):
        drawn = sample_neighbours(each, nodes, fanout, rng)
        nodes = np.concatenate([nodes, drawn.reshape(len(nodes), nodes.shape[1] * fanout)], axis=1)
    return SampledTrees(nodes, tuple(fanouts))
