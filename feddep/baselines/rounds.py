"""Federated averaging for clients that exchange something between taking over new weights and using them."""

from collections.abc import Callable, Iterable, Sequence

from feddep.federation.client import Client
from feddep.federation.fedavg import OnRound
from feddep.federation.server import Server


def averaging_with_exchange(
    server: Server, clients: Sequence[Client], rounds: Iterable[int], exchange: Callable[[int], None], on_round: OnRound
) -> None:
    """Train the server's weights as :func:`feddep.federation.fedavg.federated_averaging` does.

    ``exchange`` is called whenever all clients have taken over the server's weights: with 0 before the first round, with the
    round's number after each, before the clients validate.
    """

    def distribute(done: int) -> None:
        for client in clients:
            client.load(server.weights)
        exchange(done)

    distribute(0)
    for number in rounds:
        updates, reports = zip(*[client.train() for client in clients], strict=True)
        sizes = [float(report["nodes"]) for report in reports]
        server.aggregate(updates, sizes)
        loss = sum(size * float(report["loss"]) for size, report in zip(sizes, reports, strict=True)) / sum(sizes)

        distribute(number)
        validations = [client.validate() for client in clients]
        validated = sum(float(report["nodes"]) for report in validations)
        on_round(loss, sum(float(report["correct"]) for report in validations) / validated)
