"""The interface of the classifiers of this package: logits of sampled trees, and of all nodes of a
graph.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.graph import Graph
from feddep.graph.sampling import SampledTrees
from feddep.nn.dropout import drop
from feddep.nn.sparse import SparseMatrix

_MANY = 2**25
"""Embeddings of so many numbers, 128 MiB, are not held at once where no gradient is needed."""
_COLUMNS = 16
"""Coordinates of embeddings that are held then."""


Terms = Sequence[tuple[int, bool]]
"""For each term t of a :class:`Convolution`, the first row of W_t in its weight matrix, and whether
x W_t is aggregated.
"""


class Convolution(nn.Module):
    """A layer whose outputs are Σ_t Â (x W_t) + b over its terms t, some of them without Â.

    ``weight`` holds the W_t, each of shape (inputs, outputs), one below the other.
    """

    weight: nn.Parameter
    bias: nn.Parameter

    @property
    def terms(self) -> Terms:
        """Its terms, the aggregated ones first."""
        raise NotImplementedError

    @property
    def maps(self) -> list[Tensor]:
        """W_t of each term."""
        inputs = self.weight.shape[0] // len(self.terms)
        return [self.weight[first : first + inputs] for first, _ in self.terms]

    def combined(self, mapped: Iterator[Tensor], adjacency: SparseMatrix) -> Tensor:
        """The outputs without the bias, from the products x W_t: in place and one after the other,
        so that of all that is as large as the result no more than two are held at once.
        """
        total = None
        for each, (_, aggregated) in zip(mapped, self.terms, strict=True):
            outputs = adjacency @ each if aggregated else each
            total = outputs if total is None else total.add_(outputs)
        assert total is not None
        return total

    def full(self, x: Any, adjacency: SparseMatrix) -> Tensor:
        """Outputs of all nodes, shape (n, outputs), from their inputs, shape (n, inputs), and full
        neighbourhoods.
        """
        return self.combined((x @ each for each in self.maps), adjacency).add_(self.bias)


def is_convolution(layer: nn.Module) -> bool:
    """Whether a layer is computed as a :class:`Convolution` is."""
    return getattr(type(layer), "full", None) is Convolution.full


class LayeredClassifier(nn.Module, ABC):
    """L layers, of which the last gives one logit a class; what it reads is a node's embedding.

    Attributes:
        layers: the layers, each with a weight matrix Wᵀ, shape (·, outputs), and a method ``full``
            from the inputs of all nodes and the matrix of :meth:`aggregation` to their outputs.
        dropout: share of a layer's outputs that is dropped.
    """

    def __init__(self, layers: Sequence[nn.Module], dropout: float, name: str = "layer") -> None:
        """Take the layers, whose weights are called by ``name`` and number."""
        super().__init__()
        self.layers: list[Any] = list(layers)
        for k, layer in enumerate(layers):
            self.add_module(f"{name}{k}", layer)
        self.dropout = dropout

    @staticmethod
    @abstractmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The matrix that :meth:`full` aggregates with, shape (n, n)."""

    @property
    def output_widths(self) -> list[int]:
        """Width of the outputs of each layer."""
        return [layer.weight.shape[1] for layer in self.layers]

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        for layer in self.layers:
            layer.reset_parameters(generator)

    @abstractmethod
    def forward(
        self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of the roots of B sampled trees of L hops, shape (B, C).

        Args:
            trees: the sampled neighbourhoods.
            table: inputs of the nodes of the graph that they were drawn from, such as a
                :class:`feddep.nn.feature_table.FeatureTable`.
            generator: source of the dropout masks; none means no dropout.
        """

    def full(
        self,
        x: Any,
        adjacency: SparseMatrix,
        z: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits of all nodes from their full neighbourhoods, shape (n, C).

        Args:
            x: features of all nodes, shape (n, F).
            adjacency: the matrix of :meth:`aggregation`.
            z: mended embeddings of all nodes, shape (n, d_z), for an embedding-fused classifier;
                none means zero.
            generator: source of the dropout masks; none means no dropout.
        """
        if (
            len(self.layers) == 2
            and all(map(is_convolution, self.layers))
            and type(self).head is LayeredClassifier.head
            and generator is None
            and not torch.is_grad_enabled()
            and adjacency.shape[0] * self.output_widths[0] > _MANY
        ):
            return self._full_by_columns(x, adjacency, z)
        return self.head(self.body(x, adjacency, z, generator), adjacency, z)

    def _full_by_columns(self, x: Any, adjacency: SparseMatrix, z: Tensor | None) -> Tensor:
        """:meth:`full` of two layers without holding all embeddings, to rounding: an embedding's
        coordinates are added up in another order.
        """
        first, last = self.layers
        mapped = [each.new_zeros(adjacency.shape[0], each.shape[1]) for each in last.maps]
        for columns in torch.arange(first.weight.shape[1]).split(_COLUMNS):
            parts = (x @ each[:, columns] for each in first.maps)
            hidden = first.combined(parts, adjacency).add_(first.bias[columns])
            hidden = self._complete_full(0, hidden, z, columns).relu_()
            for total, each in zip(mapped, last.maps, strict=True):
                total.addmm_(hidden, each[columns])
        outputs = last.combined(iter(mapped), adjacency).add_(last.bias)
        return self._complete_full(1, outputs, z)

    def body(
        self,
        x: Any,
        adjacency: SparseMatrix,
        z: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        """Embeddings of all nodes, the inputs of the last layer, after ReLU and dropout, shape (n,
        H); the arguments are those of :meth:`full`.  A single layer reads the features.
        """
        hidden = x
        for k, layer in enumerate(self.layers[:-1]):
            outputs = self._complete_full(k, layer.full(hidden, adjacency), z)
            hidden = drop(outputs.relu_(), self.dropout, generator)
        return hidden

    def head(self, hidden: Any, adjacency: SparseMatrix, z: Tensor | None = None) -> Tensor:
        """Logits of all nodes, shape (n, C), from their embeddings."""
        last = self.layers[-1]
        return self._complete_full(len(self.layers) - 1, last.full(hidden, adjacency), z)

    def _complete_full(
        self, k: int, hidden: Tensor, z: Tensor | None, columns: Any = slice(None)
    ) -> Tensor:
        """The outputs of layer k at all nodes, or some ``columns`` of them, shape (n, H)."""
        return hidden

    def _complete_outputs(self, k: int, hidden: Tensor, trees: SampledTrees, table: Any) -> Tensor:
        """The outputs of layer k at the tree nodes before the last hop, shape (B · P, H)."""
        return hidden
