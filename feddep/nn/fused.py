"""Embedding-fused graph convolution: a classifier that reads generated embeddings of missing neighbours (FedDEP, Section 3.1).

Two layouts of it: :class:`FusedGNN` is the equation of the paper, :class:`Fusions` adds to another encoder what the authors' code
adds to GraphSAGE.
In both, a layer treats what it aggregates from real nodes and the mended embeddings z̄_v with separate weights (Statement
3.1), and without mended embeddings, z̄ = 0, only the real nodes are left: that is how the global graph is classified.
"""

import itertools
import math
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from feddep.graph.graph import Graph, closed_mean_adjacency
from feddep.graph.sampling import PAD, SampledTrees
from feddep.nn.dropout import drop
from feddep.nn.feature_table import FeatureTable
from feddep.nn.linear import draw_uniform
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix

Layout = Literal["paper", "authors", "chained"]
"""``paper``: :class:`FusedGNN`; ``authors``: an encoder with :class:`Fusions`; ``chained``: the same with chained maps."""

Initial = Literal["he", "uniform"]
"""Initial weights of :class:`FusedGNN`: as He et al. (2015) draw them for ReLU, or as is usual for any linear map."""


class MendedTable(FeatureTable):
    """Looks up the inputs of sampled nodes: their sparse features x_v and their mended embeddings z̄_v."""

    def __init__(self, features: sp.csr_matrix, embeddings: Tensor, degrees: np.ndarray | None = None) -> None:
        """Prepare the lookup in X, float32 CSR, shape (n, F), and in z̄, shape (n, d_z), on whose device all is wanted."""
        super().__init__(features, embeddings.device, degrees)
        self.renew(embeddings)

    def renew(self, embeddings: Tensor) -> None:
        """Take these for z̄_v from now on, shape (n, d_z)."""
        self._embeddings = torch.cat([embeddings, embeddings.new_zeros(1, embeddings.shape[1])])

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        """z̄_v of the given nodes, shape (R, d_z); zero for nobody."""
        return self._embeddings[torch.from_numpy(nodes).to(self._embeddings.device, torch.int64)]


class FusedLayer(nn.Module):
    """W · [x̄_v ‖ z̄_v], which is W^x x̄_v + W^z z̄_v (FedDEP, Section 3.1 and Statement 3.1; no bias, as printed).

    ``weight`` holds Wᵀ, shape (inputs + d_z, outputs): the rows for x̄_v, then those for z̄_v.
    """

    def __init__(self, inputs: int, embedding: int, outputs: int) -> None:
        super().__init__()
        self.widths = [inputs, embedding]
        self.weight = nn.Parameter(torch.empty(inputs + embedding, outputs))

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw W^z uniformly from ±1/√d_z, and W^x from ±√(6/inputs) (``he``) or ±1/√inputs (``uniform``)."""
        of_x, of_z = self.weight.detach().split(self.widths)
        bound = math.sqrt((6 if initial == "he" else 1) / self.widths[0])
        nn.init.uniform_(of_x, -bound, bound, generator=generator)
        if self.widths[1]:
            draw_uniform([of_z], self.widths[1], generator)

    def forward(self, x: Tensor | SparseMatrix, z: Tensor | None) -> Tensor:
        """Shape (R, outputs), from x̄ of shape (R, inputs) and z̄ of shape (R, d_z), or none where all z̄ are zero."""
        of_x, of_z = self.weight.split(self.widths)
        return x @ of_x if z is None else x @ of_x + z @ of_z


class FusedGNN(nn.Module):
    """The classifier F of the paper: K embedding-fused graph convolutions with weights W^(0) … W^(K).

        x⁰_v = σ(W⁰ · [x_v ‖ z̄_v]),    x^k_v = σ(W^k · [mean {x^{k−1}_u : u ∈ G¹(v)} ‖ z̄_v]),  k = 1 … K

    The one-hop ego-graph G¹(v) holds v itself and its neighbours, so a node counts like any one of them.  σ is ReLU, with
    dropout behind it in training; after the last layer the softmax of the loss takes its place.  In a mini-batch G¹(v) is
    v and those of its neighbours that were drawn; one that was drawn several times is still one node.
    """

    def __init__(self, features: int, embedding: int, hidden: int, classes: int, layers: int, dropout: float) -> None:
        """Set up the layers; call :meth:`reset_parameters` before use.

        Args:
            features: number of node features d_x.
            embedding: width d_z of the mended embeddings.
            hidden: width d_h of the hidden layers.
            classes: number of classes d_y.
            layers: number of convolutions K, at least 1; there are K + 1 weight matrices.
            dropout: probability that a hidden unit is set to zero in training.
        """
        super().__init__()
        widths = [features, *[hidden] * layers, classes]
        self.layers = [FusedLayer(inputs, embedding, outputs) for inputs, outputs in itertools.pairwise(widths)]
        for k, layer in enumerate(self.layers):
            self.add_module(f"layer{k}", layer)
        self.dropout = dropout

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The matrix that :meth:`full` aggregates with: row v averages over v and all its neighbours; shape (n, n)."""
        return closed_mean_adjacency(graph)

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw all weights anew."""
        for layer in self.layers:
            layer.reset_parameters(generator, initial)

    def forward(self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None) -> Tensor:
        """Logits of the roots of B sampled trees of K hops, shape (B, C).

        Args:
            trees: the sampled neighbourhoods.
            table: features and mended embeddings of the graph that they were drawn from, such as a :class:`MendedTable`; features
                alone where d_z is 0.
            generator: source of the dropout masks; none means no dropout.
        """
        # x⁰ is a function of the node alone: it is computed once for each node, however many places the node stands at.
        nodes, place_of = np.unique(trees.nodes, return_inverse=True)
        embeddings = table.embeddings if self.layers[0].widths[1] else _nothing
        initial = self.layers[0](table.own(nodes), embeddings(nodes)).relu()
        index = torch.from_numpy(place_of.reshape(trees.nodes.shape)).to(initial.device)
        hidden = drop(embedding(index, initial), self.dropout, generator)
        for layer in self.layers[1:]:
            own, drawn = trees.split(hidden)
            shares = torch.from_numpy(_closed_shares(trees.split(trees.nodes)[1])).to(hidden.device)
            mean = shares[:, :, :1] * own + (shares[:, :, None, 1:] @ drawn).squeeze(2)
            trees = trees.inner
            hidden = layer(mean.flatten(0, 1), embeddings(trees.nodes.ravel()))
            if layer is not self.layers[-1]:
                hidden = drop(hidden.relu(), self.dropout, generator).view(*trees.nodes.shape, -1)
        return hidden

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix, z: Tensor | None = None) -> Tensor:
        """Logits of all nodes from their full neighbourhoods, without dropout, shape (n, C).

        Args:
            x: features of all nodes, shape (n, d_x).
            mean: what :meth:`aggregation` gives.
            z: mended embeddings of all nodes, shape (n, d_z); none means zero ("Inference").
        """
        hidden = self.layers[0](x, z)
        for layer in self.layers[1:]:
            hidden = layer(mean @ hidden.relu(), z)
        return hidden


def _nothing(nodes: np.ndarray) -> None:
    """Embeddings of width 0."""


def _closed_shares(drawn: np.ndarray) -> np.ndarray:
    """Shares in the mean over {v} ∪ {drawn neighbours} as a set: v's own, then that of each draw; float32, shape (…, 1 + d)."""
    times = (drawn[..., :, None] == drawn[..., None, :]).sum(axis=-1)
    each = np.where(drawn == PAD, 0, 1 / times)
    total = 1 + each.sum(axis=-1, keepdims=True)
    return np.concatenate([1 / total, each / total], axis=-1).astype(np.float32)


class Fusions:
    """Adds a linear map of z̄_v to the outputs of each of an encoder's layers; the encoder reads a :class:`MendedTable`.

        h^k_v = Layer^k(h^{k−1})_v + Z^k z̄_v,  k = 1 … K

    Where the maps are ``chained``, each has a bias and reads what the one before it gives, as in the authors' code:

        h^k_v = Layer^k(h^{k−1})_v + f^k_v,  f^k_v = Z^k f^{k−1}_v + c^k,  f^0_v = z̄_v

    Without biases, and so not where they are chained, z̄ = 0 leaves the encoder, number for number: same initial weights for the
    same generator, same draws.
    """

    def __init__(
        self, features: int, embedding: int, hidden: int, classes: int, layers: int, dropout: float, chained: bool = False
    ) -> None:
        """Set up the layers; call :meth:`reset_parameters` before use.  The first arguments are those of :class:`FusedGNN`."""
        encoder: Any = super()
        encoder.__init__(features, hidden, classes, layers, dropout)
        outputs = self.output_widths
        inputs = [embedding, *outputs[:-1]] if chained else [embedding] * layers
        self.fusions = nn.ParameterList(torch.empty(*widths) for widths in zip(inputs, outputs, strict=True))
        self.chained = chained
        if chained:
            self.biases = nn.ParameterList(torch.empty(width) for width in outputs)

    output_widths: Any

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw all weights anew: the encoder's first, which have one choice only, then Z^k and c^k, uniformly from ±1/√inputs."""
        encoder: Any = super()
        encoder.reset_parameters(generator)
        for k, fusion in enumerate(self.fusions):
            draw_uniform([fusion, *([self.biases[k]] if self.chained else [])], fusion.shape[0], generator)

    def fused(self, k: int, z: Tensor) -> Tensor:
        """What is added to the outputs of layer k, shape (R, H), from z̄ of shape (R, d_z)."""
        if not self.chained:
            return z @ self.fusions[k]
        for fusion, bias in zip(self.fusions[: k + 1], self.biases[: k + 1], strict=True):
            z = z @ fusion + bias
        return z

    def _complete_outputs(self, k: int, hidden: Tensor, trees: SampledTrees, table: MendedTable) -> Tensor:
        return hidden + self.fused(k, table.embeddings(trees.inner.nodes.ravel()))

    def _complete_full(self, k: int, hidden: Tensor, z: Tensor | None) -> Tensor:
        if z is None:
            return hidden if not self.chained else hidden + self.fused(k, hidden.new_zeros(1, self.fusions[0].shape[0]))
        return hidden + self.fused(k, z)


class FusedSAGE(Fusions, GraphSAGE):
    """The classifier of the authors' code: a GraphSAGE with maps of z̄_v added to each convolution (:class:`Fusions`)."""

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix, z: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Logits of all nodes from their full neighbourhoods; the arguments are those of :meth:`FusedGNN.full`."""
        hidden: Any = x
        for k, convolution in enumerate(self.convolutions):
            inputs = hidden.relu() if k else x
            hidden = self._complete_full(k, convolution.full(inputs, mean), z)
        return hidden
