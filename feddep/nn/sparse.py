"""Constant matrices whose product with a dense one is fast, differentiable and the same on every
run.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph.graph import Graph, mean_adjacency
from feddep.utils.errors import DataError


class ConstantMatrix(ABC):
    """A constant matrix A; ``A @ W`` is a dense tensor, differentiable in W."""

    @abstractmethod
    def multiply(self, dense: Tensor) -> Tensor:
        """A @ dense, without a gradient; shape (rows, dense.shape[1])."""

    @abstractmethod
    def multiply_transposed(self, dense: Tensor) -> Tensor:
        """Aᵀ @ dense, without a gradient; shape (columns, dense.shape[1])."""

    def __matmul__(self, dense: Tensor) -> Tensor:
        """A @ dense; gradients flow to ``dense``."""
        if not torch.is_grad_enabled():
            return self.multiply(dense)
        return _Product.apply(self, dense)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: ConstantMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix.multiply(dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.multiply_transposed(gradient)


class SparseMatrix(ConstantMatrix):
    """A constant matrix in compressed sparse row (CSR) form, on a ``device``.

    The product is one ``embedding_bag``: row i of the result is the weighted sum of the rows of W
    that row i of A names.  Its gradient, Aᵀ G, is the same operation on the transpose, which is
    built only when it is needed. PyTorch's own gradient of ``embedding_bag`` is several times
    slower on a CPU (benchmarks/README.md).
    """

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        shape: tuple[int, int],
        device: torch.device | str = "cpu",
        symmetric: bool = False,
    ) -> None:
        """Wrap the three arrays of a CSR matrix, int32, int32 and float32; column indices that
        repeat within a row add up.

        Where A is said to be ``symmetric``, no transpose is built.
        """
        self.shape = shape
        self._symmetric = symmetric
        self._arrays = (values, indices, indptr)
        self.device = device
        self._offsets, self._indices, self._values = map(
            self._tensor, (indptr[:-1], indices, values)
        )

    @classmethod
    def blocks(
        cls,
        matrices: Sequence["SparseMatrix"],
        rows: Sequence[int],
        columns: Sequence[int],
        shape: tuple[int, int],
    ) -> "SparseMatrix":
        """A matrix of zeros but for blocks, one below the other: the i-th begins at row
        ``rows[i]`` and column ``columns[i]``.
        """
        if len(matrices) == 1 and matrices[0].shape == shape:
            return matrices[0]
        values, indices, indptrs = zip(*(matrix._arrays for matrix in matrices), strict=True)
        sizes = np.zeros(shape[0] + 1, dtype=np.int64)
        for indptr, row in zip(indptrs, rows, strict=True):
            sizes[row + 1 : row + len(indptr)] = np.diff(indptr)
        moved = [each + column for each, column in zip(indices, columns, strict=True)]
        entries = np.concatenate(values), np.concatenate(moved), np.cumsum(sizes)
        return cls.from_scipy(sp.csr_matrix(entries, shape=shape), matrices[0].device)

    def rows(self, nodes: np.ndarray) -> "SparseMatrix":
        """The rows of k nodes, shape (k, columns)."""
        chosen = self._csr[nodes]
        return SparseMatrix.from_scipy(chosen, self.device)

    def _tensor(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor if self.device == "cpu" else tensor.to(self.device)

    @classmethod
    def from_scipy(
        cls, matrix: sp.csr_matrix, device: torch.device | str = "cpu"
    ) -> "SparseMatrix":
        """The same matrix.

        Raises:
            DataError: if it has more than 2³¹ − 1 entries, which are numbered by int32.
        """
        if matrix.indptr[-1] >= 2**31:
            raise DataError(
                f"a matrix of shape {matrix.shape} has {matrix.indptr[-1]} entries; features and "
                f"neighbours may have {2**31 - 1} each"
            )
        indptr = matrix.indptr.astype(np.int32, copy=False)
        indices = matrix.indices.astype(np.int32, copy=False)
        return cls(
            indptr, indices, matrix.data.astype(np.float32, copy=False), matrix.shape, device
        )

    @property
    def nnz(self) -> int:
        """Number of entries that are stored."""
        return len(self._values)

    @cached_property
    def _csr(self) -> sp.csr_matrix:
        return sp.csr_matrix(self._arrays, shape=self.shape)

    def dense(self) -> Tensor:
        """The matrix with its zeros."""
        return self._tensor(self._csr.toarray())

    def entries(self) -> tuple[Tensor, Tensor]:
        """Row and column of each entry, int64, shape (nnz,) each."""
        _, indices, indptr = self._arrays
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return self._tensor(rows), self._tensor(indices.astype(np.int64))

    @cached_property
    def _transposed(self) -> "SparseMatrix":
        """The transpose, kept: where all nodes are trained on at once, every step needs it."""
        return self.transpose()

    def transpose(self) -> "SparseMatrix":
        columns = self._csr.tocsc()
        return SparseMatrix(
            columns.indptr, columns.indices, columns.data, self.shape[::-1], self.device
        )

    def multiply(self, dense: Tensor) -> Tensor:
        dense = dense.detach()
        if dense.is_cpu and dense.stride(1) != 1:
            # A transpose, of which embedding_bag has a slow kernel only. SciPy's adds up in the
            # same order with the same rounding, in a third of the time.
            return torch.from_numpy(self._csr @ dense.numpy())
        return torch.embedding_bag(
            dense, self._indices, self._offsets, mode=0, per_sample_weights=self._values
        )[0]

    def multiply_transposed(self, dense: Tensor) -> Tensor:
        return (self if self._symmetric else self._transposed).multiply(dense)


def graph_matrices(
    graph: Graph, device: torch.device | str = "cpu"
) -> tuple[SparseMatrix, SparseMatrix]:
    """Inputs of convolutions of all nodes with all their neighbours: features, shape (n, F), and
    mean adjacency, (n, n).
    """
    return SparseMatrix.from_scipy(graph.features, device), SparseMatrix.from_scipy(
        mean_adjacency(graph), device
    )
