"""Evaluation with full neighbourhoods."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.split import Split
from feddep.nn.sparse import ConstantMatrix, SparseMatrix
from feddep.training.divergence import check_finite
from feddep.training.history import Right


class Evaluator:
    """Applies a model to all nodes of a graph at once.

    Attributes:
        features: X, shape (n, F).
        adjacency: what models aggregate neighbours with, shape (n, n).
        labels: the class of each node, shape (n,).
    """

    def __init__(self, graph: Graph, device: str = "cpu", aggregation: Callable[[Graph], sp.csr_matrix] = mean_adjacency) -> None:
        """Prepare the inputs; ``aggregation`` gives the matrix that models aggregate neighbours with, shape (n, n)."""
        self.features: ConstantMatrix = SparseMatrix.from_scipy(graph.features, device)
        self.adjacency = SparseMatrix.from_scipy(aggregation(graph), device)
        self.labels = torch.from_numpy(graph.labels).to(device)

    @torch.no_grad()
    def logits(self, model: Any) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        return model.full(self.features, self.adjacency)

    def logits_of(self, model: Any, nodes: np.ndarray) -> Tensor:
        """Logits of k nodes, shape (k, C)."""
        return self.logits(model)[torch.from_numpy(nodes).to(self.labels.device)]

    def correct(self, model: Any, *sets: np.ndarray) -> list[int]:
        """How many nodes of each of ``sets`` get their true class; the model is applied once.

        Raises:
            DivergenceError: if the logits of any of them are not finite numbers, so that none is the largest.
        """
        nodes = np.concatenate(sets)
        logits = self.logits_of(model, nodes)
        check_finite("what the model puts out", 0.0, [logits])
        right = logits.argmax(dim=1) == self.labels[torch.from_numpy(nodes).to(self.labels.device)]
        return [int(part.sum()) for part in right.split([len(part) for part in sets])]

    def scores(self, model: Any, split: Split) -> tuple[Right, Right]:
        """How many validation and how many test nodes get their true class, each with their number."""
        validation, test = self.correct(model, split.val, split.test)
        return (validation, len(split.val)), (test, len(split.test))

    def accuracy(self, model: Any, nodes: np.ndarray) -> float:
        """Share of ``nodes`` that get their true class."""
        return self.correct(model, nodes)[0] / len(nodes)
