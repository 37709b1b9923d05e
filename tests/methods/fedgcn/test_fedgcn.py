"""FedGCN: sums after the exchange are those of the global graph, and with two hops so are its
logits.
"""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from scipy.stats import norm

from divided import random_task, tasks
from feddep.federation.boundary import Boundary
from feddep.graph.graph import normalised_adjacency
from feddep.methods.fedgcn import fedgcn, noised
from feddep.methods.shared.cross_edges import cross_edges
from feddep.nn.encoders import GCN
from feddep.training.evaluator import Evaluator
from method_tasks import parameters_of, run_on, task_of


def exchanged(task, edges, hops, noise=0.0, observers=()):
    boundary = Boundary(fedgcn._messages(task, edges, hops), observers)
    known = fedgcn.known_rows(task, boundary, edges)
    return fedgcn.exchange(task, boundary, edges, known, hops, noise)


@given(tasks())
def test_the_exchange_gives_the_rows_of_the_global_graph(task):
    edges = cross_edges(task)
    truth = (normalised_adjacency(task.graph) @ task.graph.features).toarray()
    for hops in (1, 2):
        for own, rows in zip(edges, exchanged(task, edges, hops), strict=True):
            known = np.concatenate([own.nodes, own.outside]) if hops == 2 else own.nodes
            np.testing.assert_allclose(rows.numpy(), truth[known], rtol=1e-4, atol=1e-6)


def test_it_is_a_gcn_on_the_global_graph():
    task = random_task()
    model, plain = fedgcn.new_model(task), GCN(*task.model_sizes)
    plain.load_state_dict(model.state_dict())
    aggregated = normalised_adjacency(task.graph) @ task.graph.features
    summed = dataclasses.replace(task.graph, features=aggregated.tocsr())
    found = Evaluator(summed, "cpu", normalised_adjacency).logits(model)
    torch.testing.assert_close(
        found,
        Evaluator(task.graph, "cpu", normalised_adjacency).logits(plain),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("hops", [1, 2])
def test_with_two_hops_owners_classify_as_on_the_global_graph(hops):
    curve = run_on(task_of("fedgcn"), "fedgcn", hops=hops).curve
    same = curve["local_before"] == pytest.approx(curve["test"])
    assert same == (hops == 2)


def sent_by(task, hops, noise=0.0):
    """What each client sends, and the rows that each ends with."""
    sent, edges = {}, cross_edges(task)

    def listen(client, direction, kind, payload):
        if direction == "up" and kind == fedgcn.SUMS:
            sent[client] = payload["sums"]

    return sent, exchanged(task, edges, hops, noise, (listen,))


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
def test_the_noise_multiplier_is_the_least_of_the_gaussian_mechanism(epsilon):
    def delta(sigma):
        return norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(
            -0.5 / sigma - epsilon * sigma
        )

    sigma = noised.noise_multiplier(epsilon, 1e-5)
    assert delta(sigma) <= 1e-5 < delta(0.999 * sigma)


def test_rows_are_bounded_and_shorter_ones_stay():
    rows = np.array([[3, 4, 0], [0, 0.07, 0], [0, 0.01, 0], [0, 0, 0]], dtype=np.float32)
    np.testing.assert_allclose(
        noised.bounded(sp.csr_matrix(rows), 0.05).toarray(),
        [[0.03, 0.04, 0], [0, 0.05, 0], [0, 0.01, 0], [0, 0, 0]],
        rtol=1e-6,
    )


@pytest.mark.parametrize("hops", [1, 2])
def test_what_a_client_sends_moves_by_no_more_than_noise_is_made_for(hops):
    """The noise's standard deviation over ``noise`` is the largest move where one node's features
    move by 1; it is reached.
    """
    task = task_of("fedgcn_noised")
    exact, _ = sent_by(task, hops)
    moves = dict.fromkeys(exact, 0.0)
    width = task.graph.num_features
    for nodes in np.split(
        np.arange(task.graph.num_nodes), range(width, task.graph.num_nodes, width)
    ):
        features = task.graph.features.toarray()
        features[nodes, nodes - nodes[0]] += 1  # a column a node, which no other column reads
        moved = dataclasses.replace(
            task, graph=dataclasses.replace(task.graph, features=sp.csr_matrix(features))
        )
        for client, sums in sent_by(moved, hops)[0].items():
            moves[client] = max(moves[client], float((sums - exact[client]).norm(dim=0).max()))
    changed, _ = sent_by(task, hops, noise=3.0)
    for client, sums in changed.items():
        assert float((sums - exact[client]).std()) == pytest.approx(3 * moves[client], rel=0.05)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_client_is_left_with_the_noise_of_the_others_alone(hops):
    task = task_of("fedgcn_noised")
    edges = cross_edges(task)
    (exact, truth), (changed, found) = sent_by(task, hops), sent_by(task, hops, noise=3.0)
    noise = torch.zeros(len(edges), task.graph.num_nodes, task.graph.num_features)
    for client, own in enumerate(edges):
        noise[client, fedgcn._told(own, hops)] = changed[client] - exact[client]
    for client, own in enumerate(edges):
        known = np.concatenate([own.nodes, own.outside]) if hops == 2 else own.nodes
        others = noise.sum(dim=0) - noise[client]
        torch.testing.assert_close(
            found[client] - truth[client], others[known], rtol=1e-3, atol=1e-4
        )


def test_bounded_features_that_may_be_negative_are_twice_the_bound_apart(monkeypatch):
    task, given = task_of("fedgcn_noised"), []
    monkeypatch.setattr(fedgcn, "run", lambda task, parameters, noise: given.append(noise))
    parameters = parameters_of("fedgcn_noised", clip=5.0)
    negative = dataclasses.replace(
        task, graph=dataclasses.replace(task.graph, features=-task.graph.features)
    )
    for each in (task, negative):
        noised.run(each, parameters)
    sigma = noised.noise_multiplier(4.0, 1e-5)
    assert given == pytest.approx([5 * math.sqrt(2) * sigma, 10 * sigma])
