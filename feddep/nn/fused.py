"""Embedding-fused graph convolution: a classifier that reads generated embeddings of missing neighbours (FedDEP, Section 3.1).

Two layouts of it: :class:`FusedGNN` is the equation of the paper, :class:`FusedSAGE` is what the authors' code computes.
In both, a layer treats what it aggregates from real nodes and the mended embeddings z̄_v with separate weights (Statement
3.1), and without mended embeddings, z̄ = 0, only the real nodes are left: that is how the global graph is classified.
"""

import itertools
import math
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.nn.dropout import drop
from feddep.nn.features import FeatureTable
from feddep.nn.initial import draw_uniform
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.sampling import NOBODY

Layout = Literal["paper", "authors"]
"""``paper``: :class:`FusedGNN`; ``authors``: :class:`FusedSAGE`."""

Initial = Literal["he", "uniform"]
"""Initial weights of :class:`FusedGNN`: as He et al. (2015) draw them for ReLU, or as is usual for any linear map."""


class MendedTable:
    """Looks up the inputs of sampled nodes: their sparse features x_v and their mended embeddings z̄_v."""

    def __init__(self, features: sp.csr_matrix, embeddings: Tensor, fanout: int) -> None:
        """Prepare the lookup.

        Args:
            features: node features X, float32 CSR, shape (n, F).
            embeddings: z̄_v, the mean generated embedding of each node, shape (n, d_z); its device is where all is wanted.
            fanout: number d of neighbours that are drawn for each node.
        """
        self._device = embeddings.device
        self._features = features
        self._fanout = fanout
        # NOBODY is −1 and so finds the last row, which is empty.
        self._own = sp.vstack([features, sp.csr_matrix((1, features.shape[1]), dtype=np.float32)], format="csr")
        self._embeddings = torch.cat([embeddings, embeddings.new_zeros(1, embeddings.shape[1])])

    def own(self, nodes: np.ndarray) -> SparseMatrix:
        """x_v of the given nodes, shape (R, F); zero for nobody."""
        return SparseMatrix.from_scipy(self._own[nodes], _name(self._device))

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> SparseMatrix:
        """[x_v ‖ mean x_u], as :meth:`feddep.nn.features.FeatureTable.joined`."""
        return self._neighbourhoods.joined(own, neighbours)

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        """z̄_v of the given nodes, shape (R, d_z); zero for nobody."""
        return self._embeddings[torch.from_numpy(nodes).to(self._device, torch.int64)]

    @cached_property
    def _neighbourhoods(self) -> FeatureTable:
        return FeatureTable(self._features, self._fanout, _name(self._device))


def _name(device: torch.device) -> str:
    return device.type if device.index is None else f"{device.type}:{device.index}"


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

    def __init__(
        self, features: int, embedding: int, hidden: int, classes: int, layers: int, fanout: int, dropout: float
    ) -> None:
        """Set up the layers; call :meth:`reset_parameters` before use.

        Args:
            features: number of node features d_x.
            embedding: width d_z of the mended embeddings.
            hidden: width d_h of the hidden layers.
            classes: number of classes d_y.
            layers: number of convolutions K, at least 1; there are K + 1 weight matrices.
            fanout: neighbours d drawn for each node in a mini-batch.
            dropout: probability that a hidden unit is set to zero in training.
        """
        super().__init__()
        widths = [features, *[hidden] * layers, classes]
        self.layers = [FusedLayer(inputs, embedding, outputs) for inputs, outputs in itertools.pairwise(widths)]
        for k, layer in enumerate(self.layers):
            self.add_module(f"layer{k}", layer)
        self.fanout = fanout
        self.dropout = dropout

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The matrix that :meth:`full` aggregates with: row v averages over v and all its neighbours; shape (n, n)."""
        closed = graph.adjacency + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
        return sp.csr_matrix(sp.diags_array((1 / (graph.degrees + 1)).astype(np.float32)) @ closed)

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw all weights anew."""
        for layer in self.layers:
            layer.reset_parameters(generator, initial)

    def forward(self, trees: np.ndarray, table: MendedTable, generator: torch.Generator | None = None) -> Tensor:
        """Logits of the roots of sampled trees, shape (B, C).

        Args:
            trees: sampled neighbourhoods, shape (B, (1 + d)^K), as :func:`feddep.sampling.sample_trees` lays them out.
            table: features and mended embeddings of the graph that the trees were drawn from.
            generator: source of the dropout masks; none means no dropout.
        """
        batch, fanout = len(trees), self.fanout
        # x⁰ is a function of the node alone: it is computed once for each node, however many places the node stands at.
        nodes, place_of = np.unique(trees, return_inverse=True)
        initial = self.layers[0](table.own(nodes), table.embeddings(nodes)).relu()
        places = trees.shape[1]
        index = torch.from_numpy(place_of.reshape(batch, places)).to(initial.device)
        hidden = drop(embedding(index, initial), self.dropout, generator)
        for layer in self.layers[1:]:
            inner = places // (1 + fanout)
            own, drawn = _closed_shares(trees[:, inner:places].reshape(batch, inner, fanout))
            others = hidden[:, inner:].view(batch, inner, fanout, -1)
            weights = torch.from_numpy(np.concatenate([own, drawn], axis=2)).to(hidden.device)
            mean = weights[:, :, :1] * hidden[:, :inner] + (weights[:, :, None, 1:] @ others).squeeze(2)
            hidden = layer(mean.flatten(0, 1), table.embeddings(trees[:, :inner].ravel()))
            if layer is not self.layers[-1]:
                hidden = drop(hidden.relu(), self.dropout, generator).view(batch, inner, -1)
            places = inner
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


def _closed_shares(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares in the mean over {v} ∪ {drawn neighbours} as a set: v's own, (…, 1), and that of each draw, (…, d); float32."""
    times = (drawn[..., :, None] == drawn[..., None, :]).sum(axis=-1)
    each = np.where(drawn == NOBODY, 0, 1 / times)
    total = 1 + each.sum(axis=-1, keepdims=True)
    return (1 / total).astype(np.float32), (each / total).astype(np.float32)


class FusedSAGE(GraphSAGE):
    """The classifier of the authors' code: a GraphSAGE with a linear map of z̄_v added to each convolution.

        h^k_v = SAGEConv^k(h^{k−1})_v + Z^k z̄_v,  k = 1 … K

    With z̄ = 0 it is GraphSAGE, number for number: same initial weights for the same generator, same draws.
    """

    def __init__(
        self, features: int, embedding: int, hidden: int, classes: int, layers: int, fanout: int, dropout: float
    ) -> None:
        """Set up the layers; call :meth:`reset_parameters` before use.  The arguments are those of :class:`FusedGNN`."""
        super().__init__(features, hidden, classes, layers, fanout, dropout)
        self.fusions = nn.ParameterList(torch.empty(embedding, convolution.bias.shape[0]) for convolution in self.convolutions)

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The matrix that :meth:`full` aggregates with: row v averages over the neighbours of v; shape (n, n)."""
        return mean_adjacency(graph)

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw all weights anew: GraphSAGE's first, which have one choice only, then the maps Z^k, uniformly from ±1/√d_z."""
        super().reset_parameters(generator)
        for fusion in self.fusions:
            draw_uniform([fusion], fusion.shape[0], generator)

    def forward(self, trees: np.ndarray, table: MendedTable, generator: torch.Generator | None = None) -> Tensor:  # type: ignore[override]
        """Logits of the roots of sampled trees, shape (B, C); the arguments are those of :meth:`FusedGNN.forward`."""
        batch, fanout = len(trees), self.fanout
        places = trees.shape[1] // (1 + fanout)
        own, drawn = trees[:, :places], trees[:, places:].reshape(-1, fanout)
        joined: Tensor | SparseMatrix = table.joined(own.ravel(), drawn)
        for convolution, fusion in zip(self.convolutions, self.fusions, strict=True):
            hidden = convolution(joined) + table.embeddings(trees[:, :places].ravel()) @ fusion
            if convolution is self.convolutions[-1]:
                break
            hidden = drop(hidden.relu(), self.dropout, generator).view(batch, places, -1)
            inner = places // (1 + fanout)
            neighbours = hidden[:, inner:].view(batch, inner, fanout, -1).mean(dim=2)
            present = trees[:, inner:places:fanout] != NOBODY  # a node has either all d draws or none
            neighbours = neighbours * torch.from_numpy(present).to(neighbours.device).unsqueeze(2)
            joined = torch.cat([hidden[:, :inner], neighbours], dim=2).flatten(0, 1)
            places = inner
        return hidden

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix, z: Tensor | None = None) -> Tensor:
        """Logits of all nodes from their full neighbourhoods; the arguments are those of :meth:`FusedGNN.full`."""
        hidden = self.convolutions[0].full(x, mean) + self._fused(0, z)
        for k, convolution in enumerate(self.convolutions[1:], start=1):
            hidden = convolution.full(hidden.relu(), mean) + self._fused(k, z)
        return hidden

    def _fused(self, k: int, z: Tensor | None) -> Tensor | float:
        return 0.0 if z is None else z @ self.fusions[k]


FusedClassifier = FusedGNN | FusedSAGE
"""Either layout."""


def fused_classifier(
    layout: Layout, features: int, embedding: int, hidden: int, classes: int, layers: int, fanout: int, dropout: float
) -> FusedClassifier:
    """A classifier of the given layout without weights yet; the other arguments are those of :class:`FusedGNN`."""
    sizes = (features, embedding, hidden, classes, layers, fanout, dropout)
    return FusedGNN(*sizes) if layout == "paper" else FusedSAGE(*sizes)
