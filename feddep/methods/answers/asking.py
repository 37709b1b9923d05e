"""One answer for each node that has neighbours elsewhere, by randomised response, for all who ask.

The server matches names that it cannot read and passes the answers on
(:mod:`feddep.methods.shared.routing`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from feddep.federation.boundary import Boundary, ByClient
from feddep.methods.answers import AnswersParameters, LabelPrivacy
from feddep.methods.answers.recorded_fedavg import at_best_round, private_labels
from feddep.methods.method import StepResult
from feddep.methods.shared.cross_edges import CrossEdges, cross_edges
from feddep.methods.shared.routing import share, share_kinds
from feddep.privacy.randomised_response import randomised_response
from feddep.training.task import ClientData, Task
from feddep.utils.seeding import generator

ANSWERS = "answers"
"""The kind of message that carries the answers for a client's own nodes to the server, and those
that it asked for back.
"""


@dataclass(frozen=True, eq=False)
class Answered:
    """Inputs of a rule, an entry a client.

    Attributes:
        edges: the client's edges to nodes elsewhere.
        known: the class that the client knows of each of its nodes (:func:`known_classes`), shape
            (n_i,).
        told: the answered class of each node elsewhere that it is joined to, shape (h_i,).
        communication: what crossed the boundary for it, a row each client, direction and kind.
    """

    edges: Sequence[CrossEdges]
    known: Sequence[np.ndarray]
    told: Sequence[np.ndarray]
    communication: list[dict[str, Any]]


def answered(task: Task, parameters: AnswersParameters, step: StepResult) -> Answered:
    """Let all owners answer with FedAvg's weights at its best round."""
    edges, readable = cross_edges(task), task
    if isinstance(parameters, LabelPrivacy):
        readable = private_labels(task, parameters.label_epsilon)
    known = [
        known_classes(*each, parameters.labels)
        for each in zip(readable.subgraphs(), at_best_round(step), strict=True)
    ]
    boundary = Boundary(answer_kinds(edges, task.graph.num_classes), task.observers)
    told = ask(task, boundary, edges, known, parameters.epsilon)
    return Answered(edges, known, told, boundary.communication.rows())


def known_classes(part: ClientData, logits: np.ndarray, labels: bool) -> np.ndarray:
    """Answers of a client about its nodes without noise, int64, shape (n,).

    The predicted class, or with ``labels`` the label of the nodes that it trains on and the
    predicted class of all others.
    """
    graph, split = part
    known = logits.argmax(axis=1)
    if labels:
        known[split.train] = graph.labels[split.train]
    return known


def ask(
    task: Task,
    boundary: Boundary,
    edges: Sequence[CrossEdges],
    known: Sequence[np.ndarray],
    epsilon: float | None,
) -> list[np.ndarray]:
    """The answered class of each node elsewhere that a client is joined to, in the order of
    ``outside``; int64, shape (h_i,).

    Args:
        task: the task.
        boundary: that of the clients, to which :func:`answer_kinds` is declared.
        edges: the clients' edges to each other.
        known: the class that each client knows of each of its nodes, shape (n_i,).
        epsilon: ε of an answer; none for true ones.
    """
    classes, rows = task.graph.num_classes, []
    for i, (own, of_client) in enumerate(zip(edges, known, strict=True)):
        told = of_client[own.endpoints]
        if epsilon is not None:
            told = randomised_response(
                told, classes, epsilon, generator(task.seed, f"client{i}", "answers")
            )
        rows.append(torch.eye(classes)[torch.from_numpy(told)])
    return [
        received.numpy().argmax(axis=1) for received in share(task, boundary, edges, ANSWERS, rows)
    ]


def answer_kinds(edges: Sequence[CrossEdges], classes: int) -> dict[str, ByClient]:
    """The messages of asking and answering."""
    return share_kinds(edges, ANSWERS, classes)
