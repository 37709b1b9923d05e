"""The network that embeds a client's own nodes: the local GNN whose inner layer FedDEP shares prototypes of."""

import numpy as np
import torch
from torch import Tensor, nn

from feddep.nn.features import FeatureTable
from feddep.nn.initial import draw_uniform
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix


class Linear(nn.Linear):
    """A linear map whose initial weights come from a generator of the caller's, never from PyTorch's global one."""

    def __init__(self, inputs: int, outputs: int) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = inputs, outputs
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def draw(self, generator: torch.Generator) -> None:
        """Draw weights and bias uniformly from ±1/√inputs."""
        draw_uniform((self.weight, self.bias), self.in_features, generator)


class EmbeddingGNN(nn.Module):
    """L GraphSAGE convolutions, tanh after the last, then a linear head on the classes (authors' code).

    The embedding of a node is the output of the tanh: a point of (−1, 1)^{d_z}.
    """

    def __init__(
        self, features: int, hidden: int, embedding: int, classes: int, layers: int, fanout: int, dropout: float
    ) -> None:
        """Set up the layers; call :meth:`reset_parameters` before use.

        Args:
            features: number of node features F.
            hidden: width of the layers between convolutions.
            embedding: width d_z of the embeddings.
            classes: number of classes.
            layers: number of convolutions, at least 1.
            fanout: neighbours drawn for each node in a mini-batch.
            dropout: probability that a hidden unit between convolutions is set to zero in training.
        """
        super().__init__()
        self.body = GraphSAGE(features, hidden, embedding, layers, fanout, dropout)
        self.head = Linear(embedding, classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        self.body.reset_parameters(generator)
        self.head.draw(generator)

    def forward(self, trees: np.ndarray, table: FeatureTable, generator: torch.Generator | None = None) -> Tensor:
        """Logits of the roots of sampled trees; the arguments are those of :meth:`feddep.nn.sage.GraphSAGE.forward`."""
        return self.head(self.body(trees, table, generator).tanh())

    def embed(self, x: Tensor | SparseMatrix, mean: SparseMatrix) -> Tensor:
        """Embeddings of all nodes from their full neighbourhoods, without dropout, shape (n, d_z)."""
        return self.body.full(x, mean).tanh()

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix) -> Tensor:
        """Logits of all nodes from their full neighbourhoods, without dropout."""
        return self.head(self.embed(x, mean))
