"""The message-flow graph of a batch: sampled neighbourhoods laid over each other, in which every node stands once.

VESPER, Algorithm 1, lines 1 to 3: an L-layer neighbourhood sampler, at most D neighbours a node, and the union of what it finds
for all roots.  A node draws its neighbours once, and hears the same ones in every layer.  Sampled trees
(:func:`feddep.graph.sampling.sample_trees`) are another thing: there one node stands at many places, each with draws of its own.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.graph.sampling import distinct_integers


@dataclass(frozen=True, eq=False)
class Blocks:
    """The message-flow graph of some roots.

    Nodes are in the order of their distance from the roots.  Layer l of L is computed for the nodes within L − l hops, from those
    within L − l + 1 hops: both are the first rows of what the layer before has computed.

    Attributes:
        nodes: ids of the nodes, the roots first; shape (n,).
        sizes: number of nodes within 0, 1 … L hops; the first is the number of roots, the last is n.
        indptr: where the neighbours that a node hears start and end in ``indices``; int32, shape (sizes[L − 1] + 1,).
        indices: places of the neighbours in ``nodes``; int32.
        degrees: number of neighbours that each node hears, or would hear if it was nearer to the roots: at most D; shape (n,).
    """

    nodes: np.ndarray
    sizes: tuple[int, ...]
    indptr: np.ndarray
    indices: np.ndarray
    degrees: np.ndarray

    @property
    def hops(self) -> int:
        """Number of hops L."""
        return len(self.sizes) - 1

    def neighbours(self, layer: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
        """Who hears whom in layer l, from 1 to L: row starts, columns and shape of a matrix in compressed sparse row form."""
        rows, columns = self.sizes[self.hops - layer], self.sizes[self.hops - layer + 1]
        return self.indptr[: rows + 1], self.indices[: self.indptr[rows]], (rows, columns)


class BlockSampler:
    """Draws message-flow graphs.  The time of a draw grows with what is drawn, not with the graph.

    A node hears at most D of its neighbours: all of them where it has no more, else D distinct ones, every subset equally likely.
    """

    def __init__(self, adjacency: sp.csr_matrix, degree: int) -> None:
        """Prepare to draw.

        Args:
            adjacency: the neighbours that node v may hear in row v; need not be symmetric; shape (n, n).
            degree: the largest number D of neighbours that a node hears.
        """
        self._indptr, self._indices, self._degree = adjacency.indptr, adjacency.indices, degree
        self._place = np.full(adjacency.shape[0], -1, dtype=np.int32)  # in the subgraph being drawn; −1 for all others

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return len(self._place)

    def degrees(self, nodes: np.ndarray) -> np.ndarray:
        """Number of neighbours that each node hears, at most D."""
        return np.minimum(self._indptr[nodes + 1] - self._indptr[nodes], self._degree)

    def draw(self, roots: np.ndarray, hops: int, rng: np.random.Generator) -> Blocks:
        """The message-flow graph of distinct ``roots``, to so many hops."""
        found, sizes = [np.asarray(roots, dtype=np.int64)], [len(roots)]
        lists = []
        self._place[roots] = np.arange(len(roots))
        for _ in range(hops):
            lists.append(self._heard(found[-1], rng))
            new = np.unique(lists[-1][self._place[lists[-1]] < 0])
            self._place[new] = np.arange(sizes[-1], sizes[-1] + len(new))
            found.append(new.astype(np.int64))
            sizes.append(sizes[-1] + len(new))
        nodes = np.concatenate(found)
        degrees = self.degrees(nodes)
        indptr = np.zeros(sizes[hops - 1] + 1 if hops else 1, dtype=np.int32)
        np.cumsum(degrees[: len(indptr) - 1], out=indptr[1:])
        indices = self._place[np.concatenate(lists)] if lists else np.zeros(0, dtype=np.int32)
        self._place[nodes] = -1
        return Blocks(nodes, tuple(sizes), indptr, indices, degrees)

    def _heard(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The neighbours that each node hears, one node after the other."""
        starts = self._indptr[nodes].astype(np.int64)
        sizes = self._indptr[nodes + 1] - starts
        counts = np.minimum(sizes, self._degree)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        many = sizes > self._degree
        within[np.repeat(many, counts)] = distinct_integers(sizes[many], self._degree, rng).ravel()
        return self._indices[np.repeat(starts, counts) + within]
