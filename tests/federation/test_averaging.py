"""Averaging with an exchange is averaging, with an exchange at the right times."""

import numpy as np
import torch

from divided import random_task
from feddep.federation.averaging import federated_averaging
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.methods.basic.fedavg import new_client


def federation(task):
    model = task.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    clients = [new_client(task, i, part, boundary) for i, part in enumerate(task.subgraphs())]
    return Server(model.state_dict()), clients, boundary


def test_an_exchange_of_nothing_changes_nothing():
    task = random_task(dropout=0.3)
    courses, servers, communications = [], [], []
    for exchange in ([], [lambda done: None]):
        server, clients, boundary = federation(task)
        courses.append(list(federated_averaging(server, clients, range(1, 4), *exchange)))
        servers.append(server)
        communications.append(boundary.communication.rows())
    assert courses[0] == courses[1]
    assert communications[0] == communications[1]
    for name, tensor in servers[0].weights.items():
        assert torch.equal(tensor, servers[1].weights[name])


def test_exchanges_come_after_new_weights_and_before_their_use(monkeypatch):
    events = []
    for name in ("load", "train", "validate"):
        method = getattr(Client, name)
        monkeypatch.setattr(Client, name, lambda self, *a, name=name, method=method: (events.append(name), method(self, *a))[1])
    server, clients, _ = federation(random_task(clients=2))
    for _ in federated_averaging(server, clients, range(1, 3), events.append):
        events.append("round")
    a_round = ["train"] * 2 + ["load"] * 2
    expected = [*["load"] * 2, 0, *a_round, 1, *["validate"] * 2, "round", *a_round, 2, *["validate"] * 2, "round"]
    assert events == expected


def test_the_measured_numbers_are_means_over_all_nodes():
    task = random_task(nodes=30, clients=3)
    server, clients, _ = federation(task)
    for client in clients:
        client.load(server.weights)
    fresh, others, _ = federation(task)
    [(loss, _)] = federated_averaging(fresh, others, range(1, 2))
    trained = [client.train() for client in clients]
    sizes, losses = zip(*[(float(report["nodes"]), float(report["loss"])) for _, report in trained], strict=True)
    np.testing.assert_allclose(loss, np.average(losses, weights=sizes))
