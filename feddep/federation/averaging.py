"""The loop of all federated methods: federated averaging (McMahan et al., 2017), with any server
and any clients.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from feddep.federation.boundary import Boundary
from feddep.federation.client import Client, Update
from feddep.federation.server import Server
from feddep.training.config import TrainingConfig
from feddep.training.evaluation import UNKNOWN, Counts, GlobalAccuracy, Loss
from feddep.training.history import History
from feddep.training.rounds import run_rounds
from feddep.training.task import RunResult, Task
from feddep.training.together import Together
from feddep.utils import seeding

Exchange = Callable[[int], None]
"""Called whenever all clients have taken over the server's weights: with 0 before the first round,
then with its number.
"""


class Absence:
    """Draws which clients train in a round, and whose updates reach the server, from a stream of
    the run.  New clients always train, and their updates never reach it.
    """

    def __init__(
        self,
        setting: TrainingConfig,
        clients: Sequence[Client],
        seed: int,
        new_clients: Collection[int] = (),
    ) -> None:
        """Set up the draws of a setting's ``participation``, ``participants`` and
        ``lost_updates`` among the clients that are no ``new_clients``.
        """
        self.new_clients = new_clients
        self._known = [i for i in range(len(clients)) if i not in new_clients]
        self._rng = seeding.generator(seed, "absence")
        self._number = max(1, round(setting.participation * len(self._known)))
        self._lost = setting.lost_updates
        nodes = np.array([clients[i].evaluator.graph.num_nodes for i in self._known])
        by_nodes = setting.participants == "nodes"
        self._probability = nodes / nodes.sum() if by_nodes else None

    def draw(self) -> tuple[set[int], set[int]]:
        """The numbers of the clients that train in a round, and of those among them whose updates
        are lost.
        """
        drawn = self._rng.choice(self._known, self._number, replace=False, p=self._probability)
        lost = drawn[self._rng.random(self._number) < self._lost]
        return {*drawn.tolist(), *self.new_clients}, {*lost.tolist(), *self.new_clients}


class Federation:
    """A server, its clients, and what happens between them in a round."""

    def __init__(
        self,
        server: Server,
        clients: Sequence[Client],
        exchange: Exchange | None = None,
        stacked: bool | None = None,
        absence: Absence | None = None,
    ) -> None:
        """Send the server's initial weights to all clients; ``exchange`` is what else is exchanged
        when weights are sent, ``stacked`` as of :class:`feddep.training.task.Task`, and ``absence``
        draws who is absent, by default nobody.
        """
        self.server = server
        self.clients = clients
        self._exchange = exchange
        self._together = Together(stacked)
        self._absence = absence
        self._distribute(0)

    def train(self) -> list[Update]:
        """The clients of a round do their local steps.

        Returns:
            The updates that reach the server, in the order of clients.
        """
        steps: list[Callable[[], Any]] = [client.update for client in self.clients]
        if self._absence is not None:
            present, lost = self._absence.draw()
            for i, client in enumerate(self.clients):
                if i not in present:
                    steps[i] = client.skip
                elif i in lost:
                    steps[i] = client.train
        found = self._together.run(steps)
        return [each for each in found if isinstance(each, Update)]

    def aggregate(self, updates: Sequence[Update], number: int) -> None:
        """The server makes new weights of the updates in the round of this number, and sends them;
        where some clients are absent and none of the others has a training node, it makes none.
        """
        if self._absence is None or any(update.nodes for update in updates):
            self.server.aggregate(updates)
        self._distribute(number)

    def evaluate(self, report: bool) -> Counts:
        """Nodes that each client's model classifies right as it is now, on the client's own
        subgraph; validation counts are sent where ``report`` is true, but by new clients.
        """
        silent = self._absence.new_clients if self._absence else ()
        evaluations = [
            partial(client.evaluate, report and client.number not in silent)
            for client in self.clients
        ]
        return Counts.of(self._together.run(evaluations))

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

    setting, absence = task.setting, None
    if setting.participation < 1 or setting.lost_updates or setting.new_clients:
        absence = Absence(setting, clients, task.seed, task.new_clients)
    federation = Federation(server, clients, exchange_with_model, task.stacked, absence)

    def one_round(number: int) -> None:
        before_round()
        updates = federation.train()
        reported = {update.client: (update.nodes, update.loss) for update in updates}
        losses = [reported.get(i, UNKNOWN) for i in range(len(clients))]
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
