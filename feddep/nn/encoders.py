"""The classifiers that a setting can name: GraphSAGE, also with self-loops, GCN, GAT and an MLP.

All read sampled trees and the same table of inputs in a mini-batch, and full neighbourhoods where
they are evaluated.  Between their layers are ReLU and dropout.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, leaky_relu

from feddep.graph.graph import Graph, mean_adjacency_with_self_loops, normalised_adjacency
from feddep.graph.sampling import PAD, SampledTrees
from feddep.nn.dropout import drop
from feddep.nn.encoder_names import encoder_class
from feddep.nn.layered import Convolution, LayeredClassifier, Terms
from feddep.nn.linear import draw_uniform
from feddep.nn.pyg_models import PyGClassifier, new_classifier
from feddep.nn.sparse import SparseMatrix

HEADS = 4
"""Attention heads of a hidden GAT layer, whose outputs are joined; the last layer has one."""
_SLOPE = 0.2
"""Negative slope of the LeakyReLU in attention scores (Veličković et al., 2018)."""


class Layer(Convolution, ABC):
    """A linear map of every node, and an aggregation of what it gives over a node and its
    neighbours.

    ``weight`` holds Wᵀ, shape (inputs, outputs).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw W uniformly from ±√(6 / (inputs + outputs)) (Glorot and Bengio, 2010); the bias
        starts at 0.
        """
        bound = math.sqrt(6 / sum(self.weight.shape))
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)

    @abstractmethod
    def sampled(
        self, own: Tensor, drawn: Tensor, nodes: np.ndarray, neighbours: np.ndarray, table: Any
    ) -> Tensor:
        """Aggregate in sampled trees, shape (B, P, outputs).

        Args:
            own: mapped inputs of P tree nodes, shape (B, P, outputs).
            drawn: those of the f neighbours drawn for each, shape (B, P, f, outputs).
            nodes: the ids of the tree nodes, shape (B, P).
            neighbours: those of the drawn neighbours, shape (B, P, f).
            table: tells degrees.
        """


def rows_of_trees(trees: SampledTrees, mapped: Callable[[np.ndarray], Tensor]) -> Tensor:
    """A row of numbers for each place in the trees, of shape (B, nodes of a tree, ·), where
    ``mapped`` computes those of nodes, shape (n, ·), each of which it is asked for once.
    """
    nodes, index_of = np.unique(trees.nodes, return_inverse=True)
    rows = mapped(nodes)
    index = torch.from_numpy(index_of.reshape(trees.nodes.shape)).to(rows.device)
    return embedding(index, rows)


def neighbourhood_sum(
    own: Tensor, drawn: Tensor, nodes: np.ndarray, neighbours: np.ndarray, table: Any
) -> Tensor:
    """An unbiased estimate of what a :class:`GCNLayer` sums up: each of the f drawn neighbours of v
    stands for D_v / f of them.  Arguments and shape are those of :meth:`Layer.sampled`.
    """
    degrees = table.degrees(nodes)
    each = (
        degrees[..., None]
        / neighbours.shape[-1]
        / np.sqrt((degrees[..., None] + 1) * (table.degrees(neighbours) + 1))
    )
    of_drawn = torch.from_numpy(np.where(neighbours == PAD, 0, each).astype(np.float32)).to(
        own.device
    )
    of_own = torch.from_numpy((1 / (degrees + 1)).astype(np.float32)).to(own.device)
    return of_own.unsqueeze(2) * own + (of_drawn.unsqueeze(2) @ drawn).squeeze(2)


class GCNLayer(Layer):
    """D̂^(−1/2) (A + I) D̂^(−1/2) X W + b with D̂ = D + I (Kipf and Welling, 2017)."""

    def sampled(
        self, own: Tensor, drawn: Tensor, nodes: np.ndarray, neighbours: np.ndarray, table: Any
    ) -> Tensor:
        return neighbourhood_sum(own, drawn, nodes, neighbours, table) + self.bias

    @property
    def terms(self) -> Terms:
        return ((0, True),)


class GATLayer(Layer):
    """Attention over a node and its neighbours (Veličković et al., 2018, Equations 1 to 4); the
    heads' outputs are joined.
    """

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__(inputs, outputs)
        self.heads = heads
        self.source = nn.Parameter(torch.empty(heads, outputs // heads))
        self.target = nn.Parameter(torch.empty(heads, outputs // heads))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw W as every layer does, and both halves of the attention vector likewise."""
        super().reset_parameters(generator)
        draw_uniform((self.source, self.target), self.source.shape[1], generator)

    def _split(self, mapped: Tensor) -> Tensor:
        return mapped.view(*mapped.shape[:-1], self.heads, -1)

    def sampled(
        self, own: Tensor, drawn: Tensor, nodes: np.ndarray, neighbours: np.ndarray, table: Any
    ) -> Tensor:
        """Attention over v and those of its neighbours that were drawn; one that was drawn several
        times is one node.
        """
        split = self._split(torch.cat([own.unsqueeze(2), drawn], dim=2))
        scores = leaky_relu(
            (split * self.source).sum(-1) + (split[:, :, :1] * self.target).sum(-1), _SLOPE
        )
        repeated = np.tril(neighbours[..., :, None] == neighbours[..., None, :], -1).any(axis=-1)
        left_out = np.concatenate(
            [np.zeros((*nodes.shape, 1), dtype=bool), repeated | (neighbours == PAD)], axis=-1
        )
        scores = scores.masked_fill(
            torch.from_numpy(left_out).to(own.device).unsqueeze(3), -torch.inf
        )
        return (scores.softmax(dim=2).unsqueeze(4) * split).sum(dim=2).flatten(2) + self.bias

    def full(self, x: Any, adjacency: SparseMatrix) -> Tensor:
        """Attention over all neighbours; ``adjacency`` says which they are, and its values are not
        read.
        """
        split, (rows, columns) = self._split(x @ self.weight), adjacency.entries()
        scores = leaky_relu(
            (split * self.source).sum(-1)[columns] + (split * self.target).sum(-1)[rows], _SLOPE
        )
        index = rows.unsqueeze(1).expand_as(scores)
        largest = scores.new_full((len(split), self.heads), -torch.inf).scatter_reduce(
            0, index, scores.detach(), "amax"
        )
        weights = (scores - largest[rows]).exp()
        total = torch.zeros_like(largest).index_add(0, rows, weights)
        shares = (weights / total[rows]).unsqueeze(2)
        return (
            torch.zeros_like(split).index_add(0, rows, shares * split[columns]).flatten(1)
            + self.bias
        )


class NodeLayer(Layer):
    """A linear map of the node alone."""

    def sampled(
        self, own: Tensor, drawn: Tensor, nodes: np.ndarray, neighbours: np.ndarray, table: Any
    ) -> Tensor:
        return own + self.bias

    @property
    def terms(self) -> Terms:
        return ((0, False),)


class LayeredEncoder(LayeredClassifier):
    """L layers of one kind; the last layer's outputs are the logits."""

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up the layers; the arguments are those of :class:`feddep.nn.sage.GraphSAGE`."""
        widths = [features, *[hidden] * (layers - 1), classes]
        pairs = enumerate(itertools.pairwise(widths), start=1)
        super().__init__([self.new_layer(*pair, k == layers) for k, pair in pairs], dropout)

    @staticmethod
    def new_layer(inputs: int, outputs: int, last: bool) -> Layer:
        """A layer of these widths; ``last`` says whether it gives the logits."""
        return NodeLayer(inputs, outputs)

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        return mean_adjacency_with_self_loops(graph)

    def forward(
        self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of the roots of B sampled trees of L hops, shape (B, C); the arguments are those
        of GraphSAGE.
        """
        hidden = rows_of_trees(trees, lambda nodes: table.own(nodes) @ self.layers[0].weight)
        for k, layer in enumerate(self.layers):
            if k:
                hidden = (
                    drop(hidden.relu(), self.dropout, generator).view(*trees.nodes.shape, -1)
                    @ layer.weight
                )
            outputs = layer.sampled(*trees.split(hidden), *trees.split(trees.nodes), table).flatten(
                0, 1
            )
            hidden = self._complete_outputs(k, outputs, trees, table)
            trees = trees.inner
        return hidden


class MLP(LayeredEncoder):
    """L linear maps of a node's own features."""


class GCN(LayeredEncoder):
    """Graph convolutional network."""

    @staticmethod
    def new_layer(inputs: int, outputs: int, last: bool) -> Layer:
        return GCNLayer(inputs, outputs)

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        return normalised_adjacency(graph)


class GAT(LayeredEncoder):
    """Graph attention network."""

    @staticmethod
    def new_layer(inputs: int, outputs: int, last: bool) -> Layer:
        """Several heads, whose outputs are joined, or in the last layer one."""
        return GATLayer(inputs, outputs, 1 if last or outputs % HEADS else HEADS)


Encoder = LayeredClassifier | PyGClassifier
"""A classifier that reads features and edges, and nothing else."""


def new_encoder(name: str, *sizes: Any) -> Any:
    """An encoder without weights yet; ``sizes`` are the arguments of
    :class:`feddep.nn.sage.GraphSAGE`.

    A class with a method ``full`` reads sampled trees itself, as GraphSAGE does; any other is for a
    :class:`feddep.nn.pyg_models.PyGClassifier`.

    Raises:
        ConfigError: if a dotted name cannot be imported, or is no such model.
    """
    made = encoder_class(name)
    return made(*sizes) if hasattr(made, "full") else new_classifier(name, made, *sizes)
