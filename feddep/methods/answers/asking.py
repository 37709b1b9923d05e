"""One answer for each node that has neighbours elsewhere, by randomised response, for all who ask.

The server matches names that it cannot read and passes the answers on (:mod:`feddep.methods.shared.routing`).
"""

from collections.abc import Sequence

import numpy as np
import torch

from feddep.federation.boundary import Boundary
from feddep.methods.shared.answering import answers_for, answers_of
from feddep.methods.shared.cross_edges import CrossEdges
from feddep.methods.shared.routing import match
from feddep.privacy.randomised_response import randomised_response
from feddep.training.task import Part, Task
from feddep.utils.seeding import generator


def known_classes(part: Part, logits: np.ndarray, labels: bool) -> np.ndarray:
    """What a client would answer of its nodes without noise, int64, shape (n,).

    The predicted class, or with ``labels`` the label of the nodes that it trains on and the predicted class of all others.
    """
    graph, split = part
    known = logits.argmax(axis=1)
    if labels:
        known[split.train] = graph.labels[split.train]
    return known


def ask(
    task: Task, boundary: Boundary, edges: Sequence[CrossEdges], known: Sequence[np.ndarray], epsilon: float | None
) -> list[np.ndarray]:
    """The answered class of each node elsewhere that a client is joined to, in the order of ``outside``; int64, shape (h_i,).

    Args:
        task: the task.
        boundary: that of the clients, to which :func:`feddep.methods.shared.answering.answer_kinds` is declared.
        edges: the clients' edges to each other.
        known: the class that each client knows of each of its nodes, shape (n_i,).
        epsilon: ε of an answer; none for true ones.
    """
    classes, routing, sent = task.graph.num_classes, match(task, boundary, edges), []
    for i, (own, of_client) in enumerate(zip(edges, known, strict=True)):
        told = of_client[own.endpoints]
        if epsilon is not None:
            told = randomised_response(told, classes, epsilon, generator(task.seed, f"client{i}", "answers"))
        rows = torch.eye(classes)[torch.from_numpy(told)]
        sent.append(boundary.send(i, "up", answers_of(i), {"answers": rows})["answers"] if len(told) else rows)
    found = []
    for i, rows in enumerate(routing.deliver(sent)):
        received = boundary.send(i, "down", answers_for(i), {"answers": rows})["answers"] if len(rows) else rows
        found.append(received.numpy().argmax(axis=1))
    return found
