"""GraphSAGE with the mean aggregator (Hamilton et al., 2017, Algorithms 1 and 2), mini-batch and full-batch."""

import itertools

import numpy as np
import torch
from torch import Tensor, nn

from feddep.nn.dropout import drop
from feddep.nn.features import FeatureTable
from feddep.nn.initial import draw_uniform
from feddep.nn.sparse import SparseMatrix
from feddep.sampling import NOBODY, tree_width


class SAGEConv(nn.Module):
    """One convolution: h_v = W · [x_v ‖ mean of x_u over the neighbours u of v] + b.

    ``weight`` holds Wᵀ, shape (2 · inputs, outputs): the rows for the node itself, then those for its neighbours.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs = inputs
        self.weight = nn.Parameter(torch.empty(2 * inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights and bias uniformly from ±1/√inputs, as two separate linear maps of that many inputs would."""
        draw_uniform((self.weight, self.bias), self.inputs, generator)

    def forward(self, joined: Tensor | SparseMatrix) -> Tensor:
        """Convolve rows that are joined already, [x_v ‖ mean x_u], shape (R, 2 · inputs), to shape (R, outputs)."""
        return joined @ self.weight + self.bias

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix) -> Tensor:
        """Convolve all n nodes with all their neighbours, shape (n, outputs).

        Args:
            x: inputs of all nodes, shape (n, inputs).
            mean: the adjacency matrix with each row divided by its degree, shape (n, n).
        """
        own, neighbours = self.weight.split(self.inputs)
        return x @ own + mean @ (x @ neighbours) + self.bias


class GraphSAGE(nn.Module):
    """L convolutions with ReLU and dropout between them; the output is one logit a class."""

    def __init__(self, features: int, hidden: int, classes: int, layers: int, fanout: int, dropout: float) -> None:
        """Set up the layers; call :meth:`reset_parameters` before use.

        Args:
            features: number of node features F.
            hidden: width of the hidden layers.
            classes: number of classes C.
            layers: number of convolutions L, at least 1.
            fanout: neighbours d drawn for each node in a mini-batch.
            dropout: probability that a hidden unit is set to zero in training.
        """
        super().__init__()
        widths = [features, *[hidden] * (layers - 1), classes]
        self.convolutions = [SAGEConv(inputs, outputs) for inputs, outputs in itertools.pairwise(widths)]
        for k, convolution in enumerate(self.convolutions):
            self.add_module(f"convolution{k}", convolution)
        self.fanout = fanout
        self.dropout = dropout

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        for convolution in self.convolutions:
            convolution.reset_parameters(generator)

    def forward(self, trees: np.ndarray, table: FeatureTable, generator: torch.Generator | None = None) -> Tensor:
        """Logits of the roots of sampled trees, shape (B, C).

        Args:
            trees: sampled neighbourhoods, shape (B, (1 + d)^L), as :func:`feddep.sampling.sample_trees` lays them out.
            table: the features of the graph that the trees were drawn from.
            generator: source of the dropout masks; none means no dropout.
        """
        batch, fanout = len(trees), self.fanout
        places = tree_width(fanout, len(self.convolutions) - 1)
        own, drawn = trees[:, :places], trees[:, places:].reshape(-1, fanout)
        hidden = self.convolutions[0](table.joined(own.ravel(), drawn))
        for convolution in self.convolutions[1:]:
            hidden = drop(hidden.relu(), self.dropout, generator).view(batch, places, -1)
            inner = places // (1 + fanout)
            neighbours = hidden[:, inner:].view(batch, inner, fanout, -1).mean(dim=2)
            present = trees[:, inner:places:fanout] != NOBODY  # a node has either all d draws or none
            if not present.all():
                neighbours = neighbours * torch.from_numpy(present).to(neighbours.device).unsqueeze(2)
            hidden = convolution(torch.cat([hidden[:, :inner], neighbours], dim=2).flatten(0, 1))
            places = inner
        return hidden

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix) -> Tensor:
        """Logits of all nodes from their full neighbourhoods, without dropout, shape (n, C)."""
        hidden = self.convolutions[0].full(x, mean)
        for convolution in self.convolutions[1:]:
            hidden = convolution.full(hidden.relu(), mean)
        return hidden
