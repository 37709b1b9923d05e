"""The message-flow graph of a batch: the union of the sampled neighbourhoods of its roots, in which
every node occurs once.

VESPER, Algorithm 1, lines 1 to 3: an L-layer neighbourhood sampler with at most D neighbours a
node.  A node's neighbours are drawn once and are the same in every layer.  In sampled trees
(:func:`feddep.graph.sampling.sample_trees`), a node may occur at many tree nodes, each with
neighbours drawn for itself.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.graph.sampling import distinct_integers


@dataclass(frozen=True, eq=False)
class Blocks:
    """The message-flow graph of some roots.

    Nodes are in the order of their distance from the roots.  Layer l of L is computed for the nodes
    within L − l hops, from those within L − l + 1 hops: both are the first rows of the output of
    the layer before.

    Attributes:
        nodes: ids of the nodes, the roots first; shape (n,).
        sizes: number of nodes within 0, 1 … L hops; the first is the number of roots, the last is
            n.
        indptr: where a node's sampled neighbours start and end in ``indices``; int32, shape
            (sizes[L − 1] + 1,).
        indices: positions of the neighbours in ``nodes``; int32.
        degrees: number of sampled neighbours of each node, min(degree, D), also of nodes L hops
            away; shape (n,).
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
        """The sampled neighbours in layer l, from 1 to L: row starts, columns and shape of a matrix
        in CSR form.
        """
        rows, columns = self.sizes[self.hops - layer], self.sizes[self.hops - layer + 1]
        return self.indptr[: rows + 1], self.indices[: self.indptr[rows]], (rows, columns)


class BlockSampler:
    """Draws message-flow graphs.  The time of a draw grows with what is drawn, not with the graph.

    At most D neighbours of a node are sampled: all where it has no more, else D distinct ones,
    every subset equally likely.
    """

    def __init__(self, adjacency: sp.csr_matrix, degree: int) -> None:
        """Prepare to draw.

        Args:
            adjacency: the neighbours of node v in row v; need not be symmetric; shape (n, n).
            degree: the largest number D of neighbours sampled for a node.
        """
        self._indptr, self._indices, self._degree = adjacency.indptr, adjacency.indices, degree
        # In what is being drawn; −1 for all other nodes.
        self._position = np.full(adjacency.shape[0], -1, dtype=np.int32)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return len(self._position)

    def degrees(self, nodes: np.ndarray) -> np.ndarray:
        """Number of sampled neighbours of each node, at most D."""
        return np.minimum(self._indptr[nodes + 1] - self._indptr[nodes], self._degree)

    def draw(self, roots: np.ndarray, hops: int, rng: np.random.Generator) -> Blocks:
        """The message-flow graph of distinct ``roots``, to so many hops."""
        found, sizes = [np.asarray(roots, dtype=np.int64)], [len(roots)]
        lists = []
        self._position[roots] = np.arange(len(roots))
        for _ in range(hops):
            lists.append(self._sampled(found[-1], rng))
            new = np.unique(lists[-1][self._position[lists[-1]] < 0])
            self._position[new] = np.arange(sizes[-1], sizes[-1] + len(new))
            found.append(new.astype(np.int64))
            sizes.append(sizes[-1] + len(new))
        nodes = np.concatenate(found)
        degrees = self.degrees(nodes)
        indptr = np.zeros(sizes[hops - 1] + 1 if hops else 1, dtype=np.int32)
        np.cumsum(degrees[: len(indptr) - 1], out=indptr[1:])
        indices = self._position[np.concatenate(lists)] if lists else np.zeros(0, dtype=np.int32)
        self._position[nodes] = -1
        return Blocks(nodes, tuple(sizes), indptr, indices, degrees)

    def _sampled(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The sampled neighbours of each node, one node after the other."""
        starts = self._indptr[nodes].astype(np.int64)
        sizes = self._indptr[nodes + 1] - starts
        counts = np.minimum(sizes, self._degree)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        many = sizes > self._degree
        within[np.repeat(many, counts)] = distinct_integers(sizes[many], self._degree, rng).ravel()
        return self._indices[np.repeat(starts, counts) + within]
