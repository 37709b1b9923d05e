"""The halo oracle: FedAvg where nothing is missing, the global graph's neighbourhoods where something is."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from test_frameworks import CLIENTS, problem_of

from feddep.evaluation import Evaluator
from feddep.frameworks import fedavg, halo
from feddep.frameworks.halo import Extended, Parameters
from feddep.graph import Graph
from feddep.problem import Outcome, Problem


def extended(problem: Problem, hops: int) -> Extended:
    return Extended(**{field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}, hops=hops)


def disconnected() -> Problem:
    """A problem whose clients have no edges to each other."""
    problem = problem_of("halo")
    assert problem.partition is not None
    graph, owner = problem.graph, problem.partition.client
    edges = graph.edges()
    inner = edges[owner[edges[:, 0]] == owner[edges[:, 1]]]
    return dataclasses.replace(problem, graph=Graph.from_edges(inner, graph.features, graph.labels, graph.num_classes))


def same(ours: Outcome, theirs: Outcome) -> bool:
    mine, other = ours.histories[0], theirs.histories[0]
    courses = [(each.loss, each.validation, each.test) for each in (mine, other)]
    weights = all(torch.equal(mine.best_weights[name], other.best_weights[name]) for name in other.best_weights)
    return courses[0] == courses[1] and weights and ours.ledger == theirs.ledger


def test_without_cross_client_edges_it_is_fedavg_to_the_last_bit():
    problem = disconnected()
    assert same(halo.run(problem, Parameters()), fedavg.run(problem, fedavg.Parameters()))


def test_without_hops_it_is_fedavg_and_with_them_it_is_not():
    problem = problem_of("halo")
    theirs = fedavg.run(problem, fedavg.Parameters())
    assert same(halo.run(problem, Parameters(hops=0)), theirs)
    assert not same(halo.run(problem, Parameters(hops=1)), theirs)


def test_null_means_as_many_hops_as_layers():
    problem = problem_of("halo")
    assert problem.setting.layers == 2
    default = halo.run(problem, Parameters())
    assert same(default, halo.run(problem, Parameters(hops=2)))
    assert not same(default, halo.run(problem, Parameters(hops=1)))


def test_what_crosses_is_what_crosses_in_fedavg():
    problem = problem_of("halo")
    assert halo.run(problem, Parameters()).ledger == fedavg.run(problem, fedavg.Parameters()).ledger


def test_halo_nodes_are_neither_trained_nor_validated_on():
    problem = problem_of("halo")
    assert problem.partition is not None
    parts = extended(problem, 2).subgraphs()
    for client, ((graph, split), (plain, own)) in enumerate(zip(parts, problem.subgraphs(), strict=True)):
        assert graph.num_nodes > plain.num_nodes
        assert graph.subgraph(np.arange(plain.num_nodes)).fingerprint == plain.fingerprint
        nodes = problem.partition.nodes(client)
        for name in ("train", "val", "test"):
            assert np.array_equal(getattr(split, name), getattr(own, name))
            assert np.isin(nodes[getattr(split, name)], getattr(problem.split, name)).all()


def test_with_a_hop_a_layer_a_client_sees_its_nodes_as_the_experimenter_does():
    problem = problem_of("halo")
    assert problem.partition is not None
    model = problem.new_model()
    everywhere = problem.evaluator.logits(model)
    worst: dict[int, float] = {}
    for hops in (0, 1, 2):
        errors = []
        for client, (graph, _) in enumerate(extended(problem, hops).subgraphs()):
            nodes = problem.partition.nodes(client)
            own = Evaluator(graph).logits(model)[: len(nodes)]
            errors.append(float((own - everywhere[nodes]).abs().max()))
        worst[hops] = max(errors)
    assert worst[2] < 1e-5 < worst[1] < worst[0]


@pytest.mark.parametrize("hops", [None, 1])
def test_one_client_has_no_halo(hops):
    problem = problem_of("halo", clients=1)
    assert same(halo.run(problem, Parameters(hops)), fedavg.run(problem, fedavg.Parameters()))


def test_negative_hops_are_refused():
    with pytest.raises(ValueError, match="hops must be at least 0"):
        Parameters(hops=-1)


def test_every_client_has_a_border():
    """What these tests rest on: each of the clients has cross-client edges."""
    problem: Any = problem_of("halo")
    edges, owner = problem.graph.edges(), problem.partition.client
    crossing = edges[owner[edges[:, 0]] != owner[edges[:, 1]]]
    assert set(owner[crossing].ravel()) == set(range(CLIENTS))
