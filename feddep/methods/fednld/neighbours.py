"""What a client estimates of its missing neighbours' labels: from similar nodes of its own, or by asking who owns them."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import scipy.sparse as sp
import torch
from scipy.spatial import KDTree
from sklearn.preprocessing import normalize
from torch import Tensor

from feddep.federation.boundary import Boundary
from feddep.methods.shared.answering import answers_for, answers_of
from feddep.methods.shared.cross_edges import CrossEdges
from feddep.methods.shared.routing import match
from feddep.privacy.randomised_response import randomised_response
from feddep.training.task import Task
from feddep.utils.seeding import generator

_ROWS = 512  # nodes whose similarities to all others are computed at once


def feature_knn_mean(features: sp.csr_matrix, p: np.ndarray, count: int) -> np.ndarray:
    """Mean distribution of the ``count`` nodes that are most similar to each node, itself excepted; shape (n, C).

    Similarity is the cosine of features of which each is weighed by its inverse document frequency, 1 + ln((1 + n) / (1 + n_f))
    where n_f nodes have it; means are weighed by it.  A node that resembles nobody gets zeros.  ``features`` are those of the n
    nodes, shape (n, F), ``p`` their distributions, shape (n, C).
    """
    n = len(p)
    having = np.bincount(features.indices, minlength=features.shape[1])
    rows = normalize(features @ sp.diags_array(1 + np.log((1 + n) / (1 + having))))
    columns, count = sp.csc_matrix(rows.T), min(count, n)
    found = np.zeros_like(p)
    for start in range(0, n, _ROWS):
        block = np.arange(start, min(start + _ROWS, n))
        cosines = (rows[block] @ columns).toarray()
        cosines[np.arange(len(block)), block] = 0
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        weights = np.take_along_axis(cosines, nearest, axis=1).clip(min=0)
        total = weights.sum(axis=1, keepdims=True)
        found[block] = np.einsum("bk,bkc->bc", weights / np.where(total > 0, total, 1), p[nearest])
    return found


def quantised(quantisation: int, classes: int) -> np.ndarray:
    """All distributions over C classes whose probabilities are multiples of 1 / ``quantisation``, float32, shape (K, C).

    K is the binomial coefficient of quantisation + C − 1 and quantisation; with 1 these are the classes.
    """
    chosen = np.array(list(combinations_with_replacement(range(classes), quantisation)))
    return np.eye(classes, dtype=np.float32)[chosen].mean(axis=1)


class Answers:
    """What the owners of missing neighbours answer, by way of the server, to who holds the other ends of their edges."""

    def __init__(
        self, task: Task, boundary: Boundary, edges: Sequence[CrossEdges], epsilon: float | None, quantisation: int = 1
    ) -> None:
        """Match the names of the nodes that have neighbours elsewhere; ``epsilon`` is ε of an answer, none for true ones."""
        self.boundary, self.edges, self.epsilon = boundary, edges, epsilon
        self._possible = quantised(quantisation, task.graph.num_classes)
        self._nearest = KDTree(self._possible)
        self._random = [generator(task.seed, f"client{i}", "answers") for i in range(len(edges))]
        self._routing = match(task, boundary, edges)

    def ask(self, predictions: Sequence[Tensor]) -> list[np.ndarray]:
        """Mean answer over the missing neighbours of each client's nodes, shape (n_i, C), zeros for a node that lacks none.

        From the log p of its nodes, shape (n_i, C), each client draws one answer for each that has neighbours elsewhere: the
        nearest quantised distribution, by randomised response among them all.  The server passes it on to all who ask for the
        node, by a name that it cannot read.
        """
        sent = []
        for i, (own, log_p) in enumerate(zip(self.edges, predictions, strict=True)):
            _, told = self._nearest.query(log_p[own.endpoints].exp().cpu().numpy())
            if self.epsilon is not None:
                told = randomised_response(told, len(self._possible), self.epsilon, self._random[i])
            told = torch.from_numpy(self._possible[told])
            sent.append(self.boundary.send(i, "up", answers_of(i), {"answers": told})["answers"] if len(told) else told)
        found = []
        for i, (own, rows) in enumerate(zip(self.edges, self._routing.deliver(sent), strict=True)):
            received = self.boundary.send(i, "down", answers_for(i), {"answers": rows})["answers"] if len(rows) else rows
            found.append((own.links @ received.numpy()) / np.maximum(missing_degree(own), 1))
        return found


def missing_degree(own: CrossEdges) -> np.ndarray:
    """The number c_v of missing neighbours of each of a client's nodes, shape (n, 1)."""
    return np.diff(own.links.indptr).astype(np.float32)[:, None]
