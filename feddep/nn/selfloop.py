"""GraphSAGE with self-loops: a node counts among its neighbours (the layers of FedDEP's classifier,
Section 3.1, without z̄).

    x⁰_v = σ(W⁰ x_v),    x^k_v = σ(W^k · mean {x^{k−1}_u : u ∈ G¹(v)}),  k = 1 … K

The one-hop ego-graph G¹(v) holds v itself and its neighbours, so a node counts like any one of
them.  σ is ReLU, with dropout behind it in training; after the last layer the softmax of the loss
takes its place.  In a mini-batch G¹(v) is v and those of its neighbours that were drawn; one that
was drawn several times is still one node.
"""

import itertools
import math
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from feddep.graph.graph import Graph, mean_adjacency_with_self_loops
from feddep.graph.sampling import PAD, SampledTrees
from feddep.nn.dropout import drop
from feddep.nn.layered import LayeredClassifier
from feddep.nn.sparse import SparseMatrix

Initial = Literal["he", "uniform"]
"""Initial weights: uniform in ±√(6/inputs), as He et al. (2015) draw them for ReLU, or in
±1/√inputs, as for any linear map.
"""


class MatrixLayer(nn.Module):
    """W x̄_v without a bias; ``weight`` holds Wᵀ, its first rows for x̄_v, shape (inputs,
    outputs).
    """

    def __init__(self, inputs: int, outputs: int, more: int = 0) -> None:
        """Set up the layer; a subclass may have ``more`` rows for other inputs."""
        super().__init__()
        self.inputs = inputs
        self.weight = nn.Parameter(torch.empty(inputs + more, outputs))

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw the rows for x̄_v anew."""
        bound = math.sqrt((6 if initial == "he" else 1) / self.inputs)
        nn.init.uniform_(self.weight.detach()[: self.inputs], -bound, bound, generator=generator)

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """Shape (R, outputs), from x̄ of shape (R, inputs)."""
        return x @ self.weight

    def linear_terms(self, x: Any) -> list[tuple[nn.Parameter, Any, int]]:
        """Parameters, what each is multiplied by, and its first row in that product; for the
        clipping of single examples.
        """
        return [(self.weight, x, 0)]


class SelfLoopSAGE(LayeredClassifier):
    """K layers with K + 1 weight matrices, as in the module's docstring."""

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up the layers; the arguments are those of :class:`feddep.nn.sage.GraphSAGE`."""
        widths = [features, *[hidden] * layers, classes]
        super().__init__([self.new_layer(*pair) for pair in itertools.pairwise(widths)], dropout)

    def new_layer(self, inputs: int, outputs: int) -> Any:
        """A layer of these widths."""
        return MatrixLayer(inputs, outputs)

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The matrix whose row v averages over v and all its neighbours."""
        return mean_adjacency_with_self_loops(graph)

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        for layer in self.layers:
            layer.reset_parameters(generator, initial)

    def forward(
        self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of the roots of B sampled trees of K hops, shape (B, C); the arguments are those
        of GraphSAGE.
        """
        # x⁰ is a function of the node alone: it is computed once for each node, however often it
        # occurs in the trees.
        nodes, index_of = np.unique(trees.nodes, return_inverse=True)
        initial = self._layer(0, table.own(nodes), nodes, table).relu()
        index = torch.from_numpy(index_of.reshape(trees.nodes.shape)).to(initial.device)
        hidden = drop(embedding(index, initial), self.dropout, generator)
        for k in range(1, len(self.layers)):
            own, drawn = trees.split(hidden)
            shares = torch.from_numpy(_shares(trees.split(trees.nodes)[1])).to(hidden.device)
            mean = shares[:, :, :1] * own + (shares[:, :, None, 1:] @ drawn).squeeze(2)
            trees = trees.inner
            hidden = self._layer(k, mean.flatten(0, 1), trees.nodes.ravel(), table)
            if k < len(self.layers) - 1:
                hidden = drop(hidden.relu(), self.dropout, generator).view(*trees.nodes.shape, -1)
        return hidden

    def _layer(self, k: int, x: Any, nodes: np.ndarray, table: Any) -> Tensor:
        """Layer k at some nodes of a mini-batch, shape (R, ·), from x̄, shape (R, ·)."""
        return self.layers[k](x)

    def body(
        self,
        x: Any,
        adjacency: SparseMatrix,
        z: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        hidden = self._full_layer(0, x, z)
        for k in range(1, len(self.layers) - 1):
            inputs = adjacency @ drop(hidden.relu(), self.dropout, generator)
            hidden = self._full_layer(k, inputs, z)
        return drop(hidden.relu(), self.dropout, generator)

    def head(self, hidden: Any, adjacency: SparseMatrix, z: Tensor | None = None) -> Tensor:
        return self._full_layer(len(self.layers) - 1, adjacency @ hidden, z)

    def _full_layer(self, k: int, x: Any, z: Tensor | None) -> Tensor:
        """Layer k at all nodes, shape (n, ·), from x̄, shape (n, ·)."""
        return self.layers[k](x)  # type: ignore[no-any-return]


def _shares(drawn: np.ndarray) -> np.ndarray:
    """Shares in the mean over {v} ∪ {drawn neighbours} as a set: v's own, then that of each draw;
    float32, shape (…, 1 + d).
    """
    times = (drawn[..., :, None] == drawn[..., None, :]).sum(axis=-1)
    each = np.where(drawn == PAD, 0, 1 / times)
    total = 1 + each.sum(axis=-1, keepdims=True)
    return np.concatenate([1 / total, each / total], axis=-1).astype(np.float32)
