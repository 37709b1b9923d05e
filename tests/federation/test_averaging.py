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
from feddep.training.evaluator import Evaluator
from feddep.training.history import share
from feddep.training.summary import summary
from method_tasks import ROUNDS, run_on, task_of


def clients_of(task, kind=Client) -> tuple[list[Any], Boundary]:
    boundary = Boundary({"model": schema_of(task.new_model()), **REPORTS})
    return [
        new_client(task, i, part, boundary, kind) for i, part in enumerate(task.subgraphs())
    ], boundary


def federation(task, exchange=None) -> Federation:
    return Federation(Server(task.new_model().state_dict()), clients_of(task)[0], exchange)


def test_exchanges_come_after_new_weights_and_before_their_use(monkeypatch):
    events: list[Any] = []
    for name in ("load", "update", "validate"):
        method = getattr(Client, name)
        monkeypatch.setattr(
            Client,
            name,
            lambda self, *a, name=name, method=method: (events.append(name), method(self, *a))[1],
        )
    rounds = federation(random_task(clients=2), events.append)
    for number in (1, 2):
        rounds.round(number)
    a_round = ["update"] * 2 + ["load"] * 2
    assert events == [
        *["load"] * 2,
        0,
        *a_round,
        1,
        *["validate"] * 2,
        *a_round,
        2,
        *["validate"] * 2,
    ]


def test_the_measured_numbers_are_means_over_all_nodes():
    task = random_task(nodes=30, clients=3)
    loss, validation = federation(task).round(1)
    again = federation(task)
    updates = again.train()
    np.testing.assert_allclose(
        loss, np.average([u.loss for u in updates], weights=[u.nodes for u in updates])
    )
    again.aggregate(updates, 1)
    right, nodes = np.array(again.validate()).sum(axis=0)
    assert validation == right / nodes


def test_an_observed_run_measures_what_an_unobserved_one_does():
    """Nothing that is measured beside the training draws from its streams."""
    task = random_task(dropout=0.4)
    plain = federation(task)
    expected = [plain.round(k) for k in (1, 2, 3)]
    history = fedavg.run(task).histories[0]
    assert [
        (loss, validation)
        for loss, validation in zip(history.loss, history.validation, strict=True)
    ] == expected


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
    task = dataclasses.replace(task, evaluation=evaluation)
    return train_federated(
        task, model, boundary, clients, server=Personal(model.state_dict())
    ), clients


@pytest.mark.parametrize("evaluation", ["local_before", "local_after"])
def test_a_model_a_client_is_evaluated_at_the_moment_that_is_declared(evaluation):
    task = random_task(nodes=60, edges=120, clients=3)
    result, clients = run_personal(task, evaluation)
    assert [facts["client"] for facts in result.clients] == [0, 1, 2]
    for (graph, split), client, history in zip(
        task.subgraphs(), clients, result.histories, strict=True
    ):
        own, whole, model = Evaluator(graph), Evaluator(task.graph), task.new_model()
        for k in range(task.setting.rounds):
            for weights, counts in (
                (client.received[1 + k], history.local_before),
                (client.trained[k], history.local_after),
            ):
                model.load_state_dict(weights)
                assert counts[k] == own.scores(model, split.test)[0]
            model.load_state_dict(
                client.received[1 + k] if evaluation == "local_before" else client.trained[k]
            )
            assert history.validation[k] == share(*own.scores(model, split.val)[0])
            assert history.test[k] == share(*whole.scores(model, task.split.test)[0])
            if k + 1 == history.best_round:
                assert all(
                    torch.equal(history.best_weights[name], w)
                    for name, w in model.state_dict().items()
                )
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
    assert told.histories[0].loss == plain.histories[0].loss
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
