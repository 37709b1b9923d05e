"""Federated averaging (McMahan et al., 2017)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from feddep.federation.boundary import Boundary, Payload
from feddep.federation.client import Client
from feddep.federation.server import Server
from feddep.training.history import History
from feddep.training.task import GlobalAccuracy, RunResult, Task

Exchange = Callable[[int], None]
"""Called whenever all clients have taken over the server's weights: with 0 before the first round, then with its number."""


def federated_averaging(
    server: Server,
    clients: Sequence[Client],
    rounds: Iterable[int],
    exchange: Exchange | None = None,
    client_weights: str = "nodes",
) -> Iterator[tuple[float, float]]:
    """Train the server's weights on the clients' data.

    In each round every client trains from the server's weights, the server averages what they send, weighted by their
    numbers of training nodes or equally, and sends what it makes of the mean, on which the clients validate.

    Yields:
        After each round the mean training loss and the validation accuracy, both over all clients' nodes.
    """

    def distribute(done: int) -> None:
        for client in clients:
            client.load(server.weights)
        if exchange is not None:
            exchange(done)

    distribute(0)
    for number in rounds:
        updates, reports = zip(*[client.train() for client in clients], strict=True)
        sizes = [float(report["nodes"]) for report in reports]
        server.aggregate(updates, sizes if client_weights == "nodes" else [1.0] * len(sizes))
        loss = sum(size * float(report["loss"]) for size, report in zip(sizes, reports, strict=True)) / sum(sizes)

        distribute(number)
        validations = [client.validate() for client in clients]
        validated = sum(float(report["nodes"]) for report in validations)
        correct = sum(float(report["correct"]) for report in validations)
        yield loss, correct / validated


def train_federated(
    task: Task,
    model: Any,
    boundary: Boundary,
    clients: Sequence[Client],
    test: Callable[[Any], GlobalAccuracy] | None = None,
    exchange: Exchange | None = None,
    new_server: Callable[[Payload], Server] = Server,
) -> RunResult:
    """Train a classifier by federated averaging for the rounds of the task, and test it after each.

    Args:
        task: the task.
        model: the classifier with its initial weights; holds the server's weights whenever ``exchange`` or ``test`` is called.
        boundary: that of the clients, which counts their messages.
        clients: the clients.
        test: accuracies of the model on the global graph; by default :meth:`feddep.training.task.Task.test`.
        exchange: what else is exchanged when weights are distributed.
        new_server: from the initial weights to the server, which may make something else than the mean of what clients send.
    """
    server = new_server(model.state_dict())
    history = History()

    def exchange_with_model(done: int) -> None:
        if exchange is not None:
            model.load_state_dict(server.weights)
            exchange(done)

    rounds = federated_averaging(server, clients, task.rounds(), exchange_with_model, task.setting.client_weights)
    for loss, validation in rounds:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, *(test or task.test)(model), local_test(clients))
    return RunResult([history], boundary.communication.rows())


def local_test(clients: Sequence[Client]) -> tuple[int, int]:
    """How many test nodes their owners have classified right when they last validated, and of how many."""
    right, nodes = zip(*(client.local_test for client in clients), strict=True)
    return sum(right), sum(nodes)
