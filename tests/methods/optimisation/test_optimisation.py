"""FedProx, SCAFFOLD, FedNova, FedAdam and FedYogi against their algorithms, written out."""

import numpy as np
import pytest
import torch

from divided import random_task
from feddep.federation.boundary import numbers
from feddep.federation.client import Update
from feddep.federation.server import weighted_mean
from feddep.methods.method import BUILT_IN_ENCODERS
from feddep.methods.optimisation import ServerOptimizerParameters
from feddep.methods.optimisation.fednova import NovaServer
from feddep.methods.optimisation.fedopt import AdaptiveServer
from feddep.methods.optimisation.fedprox import ProximalClient
from feddep.methods.optimisation.scaffold import ScaffoldClient, controls, with_control
from feddep.utils.errors import Notice
from method_tasks import run_on, task_of
from mixing import client_of
from small_models import flat


def test_the_proximal_gradient_is_that_of_its_formula():
    task = random_task()
    model, other = task.new_model(), task.new_model()
    client = client_of(task, 0, ProximalClient, mu=0.6)
    client.load(model.state_dict())
    client.update()  # which leaves the weights that it started from in its term
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(torch.linspace(-1, 1, weight.numel()).view_as(weight))
    pairs = zip(other.parameters(), model.parameters(), strict=True)
    (0.3 * sum((own - given.detach()).square().sum() for own, given in pairs)).backward()
    expected = [weight.grad for weight in other.parameters()]
    torch.testing.assert_close([*client.learner.correction(other)], expected)


@pytest.mark.parametrize("yogi", [False, True])
def test_a_server_optimiser_is_its_algorithm(yogi: bool):
    how = ServerOptimizerParameters(server_learning_rate=0.1, beta1=0.8, beta2=0.7, tau=0.01)
    rng = np.random.default_rng(0)
    start, means = rng.normal(size=5), rng.normal(size=(4, 5))
    server = AdaptiveServer({"w": torch.from_numpy(start)}, params=how, yogi=yogi)
    w, m, v = start.copy(), np.zeros(5), np.full(5, 0.01**2)
    for mean in means:
        server.aggregate([Update(0, {"w": torch.from_numpy(mean)}, 1, 0.0)])
        change = mean - w
        m = 0.8 * m + 0.2 * change
        v = v - 0.3 * change**2 * np.sign(v - change**2) if yogi else 0.7 * v + 0.3 * change**2
        w = w + 0.1 * m / (np.sqrt(v) + 0.01)
        np.testing.assert_allclose(server.weights["w"].numpy(), w)


@pytest.mark.parametrize("taus", [[2, 1, 6, 0], [3, 3, 3, 0]])
@pytest.mark.parametrize("weights", ["nodes", "equal"])
def test_fednova_counts_changes_a_step(weights: str, taus: list[int]):
    rng = np.random.default_rng(0)
    start, sent = rng.normal(size=5), rng.normal(size=(4, 5))
    nodes = np.array([8, 4, 3, 0])
    server = NovaServer({"w": torch.from_numpy(start)}, weights)
    server.aggregate(
        [
            Update(k, {"w": torch.from_numpy(w)}, n, 0.0, numbers(steps=tau))
            for k, (w, n, tau) in enumerate(zip(sent, nodes, taus, strict=True))
        ]
    )
    p = nodes / nodes.sum() if weights == "nodes" else np.full(4, 0.25)
    changes = [p[k] * (sent[k] - start) / taus[k] for k in range(3)]
    expected = start + (p @ taus) * np.sum(changes, axis=0)
    np.testing.assert_allclose(server.weights["w"].numpy(), expected)


def test_fednova_says_where_it_is_fedavg():
    with pytest.warns(Notice, match="fednova"):
        run_on(task_of("fednova", encoder="gcn", full_batch=True), "fednova")


def test_scaffold_is_its_algorithm():
    """Full batches without sampling noise: g_i is the gradient of a client's loss, and a round is
    Algorithm 1, option II.
    """
    task = random_task(
        clients=2, learning_rate=0.1, batch_size=100, local_epochs=2, layers=1, fanout=30
    )
    parts, model = task.subgraphs(), with_control(task.new_model())
    clients = [
        client_of(task, i, ScaffoldClient, with_control(task.new_model()))
        for i in range(len(parts))
    ]
    sizes = [len(split.train) for _, split in parts]
    w, names = flat(model.parameters()), [name for name, _ in model.named_parameters()]
    c = torch.zeros_like(w)
    own = [c, c]
    for _ in range(2):
        updates = []
        for i, client in enumerate(clients):
            client.load(model.state_dict())
            updates.append(client.update().weights)
            own[i] = own[i] - c + (w - flat(updates[i][name] for name in names)) / (2 * 0.1)
            sent = flat(
                tensor for name, tensor in updates[i].items() if name.startswith("control_")
            )
            torch.testing.assert_close(sent, own[i], rtol=1e-4, atol=1e-6)
        model.load_state_dict(weighted_mean(updates, sizes))
        w, c = flat(model.parameters()), flat(controls(model))
        expected = sum(size * of_client for size, of_client in zip(sizes, own, strict=True)) / sum(
            sizes
        )
        torch.testing.assert_close(c, expected, rtol=1e-4, atol=1e-6)


def test_scaffold_corrects_what_it_says():
    """What is added to the gradient of the loss is c − c_i."""
    task = random_task(clients=2)
    model = with_control(task.new_model())
    client = client_of(task, 0, ScaffoldClient, model)
    state = {
        name: torch.full_like(value, 2.0) if name.startswith("control_") else value
        for name, value in model.state_dict().items()
    }
    client.own = [torch.full_like(weight, 0.5) for weight in model.parameters()]
    client.load(state)
    expected = [torch.full_like(weight, 1.5) for weight in model.parameters()]
    torch.testing.assert_close([*client.learner.correction(model)], expected)


SMALL = {
    "feddep": {
        "fused": "authors",
        "pretraining_epochs": 2,
        "embedding": 8,
        "generator_epochs": 2,
        "count_bias": 2.0,
    },
    "fedsage_plus": {
        "generator_local_epochs": 1,
        "generator_federated_epochs": 1,
        "generator_width": 8,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("encoder", BUILT_IN_ENCODERS)
@pytest.mark.parametrize("name", ["fedavg", *SMALL])
def test_methods_train_every_encoder(name: str, encoder: str):
    result = run_on(task_of(name, encoder=encoder, rounds=2), name, **SMALL.get(name, {}))
    assert np.isfinite(result.history.losses).all()
