"""The loop of all federated methods: federated averaging (McMahan et al., 2017), with any server
and any clients.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from feddep.federation.boundary import Boundary
from feddep.federation.client import Client, Update
from feddep.federation.server import Server
from feddep.training.evaluation import Counts, GlobalAccuracy, Loss
from feddep.training.history import History
from feddep.training.rounds import run_rounds
from feddep.training.task import RunResult, Task
from feddep.training.together import Together

Exchange = Callable[[int], None]
"""Called whenever all clients have taken over the server's weights: with 0 before the first round,
then with its number.
"""


class Federation:
    """A server, its clients, and what happens between them in a round."""

    def __init__(
        self,
        server: Server,
        clients: Sequence[Client],
        exchange: Exchange | None = None,
        stacked: bool | None = None,
    ) -> None:
        """Send the server's initial weights to all clients; ``exchange`` is what else is exchanged
        when weights are sent, and ``stacked`` as of
        :class:`feddep.training.task.Task`.
        """
        self.server = server
        self.clients = clients
        self._exchange = exchange
        self._together = Together(stacked)
        self._distribute(0)

    def train(self) -> list[Update]:
        """All clients do their local steps."""
        return self._together.run([client.update for client in self.clients])

    def aggregate(self, updates: Sequence[Update], number: int) -> None:
        """The server makes new weights of the clients' updates in the round of this number, and
        sends them.
        """
        self.server.aggregate(updates)
        self._distribute(number)

    def evaluate(self, report: bool) -> Counts:
        """Nodes that each client's model classifies right as it is now, on the client's own
        subgraph; validation counts are sent where ``report`` is true.
        """
        return Counts.of(
            self._together.run([partial(client.evaluate, report) for client in self.clients])
        )

    def _distribute(self, done: int) -> None:
        for client in self.clients:
            if weights := self.server.weights_for(client.number):
                client.load(weights)
        if self._exchange is not None:
            self._exchange(done)


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

    All clients' models are evaluated on their own subgraphs before and after the local steps.  Who
    is judged (:attr:`feddep.training.task.Task.evaluation`) decides which validation counts clients
    report, and which models are tested on the global graph and kept at their best round: the
    server's weights in one model; or a model a client, at the moment that is judged; where owners
    judge, the server's, if there is one.

    Args:
        task: the task.
        model: the classifier with its initial weights; where the server's weights are one model for
            all, it holds them whenever ``exchange`` or ``test`` is called.
        boundary: that of the clients, which counts their messages.
        clients: the clients.
        test: accuracies of a model on the global graph; by default
            :meth:`feddep.training.task.Task.test`.
        exchange: what else is exchanged when weights are distributed.
        server: the server; by default one that averages, with the model's weights.
        before_round: called at the beginning of each round.
    """
    server = Server(model.state_dict(), task.setting.client_weights) if server is None else server
    owners, late = task.evaluation == "owners", task.evaluation == "local_after"
    models = [model]
    if not task.shared:
        models = [] if owners else [client.model for client in clients]
    history = History(task.evaluation, task.shared or owners)

    def exchange_with_model(done: int) -> None:
        if task.shared:
            model.load_state_dict(server.weights)
        if exchange is not None:
            exchange(done)

    def judge(losses: Sequence[Loss], counts: Counts) -> list[GlobalAccuracy]:
        tested = [(test or task.test)(each) for each in models]
        history.keep(models, losses, counts)
        return tested

    federation = Federation(server, clients, exchange_with_model, task.stacked)

    def one_round(number: int) -> None:
        before_round()
        updates = federation.train()
        losses = [(update.nodes, update.loss) for update in updates]
        after = federation.evaluate(report=owners or late)
        on_graph = judge(losses, after) if late else []
        federation.aggregate(updates, number)
        before = federation.evaluate(report=not late)
        on_graph = on_graph or judge(losses, before)
        history.record(losses, before, after, on_graph)

    run_rounds(task, history, one_round)
    return RunResult(
        history,
        boundary.communication.rows(),
        task.client_facts() if owners or not task.shared else [],
    )
