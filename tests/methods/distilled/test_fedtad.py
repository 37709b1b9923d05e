"""FedTAD: reliabilities and losses against plain loops, what is sent once, and that without
distillation it is FedAvg.
"""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from divided import random_task
from feddep.federation.client import Update
from feddep.methods.distilled import FedTADParameters
from feddep.methods.distilled.fedtad import FedTADServer, diversity, reliability, topology_embedding
from feddep.training.task import Task
from graphs import random_graph
from small_models import drawn

GCN = {"encoder": "gcn", "full_batch": True}
RNG = np.random.default_rng(0)


def test_the_topology_embedding_holds_return_probabilities():
    graph = random_graph(12, 20)
    with_self_loops = graph.adjacency.toarray() + np.eye(12)
    step = with_self_loops @ np.diag(1 / with_self_loops.sum(axis=0))
    found = topology_embedding(graph, FedTADParameters(walk_length=3), RNG)
    for length in (1, 2, 3):
        np.testing.assert_allclose(
            found[:, length - 1], np.diag(np.linalg.matrix_power(step, length)), rtol=1e-5
        )


def test_walks_visit_neighbours():
    graph = random_graph(12, 20)
    with_self_loops = graph.adjacency.toarray() + np.eye(12)
    found = topology_embedding(graph, FedTADParameters(walk_length=3, topology="walk_ids"), RNG)
    assert found.shape == (12, 6)
    for start in (0, 1, 3):
        assert np.array_equal(found[:, start], np.arange(12))
    for here, there in ((1, 2), (3, 4), (4, 5)):
        assert with_self_loops[found[:, here], found[:, there]].all()


@pytest.mark.parametrize("topology", ["return", "walk_ids"])
def test_reliability_is_its_sum(topology: str):
    graph, params, train = random_graph(12, 20), FedTADParameters(topology=topology), np.arange(7)
    f = np.hstack(
        [graph.features.toarray(), topology_embedding(graph, params, np.random.default_rng(1))]
    )
    expected = np.zeros(graph.num_classes)
    for i in train:
        around = graph.adjacency[i].indices
        cosines = [f[i] @ f[j] / np.linalg.norm(f[i]) / np.linalg.norm(f[j]) for j in around]
        expected[graph.labels[i]] += (1 + sum(cosines)) / (len(around) + 1)
    np.testing.assert_allclose(
        reliability(graph, train, params, np.random.default_rng(1)), expected, rtol=1e-5
    )


def server_of(task: Task, **changes: object) -> tuple[FedTADServer, list[Update]]:
    params = FedTADParameters(generated=9, neighbours=2, **changes)
    server = FedTADServer(task.new_model().state_dict(), "nodes", task=task, params=params)
    sent = [torch.rand(task.graph.num_classes) for _ in range(2)]
    updates = [
        Update(i, drawn(task.new_model(), i).state_dict(), 1, 0.0, {"reliability": sent[i]})
        for i in range(2)
    ]
    return server, updates


@pytest.mark.parametrize("divergence", ["l1", "kl"])
def test_losses_are_those_of_loops(divergence: str):
    """One step of SGD on the generator is against the gradient of the loss, written as loops."""
    task = random_task(clients=2, **GCN)
    server, updates = server_of(
        task, divergence=divergence, repetitions=0, semantic_weight=0.7, diversity_weight=0.3
    )
    server.aggregate(updates)
    sums = torch.stack([update.extra["reliability"] for update in updates])
    torch.testing.assert_close(server.reliability, sums / sums.sum(dim=0))
    z = torch.randn(9, 32, generator=torch.Generator().manual_seed(0))
    x, c = server.generator(z, server.classes), server.classes
    adjacency = server.joined(x)
    f = server.model.full(x, adjacency)
    loss = 0.3 * 2 * diversity(z, x)
    for k in range(2):
        f_k = server.of_clients[k].full(x, adjacency)
        for label in range(task.graph.num_classes):
            of_class, r = c == label, server.reliability[k, label]
            target = f_k[of_class].detach()
            gap = (f[of_class] - target).abs().mean()
            if divergence == "kl":
                p = target.softmax(dim=1)
                gap = (p * (p.log() - f[of_class].log_softmax(dim=1))).sum(dim=1).mean()
            loss = loss + r * (0.7 * cross_entropy(f_k[of_class], c[of_class]) - gap)
    gradients = torch.autograd.grad(loss, list(server.generator.parameters()))
    before = [weight.detach().clone() for weight in server.generator.parameters()]
    server.of_generator = torch.optim.SGD(server.generator.parameters(), lr=0.1)
    server.train_generator(z)
    expected = [old - 0.1 * gradient for old, gradient in zip(before, gradients, strict=True)]
    torch.testing.assert_close([*server.generator.parameters()], expected, rtol=1e-3, atol=1e-6)


def test_diversity_is_its_double_sum():
    z, x = torch.rand(4, 3, dtype=torch.float64), torch.rand(4, 5, dtype=torch.float64)
    terms = [
        ((z[i] - z[j]) ** 2).mean() * (x[i] - x[j]).abs().mean() for i in range(4) for j in range(4)
    ]
    assert float(diversity(z, x)) == pytest.approx(float(torch.exp(-sum(terms) / 16)))


def test_distillation_brings_the_global_model_to_the_clients():
    task = random_task(clients=2, **GCN)
    server, updates = server_of(task, repetitions=0)
    server.aggregate(updates)
    z = torch.randn(9, 32, generator=torch.Generator().manual_seed(0))
    x = server.generator(z, server.classes).detach()
    adjacency = server.joined(x)

    def gap() -> float:
        pairs = zip(server.of_clients, server.reliability, strict=True)
        outputs = server.model.full(x, adjacency)
        return float(
            sum(
                r @ server.distance(outputs, model.full(x, adjacency)) for model, r in pairs
            ).detach()
        )

    first, teachers = gap(), [model.layer0.weight.clone() for model in server.of_clients]
    for _ in range(20):
        server.train_model(z)
    assert gap() < first
    assert all(
        torch.equal(model.layer0.weight, old)
        for model, old in zip(server.of_clients, teachers, strict=True)
    )
