"""Evaluation with full neighbourhoods."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph import Graph
from feddep.nn.sparse import SparseMatrix


def mean_adjacency(graph: Graph) -> sp.csr_matrix:
    """The adjacency matrix with each row divided by its degree; rows of isolated nodes are empty; shape (n, n)."""
    values = np.repeat(1 / np.maximum(graph.degrees, 1), graph.degrees).astype(np.float32)
    return sp.csr_matrix((values, graph.indices, graph.indptr), shape=(graph.num_nodes, graph.num_nodes))


class Evaluator:
    """Applies a model to all nodes of a graph at once."""

    def __init__(self, graph: Graph, device: str = "cpu", aggregation: Callable[[Graph], sp.csr_matrix] = mean_adjacency) -> None:
        """Prepare the inputs.

        Args:
            graph: the graph.
            device: where tensors live.
            aggregation: the matrix that the models to come aggregate neighbours with, shape (n, n).
        """
        self._features = SparseMatrix.from_scipy(graph.features, device)
        self._mean = SparseMatrix.from_scipy(aggregation(graph), device)
        self._labels = torch.from_numpy(graph.labels).to(device)

    @torch.no_grad()
    def logits(self, model: Any) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        return model.full(self._features, self._mean)

    def correct(self, model: Any, nodes: np.ndarray) -> int:
        """How many of ``nodes`` get their true class."""
        chosen = torch.from_numpy(nodes).to(self._labels.device)
        return int((self.logits(model)[chosen].argmax(dim=1) == self._labels[chosen]).sum())

    def accuracy(self, model: Any, nodes: np.ndarray) -> float:
        """Share of ``nodes`` that get their true class."""
        return self.correct(model, nodes) / len(nodes)
