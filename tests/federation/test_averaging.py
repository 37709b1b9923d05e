"""The loop of all federated methods: who does what when, what is measured, and what servers and clients may change."""

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from divided import random_task
from feddep.federation.averaging import Federation, train_federated
from feddep.federation.boundary import Boundary, BoundaryError, schema_of
from feddep.federation.client import REPORTS, Client, Update
from feddep.federation.server import Server
from feddep.methods.basic import fedavg
from feddep.methods.basic.fedavg import new_client
from feddep.training.evaluator import Evaluator
from feddep.training.summary import summary


def federation(task, exchange=None) -> tuple[Federation, Boundary]:
    model = task.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    clients = [new_client(task, i, part, boundary) for i, part in enumerate(task.subgraphs())]
    return Federation(Server(model.state_dict()), clients, exchange), boundary


def test_an_exchange_of_nothing_changes_nothing():
    task = random_task(dropout=0.3)
    (plain, first), (exchanging, second) = federation(task), federation(task, lambda done: None)
    assert [plain.round(k) for k in (1, 2, 3)] == [exchanging.round(k) for k in (1, 2, 3)]
    assert first.communication.rows() == second.communication.rows()
    for name, tensor in plain.server.weights.items():
        assert torch.equal(tensor, exchanging.server.weights[name])


def test_exchanges_come_after_new_weights_and_before_their_use(monkeypatch):
    events: list[Any] = []
    for name in ("load", "update", "validate"):
        method = getattr(Client, name)
        monkeypatch.setattr(Client, name, lambda self, *a, name=name, method=method: (events.append(name), method(self, *a))[1])
    rounds, _ = federation(random_task(clients=2), events.append)
    for number in (1, 2):
        rounds.round(number)
    a_round = ["update"] * 2 + ["load"] * 2
    assert events == [*["load"] * 2, 0, *a_round, 1, *["validate"] * 2, *a_round, 2, *["validate"] * 2]


def test_the_measured_numbers_are_means_over_all_nodes():
    task = random_task(nodes=30, clients=3)
    loss, validation = federation(task)[0].round(1)
    again, _ = federation(task)
    updates = again.train()
    np.testing.assert_allclose(loss, np.average([u.loss for u in updates], weights=[u.nodes for u in updates]))
    again.aggregate(updates, 1)
    right, nodes = np.array(again.validate()).sum(axis=0)
    assert validation == right / nodes


def test_an_observed_run_measures_what_an_unobserved_one_does():
    """Nothing that is measured beside the training draws from its streams."""
    task = random_task(dropout=0.4)
    plain, _ = federation(task)
    expected = [plain.round(k) for k in (1, 2, 3)]
    history = fedavg.run(task).histories[0]
    assert [(loss, validation) for loss, validation in zip(history.loss, history.validation, strict=True)] == expected


class Personal(Server):
    """Sends each client's own update back to it, three halves of it."""

    def aggregate(self, updates):
        super().aggregate(updates)
        self.own = [{name: 1.5 * tensor for name, tensor in update.weights.items()} for update in updates]

    def weights_for(self, client):
        return self.own[client] if hasattr(self, "own") else self.weights


class Recording(Client):
    """Keeps its model as it was after each round's local steps, and as it was received."""

    def update(self):
        sent = super().update()
        self.trained = [*getattr(self, "trained", []), {name: w.clone() for name, w in self.model.state_dict().items()}]
        return sent

    def load(self, weights):
        super().load(weights)
        self.received = [*getattr(self, "received", []), {name: w.clone() for name, w in self.model.state_dict().items()}]


def run_personal(task, evaluation):
    model = task.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    clients = [new_client(task, i, part, boundary, Recording) for i, part in enumerate(task.subgraphs())]
    task = dataclasses.replace(task, evaluation=evaluation)
    return train_federated(task, model, boundary, clients, server=Personal(model.state_dict())), clients


@pytest.mark.parametrize("evaluation", ["local_before", "local_after"])
def test_a_model_a_client_is_evaluated_at_the_moment_that_is_declared(evaluation):
    task = random_task(nodes=60, edges=120, clients=3)
    result, clients = run_personal(task, evaluation)
    assert [facts["client"] for facts in result.clients] == [0, 1, 2]
    for (graph, split), client, history in zip(task.subgraphs(), clients, result.histories, strict=True):
        own, whole, model = Evaluator(graph), Evaluator(task.graph), task.new_model()
        for k in range(task.setting.rounds):
            for weights, counts in ((client.received[1 + k], history.local_before), (client.trained[k], history.local_after)):
                model.load_state_dict(weights)
                assert counts[k] == (own.correct(model, split.test)[0], len(split.test))
            model.load_state_dict(client.received[1 + k] if evaluation == "local_before" else client.trained[k])
            assert history.validation[k] == own.accuracy(model, split.val)
            assert history.test[k] == whole.accuracy(model, task.split.test)
            if k + 1 == history.best_round:
                assert all(torch.equal(history.best_weights[name], w) for name, w in model.state_dict().items())
    first, second = (run_personal(task, each)[0].communication for each in ("local_before", "local_after"))
    assert first == second == fedavg.run(task).communication


def test_extra_tensors_are_declared_counted_and_reach_the_server():
    class Telling(Client):
        def extra(self):
            return {"degrees": torch.full((4,), float(self.number))}

    class Listening(Server):
        heard: list[Update]

        def aggregate(self, updates):
            self.heard = list(updates)
            super().aggregate(updates)

    task, servers = random_task(clients=2), []

    def server(*arguments):
        servers.append(Listening(*arguments))
        return servers[-1]

    plain = fedavg.run(task)
    told = fedavg.train_on(task, task.subgraphs(), Telling, server, extra={"degrees": (4,)})
    assert told.histories[0].loss == plain.histories[0].loss
    rounds = task.setting.rounds
    expected = [
        *plain.communication,
        *({"client": i, "direction": "up", "kind": "extra", "messages": rounds, "bytes": 16 * rounds} for i in (0, 1)),
    ]
    assert told.communication == sorted(expected, key=lambda row: (row["client"], row["direction"], row["kind"]))
    assert [update.extra["degrees"].tolist() for update in servers[0].heard] == [[0.0] * 4, [1.0] * 4]
    for schema in (None, {"degrees": (5,)}, {"degree": (4,)}):
        with pytest.raises(BoundaryError):
            fedavg.train_on(task, task.subgraphs(), Telling, extra=schema)


def test_a_client_may_sit_out():
    """It says that it has learned from no nodes, sends nothing, and counts nothing."""

    class Idle(Client):
        def update(self):
            return Update(self.weights(), 0, 0.0) if self.number else super().update()

    task = random_task(clients=3)
    result = fedavg.train_on(task, task.subgraphs(), Idle)
    assert {row["client"] for row in result.communication if row["direction"] == "up" and row["kind"] == "model"} == {0}
    assert np.isfinite(result.histories[0].loss).all()


@pytest.mark.parametrize("method", ["fedavg", "global", "local", "gap"])
def test_users_are_told_of_every_round(method):
    from method_tasks import run_on, task_of

    told: list[dict[str, float]] = []
    result = run_on(dataclasses.replace(task_of(method), on_round=told.append), method)
    curve = summary(result)["curve"]
    assert told == [dict(zip(curve, values, strict=True)) for values in zip(*curve.values(), strict=True)]
    assert list(told[0]) == ["round", "loss", "validation", "test", "local_before", "local_after"]


def test_users_are_not_told_of_rounds_before_the_training():
    from method_tasks import run_on, task_of

    for method, few in (("fedgraph", {"episodes": 1}), ("fednld_answers", {"folds": 2})):
        told: list[dict[str, float]] = []
        task = dataclasses.replace(task_of(method), on_round=told.append)
        run_on(task, method, **few)
        assert [each["round"] for each in told] == list(range(1, task.setting.rounds + 1))
        assert np.isfinite([list(each.values()) for each in told]).all()


def test_equal_weights_are_the_plain_mean():
    task = random_task(clients=3)
    weights = {}
    for how in ("equal", "nodes"):
        rounds, _ = federation(task)
        rounds.server = Server(rounds.server.weights, how)
        updates = rounds.train()
        rounds.aggregate(updates, 1)
        weights[how] = rounds.server.weights
    for name, tensor in weights["equal"].items():
        torch.testing.assert_close(tensor, torch.stack([update.weights[name] for update in updates]).mean(dim=0))
    assert any((weights["nodes"][name] != tensor).any() for name, tensor in weights["equal"].items())


def test_a_client_made_with_arguments():
    made = partial(Client, kind="model")
    task = random_task(clients=2)
    assert fedavg.train_on(task, task.subgraphs(), made).histories[0].loss == fedavg.run(task).histories[0].loss
