"""Node features as the first layer of a GraphSAGE wants them: [own ‖ mean of the drawn neighbours]."""

import numpy as np
import scipy.sparse as sp
import torch

from feddep.graph.sampling import NOBODY
from feddep.nn.sparse import ConstantMatrix, SparseMatrix


class FeatureTable:
    """Looks up, for a sampled node v with drawn neighbours u₁ … u_d, the row [x_v ‖ (x_{u₁} + … + x_{u_d}) / d].

    Features stay sparse: a lookup selects rows of one tall matrix, in which a node's features stand once for the node
    itself and once for each number of times k that it may have been drawn, multiplied by k / d, and merges them to one
    row, which in CSR form only drops row boundaries.  So aggregation and projection by the first layer's weights are one
    sparse product, and no dense row of features is ever made.  (With one non-zero in ten, as in PubMed, the sparse
    product is still the faster one; benchmarks/README.md.)
    """

    def __init__(self, features: sp.csr_matrix, device: torch.device | str = "cpu", degrees: np.ndarray | None = None) -> None:
        """Prepare the lookup in X, float32 CSR, shape (n, F).

        ``device`` is where rows are wanted; ``degrees``, shape (n,), are wanted by some encoders only.
        """
        self._features = features
        self._device = str(device)
        self._degrees = degrees
        self._own: sp.csr_matrix | None = None
        self._tall: dict[int, sp.csr_matrix] = {}

    def degrees(self, nodes: np.ndarray) -> np.ndarray:
        """Degrees of the given nodes, of their shape; 0 for nobody."""
        assert self._degrees is not None  # given by whoever trains an encoder that reads them
        return np.where(nodes == NOBODY, 0, self._degrees[nodes])

    def own(self, nodes: np.ndarray) -> ConstantMatrix:
        """x_v of the given nodes, shape (R, F); zero for nobody."""
        if self._own is None:
            # NOBODY is −1 and so finds the last row, which is empty.
            nobody = sp.csr_matrix((1, self._features.shape[1]), dtype=np.float32)
            self._own = sp.vstack([self._features, nobody], format="csr")
        return SparseMatrix.from_scipy(self._own[nodes], self._device)

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> ConstantMatrix:
        """[x_v ‖ mean x_u], shape (R, 2F); the second half is zero where v has no neighbours, all where v is nobody.

        Args:
            own: node ids v, int32, shape (R,).
            neighbours: ids of the drawn neighbours, int32, shape (R, d).
        """
        (n, width), fanout = self._features.shape, neighbours.shape[1]
        nobody = n * (1 + fanout)
        # Nodes of few neighbours draw the same ones again and again: each is looked up once, with its number of times.
        same = neighbours[:, :, None] == neighbours[:, None, :]
        times = same.sum(axis=2, dtype=np.int32)
        first = same.argmax(axis=2) == np.arange(fanout)
        rows = np.empty((len(own), 1 + fanout), dtype=np.int32)
        rows[:, 0] = np.where(own == NOBODY, nobody, own)
        rows[:, 1:] = np.where(first & (neighbours != NOBODY), neighbours + n * times, nobody)
        chosen = self._tall_for(fanout)[rows.ravel()]
        return SparseMatrix(chosen.indptr[:: 1 + fanout], chosen.indices, chosen.data, (len(own), 2 * width), self._device)

    def _tall_for(self, fanout: int) -> sp.csr_matrix:
        """The matrix that rows are selected from, made when the first nodes with so many draws are looked up."""
        if fanout not in self._tall:
            features = self._features
            times = sp.vstack([features * (k / fanout) for k in range(1, fanout + 1)], format="csr")
            nobody = sp.csr_matrix((1, 2 * features.shape[1]))
            self._tall[fanout] = sp.vstack([sp.block_diag([features, times]), nobody], format="csr", dtype=np.float32)
        return self._tall[fanout]
