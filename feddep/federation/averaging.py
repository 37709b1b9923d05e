"""The loop of all federated methods: federated averaging (McMahan et al., 2017), with any server
and any clients.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from feddep.federation.boundary import Boundary
from feddep.federation.client import Client, Update
from feddep.federation.server import Server
from feddep.training.history import CorrectCount, History, OwnersHistory, Scores, share, total
from feddep.training.rounds import run_rounds
from feddep.training.task import GlobalAccuracy, RunResult, Task

Exchange = Callable[[int], None]
"""Called whenever all clients have taken over the server's weights: with 0 before the first round,
then with its number.
"""


class Round(NamedTuple):
    """Mean training loss and validation accuracy of a round, both over all clients' nodes."""

    loss: float
    validation: float


class Federation:
    """A server, its clients, and what happens between them in a round."""

    def __init__(
        self, server: Server, clients: Sequence[Client], exchange: Exchange | None = None
    ) -> None:
        """Send the server's initial weights to all clients; ``exchange`` is what else is exchanged
        when weights are sent.
        """
        self.server = server
        self.clients = clients
        self._exchange = exchange
        self._distribute(0)

    def round(self, number: int) -> Round:
        """The round of this number: clients train, the server aggregates, and clients validate what
        it sends.
        """
        updates = self.train()
        self.aggregate(updates, number)
        return Round(mean_loss(updates), mean_validation(self.validate()))

    def train(self) -> list[Update]:
        """All clients do their local steps."""
        return [client.update() for client in self.clients]

    def aggregate(self, updates: Sequence[Update], number: int) -> None:
        """The server makes new weights of the clients' updates, and sends them."""
        self.server.aggregate(updates)
        self._distribute(number)

    def validate(self) -> list[tuple[float, float]]:
        """How many validation nodes each client's model classifies right as it is now, and of how
        many.
        """
        reports = [client.validate() for client in self.clients]
        return [(float(report["correct"]), float(report["nodes"])) for report in reports]

    def test(self) -> list[CorrectCount]:
        """How many test nodes each client's model classifies right as it is now, and of how many;
        nothing is sent.
        """
        return [client.test() for client in self.clients]

    def scores(self) -> Scores:
        """Validation and test of each client's model as it is now, on its own subgraph."""
        pairs = zip(self.validate(), self.clients, strict=True)
        return Scores.of(((right, int(nodes)), client.tested) for (right, nodes), client in pairs)

    def _distribute(self, done: int) -> None:
        for client in self.clients:
            if weights := self.server.weights_for(client.number):
                client.load(weights)
        if self._exchange is not None:
            self._exchange(done)


def mean_loss(updates: Sequence[Update]) -> float:
    """The mean training loss a node."""
    return sum(update.nodes * update.loss for update in updates) / sum(
        update.nodes for update in updates
    )


def mean_validation(validations: Sequence[tuple[float, float]]) -> float:
    """The share of all clients' validation nodes that are right."""
    return share(*map(sum, zip(*validations, strict=True)))


def train_federated(
    task: Task,
    model: Any,
    boundary: Boundary,
    clients: Sequence[Client],
    test: Callable[[Any], GlobalAccuracy] | None = None,
    exchange: Exchange | None = None,
    server: Server | None = None,
    before_round: Callable[[], None] = lambda: None,
) -> RunResult:
    """Train classifiers for the rounds of the task, and evaluate them in each.

    What is evaluated is what the method declares (:attr:`feddep.training.task.Task.evaluation`):
    the server's weights in one model, or a model a client, before or after the local steps of a
    round.  The former gives one history, by whose mean validation accuracy over all clients' nodes
    the best round is chosen; the latter one a client, each with its own choice. Local accuracies
    before and after the local steps are recorded whatever is declared.  Where owners judge, their
    models are evaluated before and after the local steps, and beside them the server's, if there is
    one, on the global graph.

    Args:
        task: the task.
        model: the classifier with its initial weights; where one model is evaluated, it holds the
            server's weights whenever ``exchange`` or ``test`` is called.
        boundary: that of the clients, which counts their messages.
        clients: the clients.
        test: accuracies of a model on the global graph; by default
            :meth:`feddep.training.task.Task.test`.
        exchange: what else is exchanged when weights are distributed.
        server: the server; by default one that averages, with the model's weights.
        before_round: called at the beginning of each round.
    """
    server = Server(model.state_dict(), task.setting.client_weights) if server is None else server
    shared, late = task.evaluation == "global", task.evaluation == "local_after"
    models = [model] if shared else [client.model for client in clients]
    histories = [History() for _ in models]

    def exchange_with_model(done: int) -> None:
        if shared:
            model.load_state_dict(server.weights)
        if exchange is not None:
            exchange(done)

    federation = Federation(server, clients, exchange_with_model)
    if task.owners_judge:
        return _judged_by_owners(
            task, federation, boundary, test or task.test, model if shared else None, before_round
        )

    def evaluate(updates: Sequence[Update]) -> list[CorrectCount]:
        validations = federation.validate()
        if shared:
            measured = [(mean_loss(updates), mean_validation(validations))]
        else:
            measured = [
                (update.loss, share(*each))
                for update, each in zip(updates, validations, strict=True)
            ]
        for history, each, (loss, validation) in zip(histories, models, measured, strict=True):
            history.record(each, loss, validation, *(test or task.test)(each))
        return [client.tested for client in clients]

    def one_round(number: int) -> None:
        before_round()
        updates = federation.train()
        after = evaluate(updates) if late else federation.test()
        federation.aggregate(updates, number)
        before = federation.test() if late else evaluate(updates)
        counts = [([total(each)] if shared else each) for each in (before, after)]
        for history, *local in zip(histories, *counts, strict=True):
            history.record_local(*local)

    run_rounds(task, histories, one_round)
    return RunResult(
        histories, boundary.communication.rows(), [] if shared else task.client_facts()
    )


def _judged_by_owners(
    task: Task,
    federation: Federation,
    boundary: Boundary,
    test: Callable[[Any], GlobalAccuracy],
    model: Any,
    before_round: Callable[[], None],
) -> RunResult:
    judged = OwnersHistory()

    def one_round(number: int) -> None:
        before_round()
        updates = federation.train()
        after = federation.scores()
        federation.aggregate(updates, number)
        accuracy = test(model) if model is not None else None
        judged.record(mean_loss(updates), federation.scores(), after, model, accuracy)

    run_rounds(task, [judged.history], one_round)
    return RunResult(
        [judged.history], boundary.communication.rows(), task.client_facts(), owners=judged
    )
