"""Node features as the first layer of a GraphSAGE wants them: [own ‖ mean of the drawn neighbours]."""

import numpy as np
import scipy.sparse as sp
import torch

from feddep.nn.sparse import SparseMatrix
from feddep.sampling import NOBODY


class FeatureTable:
    """Looks up, for a sampled node v with drawn neighbours u₁ … u_d, the row [x_v ‖ (x_{u₁} + … + x_{u_d}) / d].

    Features stay sparse: a lookup selects 1 + d rows of the stacked matrix [X, 0; 0, X/d; 0, 0] and merges them to
    one, which in CSR form only drops row boundaries.  So aggregation and projection by the first layer's weights are
    one sparse product, and no dense row of features is ever made.  (With one non-zero in ten, as in PubMed, the sparse
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
        self._fanout = fanout
        self._device = device
        nobody = sp.csr_matrix((1, 2 * self._num_features), dtype=np.float32)
        stacked = sp.vstack([sp.block_diag([features, features / fanout]), nobody], format="csr")
        self._stacked = stacked.astype(np.float32)

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> SparseMatrix:
        """[x_v ‖ mean x_u], shape (R, 2F); the second half is zero where v has no neighbours, all where v is nobody.

        Args:
            own: node ids v, int32, shape (R,).
            neighbours: ids of the drawn neighbours, int32, shape (R, d).
        """
        rows = np.concatenate([own[:, None], neighbours + np.int32(self._num_nodes)], axis=1)
        rows[:, 0][own == NOBODY] = 2 * self._num_nodes
        rows[:, 1:][neighbours == NOBODY] = 2 * self._num_nodes
        chosen = self._stacked[rows.ravel()]
        shape = (len(own), 2 * self._num_features)
        return SparseMatrix(chosen.indptr[:: 1 + self._fanout], chosen.indices, chosen.data, shape, self._device)
