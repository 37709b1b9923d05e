"""Multilayer perceptrons."""

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.nn.dropout import drop
from feddep.nn.linear import Linear
from feddep.nn.sparse import ConstantMatrix, SparseMatrix

_DENSE = 0.25
"""Share of entries that are not zero from which on the dense product is the faster one."""


class Perceptron(nn.Module):
    """Linear maps with ReLU and dropout between them."""

    def __init__(self, widths: Sequence[int], dropout: float = 0.0, relu_last: bool = False) -> None:
        """Set up the maps; call :meth:`reset_parameters` before use.

        Args:
            widths: numbers of inputs, of units of each hidden layer, and of outputs.
            dropout: probability that a hidden unit is set to zero in training.
            relu_last: whether ReLU follows the last map as well, so that no output is negative.
        """
        super().__init__()
        self.maps = [Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(widths)]
        for k, each in enumerate(self.maps):
            self.add_module(f"map{k}", each)
        self.dropout = dropout
        self.relu_last = relu_last

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        for each in self.maps:
            each.reset_parameters(generator)

    def forward(self, x: Tensor | ConstantMatrix, generator: torch.Generator | None = None) -> Tensor:
        """From rows of inputs, shape (R, widths[0]), to shape (R, widths[−1]); no dropout without a generator."""
        first, *rest = self.maps
        hidden = x @ first.weight.T + first.bias
        for each in rest:
            hidden = each(drop(hidden.relu(), self.dropout, generator))
        return hidden.relu() if self.relu_last else hidden


def feature_rows(features: sp.csr_matrix, nodes: np.ndarray, device: torch.device | str = "cpu") -> Tensor | SparseMatrix:
    """The rows of some nodes in a feature matrix, shape (n, F): as a sparse matrix, or dense where few entries are zero."""
    rows = features[nodes]
    if rows.nnz < _DENSE * len(nodes) * features.shape[1]:
        return SparseMatrix.from_scipy(rows, device)
    return torch.from_numpy(rows.toarray()).to(device)
