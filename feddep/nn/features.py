"""Node features as the first layer of a GraphSAGE wants them: [own ‖ mean of the drawn neighbours]."""

import numpy as np
import scipy.sparse as sp
import torch

from feddep.nn.sparse import SparseMatrix
from feddep.sampling import NOBODY


class FeatureTable:
    """Looks up, for a sampled node v with drawn neighbours u₁ … u_d, the row [x_v ‖ (x_{u₁} + … + x_{u_d}) / d].

    Features stay sparse: a lookup selects rows of one tall matrix, in which a node's features stand once for the node
    itself and once for each number of times k that it may have been drawn, multiplied by k / d, and merges them to one
    row, which in CSR form only drops row boundaries.  So aggregation and projection by the first layer's weights are one
    sparse product, and no dense row of features is ever made.  (With one non-zero in ten, as in PubMed, the sparse
    product is still the faster one; benchmarks/README.md.)
    """

    def __init__(self, features: sp.csr_matrix, fanout: int, device: torch.device | str = "cpu") -> None:
        """Prepare the lookup.

        Args:
            features: node features X, float32 CSR, shape (n, F).
            fanout: number d of neighbours that are drawn for each node.
            device: where the rows are wanted.
        """
        self._num_nodes, self._num_features = features.shape
        self._places = 1 + fanout
        self._nobody = self._num_nodes * self._places
        self._device = device
        times = sp.vstack([features * (k / fanout) for k in range(1, fanout + 1)], format="csr")
        nobody = sp.csr_matrix((1, 2 * self._num_features))
        self._tall = sp.vstack([sp.block_diag([features, times]), nobody], format="csr", dtype=np.float32)

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> SparseMatrix:
        """[x_v ‖ mean x_u], shape (R, 2F); the second half is zero where v has no neighbours, all where v is nobody.

        Args:
            own: node ids v, int32, shape (R,).
            neighbours: ids of the drawn neighbours, int32, shape (R, d).
        """
        # Nodes of few neighbours draw the same ones again and again: each is looked up once, with its number of times.
        same = neighbours[:, :, None] == neighbours[:, None, :]
        times = same.sum(axis=2, dtype=np.int32)
        first = same.argmax(axis=2) == np.arange(self._places - 1)
        rows = np.empty((len(own), self._places), dtype=np.int32)
        rows[:, 0] = np.where(own == NOBODY, self._nobody, own)
        rows[:, 1:] = np.where(first & (neighbours != NOBODY), neighbours + self._num_nodes * times, self._nobody)
        chosen = self._tall[rows.ravel()]
        shape = (len(own), 2 * self._num_features)
        return SparseMatrix(chosen.indptr[:: self._places], chosen.indices, chosen.data, shape, self._device)
