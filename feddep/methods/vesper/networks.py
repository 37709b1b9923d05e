"""The perceptron that encodes features at A, and the decoders at B, from the embeddings of L layers to a class (Section 2.5)."""

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.nn.dropout import drop
from feddep.nn.linear import Linear, draw_uniform
from feddep.nn.sparse import ConstantMatrix, SparseMatrix

_DENSE = 0.25
"""Share of entries that are not zero from which on the dense product is the faster one."""


class Perceptron(nn.Module):
    """Linear maps of the given widths, with ReLU and dropout between them; ReLU after the last only with ``relu_last``."""

    def __init__(self, widths: Sequence[int], dropout: float = 0.0, relu_last: bool = False) -> None:
        super().__init__()
        self.maps = [Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(widths)]
        for k, each in enumerate(self.maps):
            self.add_module(f"map{k}", each)
        self.dropout = dropout
        self.relu_last = relu_last

    def reset_parameters(self, generator: torch.Generator) -> None:
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


class ConcatDecoder(nn.Module):
    """The CONCAT decoder: the embeddings of all layers side by side, followed by a perceptron."""

    def __init__(self, width: int, layers: int, classes: int, maps: int, dropout: float) -> None:
        """Set up the decoder of L = ``layers`` embeddings of width d, with so many linear ``maps``, hidden ones of width d."""
        super().__init__()
        self.perceptron = Perceptron([layers * width, *[width] * (maps - 1), classes], dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.perceptron.reset_parameters(generator)

    def forward(self, embeddings: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Logits, shape (B, C), from embeddings, shape (B, L, d); no dropout without a generator."""
        return self.perceptron(embeddings.flatten(1), generator)


class GRUDecoder(nn.Module):
    """The GRU decoder: the embeddings are read as a sequence, layer 1 first; a perceptron follows the last state of width d."""

    def __init__(self, width: int, classes: int, maps: int, dropout: float) -> None:
        super().__init__()
        self.gru = nn.GRU(width, width, batch_first=True)
        self.perceptron = Perceptron([*[width] * maps, classes], dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_uniform(self.gru.parameters(), self.gru.hidden_size, generator)
        self.perceptron.reset_parameters(generator)

    def forward(self, embeddings: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """As :meth:`ConcatDecoder.forward`."""
        _, state = self.gru(embeddings)
        return self.perceptron(state[0], generator)
