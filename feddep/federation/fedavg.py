"""Federated averaging (McMahan et al., 2017)."""

from collections.abc import Callable, Iterable, Sequence

from feddep.federation.client import Client
from feddep.federation.server import Server

OnRound = Callable[[float, float], None]
"""Called after each round with the mean training loss and the validation accuracy, both over all clients' nodes."""


def federated_averaging(server: Server, clients: Sequence[Client], rounds: Iterable[int], on_round: OnRound) -> None:
    """Train the server's weights on the clients' data.

    In each round every client trains from the server's weights, the server averages what they send, weighted by their
    numbers of training nodes, and sends the mean back, on which the clients validate.
    """
    for client in clients:
        client.load(server.weights)
    for _ in rounds:
        updates, reports = zip(*[client.train() for client in clients], strict=True)
        sizes = [float(report["nodes"]) for report in reports]
        server.aggregate(updates, sizes)
        loss = sum(size * float(report["loss"]) for size, report in zip(sizes, reports, strict=True)) / sum(sizes)

        for client in clients:
            client.load(server.weights)
        validations = [client.validate() for client in clients]
        validated = sum(float(report["nodes"]) for report in validations)
        correct = sum(float(report["correct"]) for report in validations)
        on_round(loss, correct / validated)
