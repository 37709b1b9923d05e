"""Classifiers of smoothed features X, ÂX, …, Â^K X, where Â is that of a GCN and K the number of
layers: SGC and GAMLP.

As Â^k X W = Â^k (X W), features are mapped before they are smoothed: X stays sparse.
"""

import itertools
from abc import abstractmethod
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.graph import Graph, normalised_adjacency
from feddep.graph.sampling import SampledTrees
from feddep.nn.dropout import drop
from feddep.nn.encoders import GCNLayer, NodeLayer, neighbourhood_sum, rows_of_trees
from feddep.nn.layered import LayeredClassifier
from feddep.nn.linear import draw_uniform
from feddep.nn.sparse import SparseMatrix


class SmoothingLayer(GCNLayer):
    """A layer that reads X and its smoothed forms."""

    def __init__(self, inputs: int, outputs: int, hops: int) -> None:
        """Set up a layer of K = ``hops``."""
        super().__init__(inputs, outputs)
        self.hops = hops

    def mapped(self, x: Any) -> Tensor:
        """What is smoothed of n nodes, shape (n, ·), from their features, (n, F)."""
        return x @ self.weight

    @abstractmethod
    def combine(self, smoothed: list[Tensor]) -> Tensor:
        """Outputs of n nodes, shape (n, outputs), from what is mapped and smoothed 0 … K times."""

    def full(self, x: Any, adjacency: SparseMatrix) -> Tensor:
        smoothed = [self.mapped(x)]
        for _ in range(self.hops):
            smoothed.append(adjacency @ smoothed[-1])
        return self.combine(smoothed)


class SGCLayer(SmoothingLayer):
    """Â^K X W + b (Wu et al., 2019)."""

    def combine(self, smoothed: list[Tensor]) -> Tensor:
        return smoothed[-1] + self.bias


class GAMLPLayer(SmoothingLayer):
    """Σ_k w_vk (Â^k X)_v W + b with attention over hops (Zhang et al., 2022, in the form of
    FedGTA's code): w_v = softmax over k of sigmoid(aᵀ [X_v ‖ … ‖ (Â^K X)_v ‖ (Â^k X)_v] + c).

    There a node is weighed by other nodes' scores, which are stacked hop by hop and read node by
    node.
    """

    def __init__(self, inputs: int, outputs: int, hops: int) -> None:
        super().__init__(inputs, outputs, hops)
        self.attention = nn.Parameter(torch.empty(inputs, hops + 2))  # the parts of a in columns
        self.attention_bias = nn.Parameter(torch.empty(1))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw W as every layer does, and a as a linear map of its inputs."""
        super().reset_parameters(generator)
        draw_uniform((self.attention, self.attention_bias), self.attention.numel(), generator)

    def mapped(self, x: Any) -> Tensor:
        return x @ torch.cat([self.weight, self.attention], dim=1)

    def combine(self, smoothed: list[Tensor]) -> Tensor:
        widths = [self.weight.shape[1], self.hops + 2]
        outputs, parts = torch.stack(smoothed, dim=1).split(widths, dim=2)
        of_all = parts[..., :-1].diagonal(dim1=1, dim2=2).sum(dim=1, keepdim=True)
        scores = (of_all + parts[..., -1] + self.attention_bias).sigmoid()
        return (scores.softmax(dim=1).unsqueeze(2) * outputs).sum(dim=1) + self.bias


class SmoothedClassifier(LayeredClassifier):
    """A smoothing layer, and layers of nodes alone behind it."""

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        return normalised_adjacency(graph)

    def forward(
        self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of the roots of B sampled trees, shape (B, C); their hops are smoothed as those of
        a GCN.
        """
        first, *others = self.layers
        hidden = rows_of_trees(trees, lambda nodes: first.mapped(table.own(nodes)))
        smoothed = [hidden[:, 0]]
        while trees.fanouts:
            hidden = neighbourhood_sum(*trees.split(hidden), *trees.split(trees.nodes), table)
            smoothed.append(hidden[:, 0])
            trees = trees.inner
        hidden = first.combine(smoothed)
        for layer in others:
            hidden = drop(hidden.relu(), self.dropout, generator) @ layer.weight + layer.bias
        return hidden


class SGC(SmoothedClassifier):
    """A linear model of features that are smoothed as often as it has layers."""

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up the layer; the arguments are those of :class:`feddep.nn.sage.GraphSAGE`, of which
        ``hidden`` and ``dropout`` have no effect.
        """
        super().__init__([SGCLayer(features, classes, layers)], dropout)


class GAMLP(SmoothedClassifier):
    """An MLP of a mean of features over hops, which each node weighs for itself; it has as many
    layers as hops.
    """

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up the layers; the arguments are those of :class:`feddep.nn.sage.GraphSAGE`."""
        widths = [*[hidden] * (layers - 1), classes]
        others = [NodeLayer(*pair) for pair in itertools.pairwise(widths)]
        super().__init__([GAMLPLayer(features, widths[0], layers), *others], dropout)
