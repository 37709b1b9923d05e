"""Evaluation with full neighbourhoods."""

from collections.abc import Callable, Sequence
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


def _area(logits: Tensor, labels: Tensor) -> CorrectCount:
    """k times the area under the ROC curve of the second of two classes, by the ranks of its nodes
    (Mann and Whitney, 1947), and k, the number of nodes; 0 and 0 where a class is absent.
    """
    positive = labels == 1
    p, nodes = int(positive.sum()), len(labels)
    if p in (0, nodes):
        return 0, 0
    _, group, ties = (logits[:, 1] - logits[:, 0]).unique(return_inverse=True, return_counts=True)
    ranks = (ties.cumsum(0) - (ties - 1).double() / 2)[group]
    return nodes * float(ranks[positive].sum() - p * (p + 1) / 2) / (p * (nodes - p)), nodes


def score(
    logits: Tensor, labels: Tensor, metric: Metric = "accuracy"
) -> tuple[CorrectCount, ClassCounts]:
    """How well k nodes are classified: from their logits, shape (k, C), and their classes, shape
    (k,).

    Returns:
        A sum over nodes, and of how many: of nodes that get their true class, or k times the area
        under the ROC curve, which is of no node where a class is absent.  And how many nodes of
        each class are classified right, get it, and have it.
    """
    ((_, found, by_class),) = Evaluated([labels.cpu().numpy()], [0]).counts(logits, metric)
    return found, by_class


class Evaluated:
    """Validation nodes and test nodes of several clients: those of a client follow one another."""

    def __init__(self, labels: Sequence[np.ndarray], validation: Sequence[int]) -> None:
        """Take the classes of each client's nodes, of which so many, the first, are for
        validation.
        """
        sizes = [(count, len(each) - count) for each, count in zip(labels, validation, strict=True)]
        self._sizes: list[int] = np.ravel(sizes).tolist()
        self._sets = np.repeat(np.arange(len(self._sizes)), self._sizes)
        self._labels = np.concatenate(labels)

    def counts(
        self, logits: Tensor, metric: Metric = "accuracy"
    ) -> list[tuple[CorrectCount, CorrectCount, ClassCounts]]:
        """How well each client's validation and test nodes are classified (:func:`score`), and the
        latter by class, from the logits of all, shape (k, C).
        """
        classes, predicted = logits.shape[1], logits.argmax(dim=1).cpu().numpy()
        true, given = (self._sets * classes + each for each in (self._labels, predicted))
        counted = (
            np.bincount(each, minlength=len(self._sizes) * classes)
            for each in (true[true == given], given, true)
        )
        by_class = np.stack(list(counted)).reshape(3, -1, classes)
        if metric == "accuracy":
            scores = list(zip(by_class[0].sum(axis=1).tolist(), self._sizes, strict=True))
        else:
            labels = torch.from_numpy(self._labels).to(logits.device)
            sets = zip(logits.split(self._sizes), labels.split(self._sizes), strict=True)
            scores = [_area(*each) for each in sets]
        return [(*scores[k : k + 2], by_class[:, k + 1].tolist()) for k in range(0, len(scores), 2)]


class Evaluator:
    """Applies a model to all nodes of a graph at once.

    Attributes:
        graph: the graph.
        features: X, shape (n, F).
        adjacency: what models aggregate neighbours with, shape (n, n).
        labels: the class of each node, shape (n,).
        embeddings: for embedding-fused classifiers, mended embeddings z̄ of the nodes, shape (n,
            d_z); none where they are zero.
        tested: applies models to the nodes as they are tested; none where that is this graph.
    """

    def __init__(
        self,
        graph: Graph,
        device: str = "cpu",
        aggregation: Callable[[Graph], sp.csr_matrix] = mean_adjacency,
        embeddings: Tensor | None = None,
    ) -> None:
        """Prepare the inputs; ``aggregation`` gives the matrix that models aggregate neighbours
        with, shape (n, n).
        """
        self.graph = graph
        self.features: ConstantMatrix = SparseMatrix.from_scipy(graph.features, device)
        self.adjacency = SparseMatrix.from_scipy(aggregation(graph), device)
        self.labels = torch.from_numpy(graph.labels).to(device)
        self.embeddings = None if embeddings is None else embeddings.to(device)
        self.tested = None if graph.tested is None else Evaluator(graph.tested, device, aggregation)

    def apply(self, model: Any, generator: torch.Generator | None = None) -> Tensor:
        """Logits of all nodes, shape (n, C), with their gradients; ``generator`` is the source of
        dropout masks, if any.
        """
        mended = {} if self.embeddings is None else {"z": self.embeddings}
        return model.full(self.features, self.adjacency, generator=generator, **mended)

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
        class, on the graph as it is tested; the model is applied once.

        Raises:
            DivergenceError: if the logits of any of them are not finite numbers, so that none is
                the largest.
        """
        counting = Counting(self.tested or self, model, split, metric)
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
        logits = self.evaluator.logits_of(self.model, evaluated_nodes(self.split))
        check_logits(logits)
        (found,) = evaluated([(self.evaluator.graph, self.split)]).counts(logits, self.metric)
        return found


def check_logits(logits: Tensor) -> None:
    """Make sure that one of each node's logits is the largest.

    Raises:
        DivergenceError: if any is not a finite number.
    """
    check_finite("what the model puts out", 0.0, [logits])


def evaluated_nodes(split: Split) -> np.ndarray:
    """The validation nodes, and then the test nodes."""
    return np.concatenate([split.val, split.test])


def evaluated(clients: Sequence[tuple[Graph, Split]]) -> Evaluated:
    """These nodes of several clients."""
    return Evaluated(
        [graph.labels[evaluated_nodes(split)] for graph, split in clients],
        [len(split.val) for _, split in clients],
    )
