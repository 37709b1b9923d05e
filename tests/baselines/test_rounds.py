"""Averaging with an exchange is averaging, with an exchange at the right times."""

import numpy as np
import torch
from divided import random_problem

from feddep.baselines.rounds import averaging_with_exchange
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.server import Server


def federation(problem):
    model = problem.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    clients = [
        Client.on_subgraph(i, problem.new_model(), graph, split, problem.setting, 0, boundary, "cpu")
        for i, (graph, split) in enumerate(problem.subgraphs())
    ]
    return Server(model.state_dict()), clients, boundary


def test_without_anything_to_exchange_it_is_federated_averaging():
    problem = random_problem(dropout=0.3)
    courses, servers, ledgers = [], [], []
    for train in (federated_averaging, lambda *rest: averaging_with_exchange(*rest[:3], lambda done: None, rest[3])):
        course = []
        server, clients, boundary = federation(problem)
        train(server, clients, range(1, 4), lambda *measured, course=course: course.append(measured))
        courses.append(course)
        servers.append(server)
        ledgers.append(boundary.ledger.rows())
    assert courses[0] == courses[1]
    assert ledgers[0] == ledgers[1]
    for name, tensor in servers[0].weights.items():
        assert torch.equal(tensor, servers[1].weights[name])


def test_exchanges_come_after_new_weights_and_before_their_use(monkeypatch):
    events = []
    for name in ("load", "train", "validate"):
        method = getattr(Client, name)
        monkeypatch.setattr(Client, name, lambda self, *a, name=name, method=method: (events.append(name), method(self, *a))[1])
    server, clients, _ = federation(random_problem(clients=2))
    averaging_with_exchange(server, clients, range(1, 3), lambda done: events.append(done), lambda *_: events.append("round"))
    a_round = ["train"] * 2 + ["load"] * 2
    expected = [*["load"] * 2, 0, *a_round, 1, *["validate"] * 2, "round", *a_round, 2, *["validate"] * 2, "round"]
    assert events == expected


def test_the_measured_numbers_are_means_over_all_nodes():
    problem = random_problem(nodes=30, clients=3)
    server, clients, _ = federation(problem)
    reports = []
    for client in clients:
        client.load(server.weights)
    fresh, others, _ = federation(problem)
    averaging_with_exchange(fresh, others, range(1, 2), lambda done: None, lambda *measured: reports.append(measured))
    trained = [client.train() for client in clients]
    sizes, losses = zip(*[(float(report["nodes"]), float(report["loss"])) for _, report in trained], strict=True)
    np.testing.assert_allclose(reports[0][0], np.average(losses, weights=sizes))
