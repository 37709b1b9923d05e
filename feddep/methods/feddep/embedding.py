"""The network that embeds a client's own nodes: the local GNN whose inner layer FedDEP shares prototypes of."""

import torch
from torch import Tensor

from feddep.graph.sampling import SampledTrees
from feddep.nn.feature_table import FeatureTable
from feddep.nn.linear import Linear
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix


class EmbeddingGNN(GraphSAGE):
    """L GraphSAGE convolutions, tanh after the last, then a linear head on the classes (authors' code).

    The embedding of a node is the output of the tanh: a point of (−1, 1)^{d_z}.
    """

    def __init__(self, features: int, hidden: int, embedding: int, classes: int, layers: int, dropout: float) -> None:
        """Set up the layers, as :class:`GraphSAGE`, with embeddings of width d_z = ``embedding``."""
        super().__init__(features, hidden, embedding, layers, dropout)
        self.head = Linear(embedding, classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        super().reset_parameters(generator)
        self.head.reset_parameters(generator)

    def forward(self, trees: SampledTrees, table: FeatureTable, generator: torch.Generator | None = None) -> Tensor:
        """Logits of the roots of sampled trees; the arguments are those of :meth:`feddep.nn.sage.GraphSAGE.forward`."""
        return self.head(super().forward(trees, table, generator).tanh())

    def embed(self, x: Tensor | SparseMatrix, mean: SparseMatrix) -> Tensor:
        """Embeddings of all nodes from their full neighbourhoods, without dropout, shape (n, d_z)."""
        return super().full(x, mean).tanh()

    def full(self, x: Tensor | SparseMatrix, mean: SparseMatrix, generator: torch.Generator | None = None) -> Tensor:
        """Logits of all nodes; the arguments are those of :meth:`feddep.nn.sage.GraphSAGE.full`."""
        return self.head(super().full(x, mean, generator).tanh())
