"""Evaluation with full neighbourhoods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.split import Split
from feddep.nn.sparse import ConstantMatrix, SparseMatrix
from feddep.training.config import Metric
from feddep.training.divergence import check_finite
from feddep.training.evaluation import ClassCounts, CorrectCount
from feddep.utils.coroutines import ask, waiting_allowed


def score(logits: Tensor, labels: Tensor, metric: Metric = "accuracy") -> CorrectCount:
    """How well k nodes are classified: from their logits, shape (k, C), and their classes, shape
    (k,).

    Returns:
        A sum over nodes, and of how many: of nodes that get their true class; or k times the area
        under the ROC curve of the second of two classes, by the ranks of its nodes (Mann and
        Whitney, 1947), which is of no node where a class is absent.
    """
    if metric == "accuracy":
        return int((logits.argmax(dim=1) == labels).sum()), len(labels)
    positive = labels == 1
    p, nodes = int(positive.sum()), len(labels)
    if p in (0, nodes):
        return 0, 0
    _, group, ties = (logits[:, 1] - logits[:, 0]).unique(return_inverse=True, return_counts=True)
    ranks = (ties.cumsum(0) - (ties - 1).double() / 2)[group]
    return nodes * float(ranks[positive].sum() - p * (p + 1) / 2) / (p * (nodes - p)), nodes


def class_counts(logits: Tensor, labels: Tensor) -> ClassCounts:
    """How many of k nodes of each class are classified right, get it, and have it: from their
    logits, shape (k, C), and their classes, shape (k,).
    """
    return _by_class(logits.argmax(dim=1).cpu().numpy(), labels.cpu().numpy(), logits.shape[1])


def _by_class(predicted: np.ndarray, true: np.ndarray, classes: int) -> ClassCounts:
    sets = true[predicted == true], predicted, true
    return [np.bincount(each, minlength=classes).tolist() for each in sets]


def counted(
    logits: Tensor, labels: Tensor, validation: int, metric: Metric
) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
    """How well so many ``validation`` nodes are classified, and the test nodes that follow
    (:func:`score`), and the latter by class.
    """
    predicted, true = logits.argmax(dim=1).cpu().numpy(), labels.cpu().numpy()
    by_class = _by_class(predicted[validation:], true[validation:], logits.shape[1])
    if metric == "accuracy":
        right = int(np.count_nonzero(predicted[:validation] == true[:validation]))
        return (right, validation), (sum(by_class[0]), len(true) - validation), by_class
    return (
        score(logits[:validation], labels[:validation], metric),
        score(logits[validation:], labels[validation:], metric),
        by_class,
    )


class Evaluator:
    """Applies a model to all nodes of a graph at once.

    Attributes:
        graph: the graph.
        features: X, shape (n, F).
        adjacency: what models aggregate neighbours with, shape (n, n).
        labels: the class of each node, shape (n,).
    """

    def __init__(
        self,
        graph: Graph,
        device: str = "cpu",
        aggregation: Callable[[Graph], sp.csr_matrix] = mean_adjacency,
    ) -> None:
        """Prepare the inputs; ``aggregation`` gives the matrix that models aggregate neighbours
        with, shape (n, n).
        """
        self.graph = graph
        self.features: ConstantMatrix = SparseMatrix.from_scipy(graph.features, device)
        self.adjacency = SparseMatrix.from_scipy(aggregation(graph), device)
        self.labels = torch.from_numpy(graph.labels).to(device)

    def apply(self, model: Any, generator: torch.Generator | None = None) -> Tensor:
        """Logits of all nodes, shape (n, C), with their gradients; ``generator`` is the source of
        dropout masks, if any.
        """
        return model.full(self.features, self.adjacency, generator=generator)

    @torch.no_grad()
    def logits(self, model: Any) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        return self.apply(model)

    def logits_of(self, model: Any, nodes: np.ndarray) -> Tensor:
        """Logits of k nodes, shape (k, C)."""
        return self.logits(model)[torch.from_numpy(nodes).to(self.labels.device)]

    def counts(
        self, model: Any, split: Split, metric: Metric = "accuracy"
    ) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """How well validation and test nodes are classified (:func:`score`), and the latter by
        class; the model is applied once.

        Raises:
            DivergenceError: if the logits of any of them are not finite numbers, so that none is
                the largest.
        """
        counting = Counting(self, model, split, metric)
        return ask(counting) if waiting_allowed() else counting.alone()


@dataclass(frozen=True, eq=False)
class Counting:
    """What an evaluator asks for: how well a model classifies validation and test nodes."""

    evaluator: Evaluator
    model: Any
    split: Split
    metric: Metric

    def alone(self) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """Count without any other."""
        return self.counts(self.evaluator.logits_of(self.model, evaluated_nodes(self.split)))

    def counts(self, logits: Tensor) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """The counts, from the logits of these nodes."""
        check_finite("what the model puts out", 0.0, [logits])
        known = self.evaluator.labels
        labels = known[torch.from_numpy(evaluated_nodes(self.split)).to(known.device)]
        return counted(logits, labels, len(self.split.val), self.metric)


def evaluated_nodes(split: Split) -> np.ndarray:
    """The validation nodes, and then the test nodes."""
    return np.concatenate([split.val, split.test])
