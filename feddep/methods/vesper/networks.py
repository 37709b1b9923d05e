"""The perceptron that encodes features at A, and the decoders at B, from the embeddings of L layers
to a class (Section 2.5).
"""

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, selu

from feddep.nn.dropout import drop
from feddep.nn.linear import Linear, draw_uniform
from feddep.nn.sparse import ConstantMatrix, SparseMatrix

_DENSE = 0.25
"""Share of entries that are not zero from which on the dense product is the faster one."""


class NormalisedSELU(nn.BatchNorm1d):
    """Batch normalisation, then SELU; by the statistics of the batch where gradients are computed,
    else by the running ones.
    """

    def forward(self, x: Tensor) -> Tensor:
        self.training = torch.is_grad_enabled()
        return selu(super().forward(x))


class Perceptron(nn.Module):
    """Linear maps of the given widths, with ReLU and dropout between them; ReLU after the last only
    with ``relu_last``.

    With ``selu``, :class:`NormalisedSELU` takes the place of ReLU between them.
    """

    def __init__(
        self,
        widths: Sequence[int],
        dropout: float = 0.0,
        relu_last: bool = False,
        selu: bool = False,
    ) -> None:
        super().__init__()
        self.between = nn.ModuleList(
            NormalisedSELU(width) if selu else nn.ReLU() for width in widths[1:-1]
        )
        self.maps = [Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(widths)]
        for k, each in enumerate(self.maps):
            self.add_module(f"map{k}", each)
        self.dropout = dropout
        self.relu_last = relu_last

    def reset_parameters(self, generator: torch.Generator) -> None:
        for each in self.maps:
            each.reset_parameters(generator)

    def forward(
        self, x: Tensor | ConstantMatrix, generator: torch.Generator | None = None
    ) -> Tensor:
        """From rows of inputs, shape (R, widths[0]), to shape (R, widths[−1]); no dropout without a
        generator.
        """
        first, *rest = self.maps
        hidden = x @ first.weight.T + first.bias
        for activation, each in zip(self.between, rest, strict=True):
            hidden = each(drop(activation(hidden), self.dropout, generator))
        return hidden.relu() if self.relu_last else hidden


def feature_rows(
    features: sp.csr_matrix, nodes: np.ndarray, device: torch.device | str = "cpu"
) -> Tensor | SparseMatrix:
    """The rows of some nodes in a feature matrix, shape (n, F): as a sparse matrix, or dense where
    few entries are zero.
    """
    rows = features[nodes]
    if rows.nnz < _DENSE * len(nodes) * features.shape[1]:
        return SparseMatrix.from_scipy(rows, device)
    return torch.from_numpy(rows.toarray()).to(device)


class ConcatDecoder(nn.Module):
    """The CONCAT decoder: the embeddings of all layers side by side, followed by a perceptron."""

    def __init__(self, width: int, layers: int, classes: int, maps: int, dropout: float) -> None:
        """Set up the decoder of L = ``layers`` embeddings of width d, with so many linear ``maps``,
        hidden ones of width d.
        """
        super().__init__()
        self.perceptron = Perceptron([layers * width, *[width] * (maps - 1), classes], dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.perceptron.reset_parameters(generator)

    def forward(self, embeddings: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Logits, shape (B, C), from embeddings, shape (B, L, d); no dropout without a
        generator.
        """
        return self.perceptron(embeddings.flatten(1), generator)


class GRUDecoder(nn.Module):
    """The GRU decoder: the embeddings are read as a sequence, layer 1 first; a perceptron follows
    the last state of width d.
    """

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


class HopDecoder(nn.Module):
    """The classifier of GAP's authors: the linear maps of all hops side by side, scaled to length
    1, then the head.

    The head, :class:`NormalisedSELU` and a linear map, is also what their encoder is trained with:
    it then reads encodings that are scaled to length 1.
    """

    def __init__(self, width: int, hops: int, classes: int, dropout: float, mapped: bool) -> None:
        """Set up the decoder of ``hops`` embeddings of width d, each through a map of its own if
        they are ``mapped``.
        """
        super().__init__()
        self.maps = nn.ModuleList(Linear(width, width) for _ in range(hops if mapped else 0))
        self.between, self.head = NormalisedSELU(hops * width), Linear(hops * width, classes)
        self.dropout = dropout

    def reset_parameters(self, generator: torch.Generator) -> None:
        for each in [*self.maps, self.head]:
            each.reset_parameters(generator)  # type: ignore[operator]

    def forward(self, embeddings: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """As :meth:`ConcatDecoder.forward`."""
        if self.maps:
            embeddings = torch.stack(
                [each(x) for each, x in zip(self.maps, embeddings.unbind(1), strict=True)], dim=1
            )
        hidden = self.between(normalize(embeddings.flatten(1)))
        return self.head(drop(hidden, self.dropout, generator))  # type: ignore[no-any-return]
