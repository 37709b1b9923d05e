"""Node features as the first layer of a GraphSAGE wants them: [own ‖ mean of the drawn
neighbours].
"""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch

from feddep.graph.sampling import PAD
from feddep.nn.sparse import ConstantMatrix, SparseMatrix


class FeatureTable:
    """Looks up, for a sampled node v with drawn neighbours u₁ … u_d, the row [x_v ‖ (x_{u₁} + … +
    x_{u_d}) / d].

    Features stay sparse: a lookup selects rows of X; multiplies those of a neighbour that was drawn
    k times by k / d, and moves them to the second half of the columns; and merges all of a node to
    one row, which in CSR form only drops row boundaries.  So aggregation and projection by the
    first layer's weights are one sparse product, and no dense row of features is ever made.  (With
    one non-zero in ten, as in PubMed, the sparse product is still the faster one;
    benchmarks/README.md.)
    """

    def __init__(
        self,
        features: sp.csr_matrix,
        device: torch.device | str = "cpu",
        degrees: np.ndarray | None = None,
    ) -> None:
        """Prepare the lookup in X, float32 CSR, shape (n, F).

        ``device`` is where rows are wanted; ``degrees``, shape (n,), are wanted by some encoders
        only.
        """
        self._features = features
        self._device = str(device)
        self._degrees = degrees

    def degrees(self, nodes: np.ndarray) -> np.ndarray:
        """Degrees of the given nodes, of their shape; 0 for PAD."""
        assert self._degrees is not None  # given by whoever trains an encoder that reads them
        return np.where(nodes == PAD, 0, self._degrees[nodes])

    def own(self, nodes: np.ndarray) -> ConstantMatrix:
        """x_v of the given nodes, shape (R, F); zero for PAD."""
        return SparseMatrix.from_scipy(self._own[nodes], self._device)

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> ConstantMatrix:
        """[x_v ‖ mean x_u], shape (R, 2F); the second half is zero where v has no neighbours, all
        for PAD.

        ``own`` are the ids v, int32, shape (R,), ``neighbours`` those of the drawn neighbours,
        int32, shape (R, d).
        """
        width, fanout = self._features.shape[1], neighbours.shape[1]
        # Nodes of few neighbours draw the same ones again and again: each is looked up once, with
        # its number of times.  For example, v = 4 with draws 6, 2, 6 looks up the rows 4, 6 and 2,
        # and none for the second 6; they count 1, 2/3 and 1/3.
        same = neighbours[:, :, None] == neighbours[:, None, :]
        times = same.sum(axis=2, dtype=np.int32)
        first = same.argmax(axis=2) == np.arange(fanout)
        rows = np.empty((len(own), 1 + fanout), dtype=np.int32)
        rows[:, 0] = own
        rows[:, 1:] = np.where(first, neighbours, PAD)
        shares = np.ones(rows.shape, dtype=np.float32)
        shares[:, 1:] = np.array([k / fanout for k in range(fanout + 1)], dtype=np.float32)[times]
        half = np.full(rows.shape, width, dtype=np.int32)
        half[:, 0] = 0
        chosen = self._own[rows.ravel()]
        sizes = np.diff(chosen.indptr)
        chosen.data *= np.repeat(shares.ravel(), sizes)
        chosen.indices += np.repeat(half.ravel(), sizes)
        return SparseMatrix(
            chosen.indptr[:: 1 + fanout],
            chosen.indices,
            chosen.data,
            (len(own), 2 * width),
            self._device,
        )

    @cached_property
    def _own(self) -> sp.csr_matrix:
        """X and a row of zeros, which PAD finds: it is −1."""
        x = self._features
        ends = np.append(x.indptr, x.indptr[-1])
        return sp.csr_matrix((x.data, x.indices, ends), shape=(x.shape[0] + 1, x.shape[1]))
