"""The loop of all federated methods: who does what when, what is measured, and what servers and
clients may change.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from divided import random_task
from feddep.federation.averaging import Federation, train_federated
from feddep.federation.boundary import Boundary, BoundaryError, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.methods.basic import fedavg
from feddep.methods.basic.fedavg import new_client
from feddep.training.evaluation import share, total
from feddep.training.evaluator import Evaluator
from feddep.training.summary import summary
from method_tasks import ROUNDS, run_on, task_of


def clients_of(task, kind=Client) -> tuple[list[Any], Boundary]:
    boundary = Boundary({"model": schema_of(task.new_model()), **REPORTS})
    return [
        new_client(task, i, part, boundary, kind) for i, part in enumerate(task.subgraphs())
    ], boundary


def test_exchanges_come_after_new_weights_and_before_their_use(monkeypatch):
    events: list[Any] = []
    for name in ("load", "update", "evaluate"):
        method = getattr(Client, name)
        monkeypatch.setattr(
            Client,
            name,
            lambda self, *a, name=name, method=method: (events.append(name), method(self, *a))[1],
        )
    task = random_task(clients=2, rounds=2)
    clients, boundary = clients_of(task)
    train_federated(task, task.new_model(), boundary, clients, exchange=events.append)
    tested = ["evaluate"] * 2
    a_round = [*["update"] * 2, *tested, *["load"] * 2]
    assert events == [*["load"] * 2, 0, *a_round, 1, *tested, *a_round, 2, *tested]


def test_the_measured_numbers_are_means_over_all_nodes():
    task = random_task(nodes=30, clients=3)
    curve = fedavg.run(task).curve
    again = Federation(Server(task.new_model().state_dict()), clients_of(task)[0])
    updates = again.train()
    np.testing.assert_allclose(
        curve["loss"][0], np.average([u.loss for u in updates], weights=[u.nodes for u in updates])
    )
    again.aggregate(updates, 1)
    right, nodes = np.array(again.evaluate(report=False).validation).sum(axis=0)
    assert curve["validation"][0] == right / nodes


def test_evaluation_draws_from_no_stream_of_the_training():
    task = random_task(dropout=0.4)
    clients, _ = clients_of(task)
    plain = Federation(Server(task.new_model().state_dict()), clients)
    expected = []
    for number in range(1, task.setting.rounds + 1):
        updates = plain.train()
        plain.aggregate(updates, number)
        expected.append([(update.nodes, update.loss) for update in updates])
    result = fedavg.run(task)
    assert result.history.losses == expected
    weights = plain.server.weights
    assert result.history.judged[0].rounds != (task.setting.rounds,) or all(
        torch.equal(tensor, weights[name]) for name, tensor in result.weights().items()
    )


class Personal(Server):
    """Sends each client's own update back to it, three halves of it."""

    def aggregate(self, updates):
        super().aggregate(updates)
        self.own = [
            {name: 1.5 * tensor for name, tensor in update.weights.items()} for update in updates
        ]

    def weights_for(self, client):
        return self.own[client] if hasattr(self, "own") else self.weights


class Recording(Client):
    """Keeps its model as it was after each round's local steps, and as it was received."""

    def update(self):
        sent = super().update()
        self.trained = [
            *getattr(self, "trained", []),
            {name: w.clone() for name, w in self.model.state_dict().items()},
        ]
        return sent

    def load(self, weights):
        super().load(weights)
        self.received = [
            *getattr(self, "received", []),
            {name: w.clone() for name, w in self.model.state_dict().items()},
        ]


def run_personal(task, evaluation):
    model, (clients, boundary) = task.new_model(), clients_of(task, Recording)
    task = dataclasses.replace(task, evaluation=evaluation, shared=False)
    return train_federated(
        task, model, boundary, clients, server=Personal(model.state_dict())
    ), clients


@pytest.mark.parametrize("evaluation", ["local_before", "local_after"])
def test_a_model_a_client_is_evaluated_at_the_moment_that_is_declared(evaluation):
    task = random_task(nodes=60, edges=120, clients=3)
    result, clients = run_personal(task, evaluation)
    assert [facts["client"] for facts in result.clients] == [0, 1, 2]
    (judged,) = result.history.judged
    history, weights = result.history, result.weights()
    for i, ((graph, split), client) in enumerate(zip(task.subgraphs(), clients, strict=True)):
        own, whole, model = Evaluator(graph), Evaluator(task.graph), task.new_model()
        for k in range(task.setting.rounds):
            for received, counts in (
                (client.received[1 + k], history.before[k]),
                (client.trained[k], history.after[k]),
            ):
                model.load_state_dict(received)
                assert (counts.validation[i], counts.test[i], counts.classes[i]) == own.counts(
                    model, split
                )
            model.load_state_dict(
                client.received[1 + k] if evaluation == "local_before" else client.trained[k]
            )
            assert history.on_graph[k][i].test == share(*whole.counts(model, task.split)[1])
            if k + 1 == judged.rounds[i]:
                kept = {name: weights[f"client{i}.{name}"] for name in model.state_dict()}
                assert all(torch.equal(kept[name], w) for name, w in model.state_dict().items())
    moment = "before" if evaluation == "local_before" else "after"
    for i, number in enumerate(judged.rounds):
        validations = [share(*each.validation[i]) for each in getattr(history, moment)]
        assert number == 1 + validations.index(max(validations))
    assert total(judged.local(judged.rounds, moment))[1] == len(task.split.test)
    first, second = (
        run_personal(task, each)[0].communication for each in ("local_before", "local_after")
    )
    assert first == second == fedavg.run(task).communication


def test_extra_tensors_are_declared_counted_and_reach_the_server():
    class Telling(Client):
        def extra(self):
            return {"degrees": torch.full((4,), float(self.number))}

    class Listening(Server):
        def aggregate(self, updates):
            heard[:] = [update.extra["degrees"].tolist() for update in updates]
            super().aggregate(updates)

    task, heard = random_task(clients=2), []
    plain = fedavg.run(task)
    told = fedavg.train_on(task, task.subgraphs(), Telling, Listening, extra={"degrees": (4,)})
    assert told.curve["loss"] == plain.curve["loss"]
    rounds = task.setting.rounds
    expected = [
        *plain.communication,
        *(
            {
                "client": i,
                "direction": "up",
                "kind": "extra",
                "messages": rounds,
                "bytes": 16 * rounds,
            }
            for i in (0, 1)
        ),
    ]
    assert told.communication == sorted(
        expected, key=lambda row: (row["client"], row["direction"], row["kind"])
    )
    assert heard == [[0.0] * 4, [1.0] * 4]
    for schema in (None, {"degrees": (5,)}, {"degree": (4,)}):
        with pytest.raises(BoundaryError):
            fedavg.train_on(task, task.subgraphs(), Telling, extra=schema)


@pytest.mark.parametrize(
    ("method", "few"),
    [
        ("fedavg", {}),
        ("global", {}),
        ("local", {}),
        ("gap", {}),
        ("fedgraph", {"episodes": 1}),
        ("answers_bayes", {}),
    ],
)
def test_users_are_told_of_every_round_and_not_of_those_before_the_training(method, few):
    told: list[dict[str, float]] = []
    result = run_on(dataclasses.replace(task_of(method), on_round=told.append), method, **few)
    curve = summary(result)["curve"]
    assert told == [
        dict(zip(curve, values, strict=True)) for values in zip(*curve.values(), strict=True)
    ]
    assert [each["round"] for each in told] == list(range(1, ROUNDS + 1))
    assert list(told[0]) == ["round", "loss", "validation", "test", "local_before", "local_after"]
