"""The node whose features are nearest to generated ones: exact, in blocks, with features left sparse."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.nn.sparse import SparseMatrix

_BLOCK = 2**22
"""At most so many scores, and so many numbers of the points, are held at once: 16 MiB of each."""


class Nearest:
    """Exact search for the row x_u that minimises ‖x̃ − x_u‖².

    What differs between candidates is ‖x_u‖² − 2 ⟨x̃, x_u⟩, and all inner products of a block of points are one sparse
    product, which costs one multiplication for each stored feature and point.
    """

    def __init__(self, features: sp.csr_matrix, device: str = "cpu") -> None:
        """Prepare the search.

        Args:
            features: the candidates x_u, CSR, shape (k, F), at least one.
            device: where points are.
        """
        self._features = features
        self._matrix = SparseMatrix.from_scipy(features, device)
        squares = np.asarray(features.multiply(features).sum(axis=1), dtype=np.float32).reshape(-1, 1)
        self._squares = torch.from_numpy(squares).to(device)
        self._device = device

    @torch.no_grad()
    def search(self, points: Tensor, allowed: np.ndarray | None = None) -> Tensor:
        """Position of the nearest candidate of each point, of equally near ones the first; int64, shape (g,).

        Args:
            points: shape (g, F).
            allowed: which candidates each point may have, at least one each, bool, shape (g, k); all without it.
        """
        rows = max(1, _BLOCK // max(self._features.shape))
        found = [torch.zeros(0, dtype=torch.int64, device=points.device)]
        for start in range(0, len(points), rows):
            block = slice(start, start + rows)
            scores = self._squares - 2 * self._matrix.multiply(points[block].T.contiguous())
            if allowed is not None:
                scores[torch.from_numpy(~allowed[block].T).to(scores.device)] = torch.inf
            found.append(scores.argmin(dim=0))
        return torch.cat(found)

    def nearest(self, points: Tensor, allowed: np.ndarray | None = None) -> Tensor:
        """x_u nearest to each point, shape (g, F); the arguments are those of :meth:`search`."""
        rows = self._features[self.search(points, allowed).cpu().numpy()]
        return torch.from_numpy(rows.toarray().astype(np.float32, copy=False)).to(self._device)
