"""FedProx, SCAFFOLD, FedAdam and FedYogi against their algorithms, written out."""

from functools import partial

import numpy as np
import pytest
import torch

from divided import random_task
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Update
from feddep.methods.basic import fedavg
from feddep.methods.method import BUILT_IN_ENCODERS
from feddep.methods.optimisation import ServerOptimizerParameters
from feddep.methods.optimisation.fedopt import AdaptiveServer
from feddep.methods.optimisation.fedprox import ProximalClient
from feddep.methods.optimisation.scaffold import ScaffoldClient, controls, with_control
from feddep.utils.errors import ConfigError
from method_tasks import run_on, task_of


def curve(result):
    return result.histories[0].loss, result.histories[0].test


def test_without_their_terms_they_are_fedavg():
    plain = curve(run_on(task_of("fedavg"), "fedavg"))
    assert curve(run_on(task_of("fedprox"), "fedprox", mu=0.0)) == plain
    alone = task_of("fedavg", clients=1)
    expected, found = run_on(alone, "fedavg"), run_on(alone, "scaffold")
    np.testing.assert_allclose(found.histories[0].loss, expected.histories[0].loss, rtol=1e-4)


def test_a_proximal_client_stays_near():
    task = random_task()
    model = task.new_model()
    part = task.subgraphs()[0]
    moved = []
    for mu in (0.0, 1.0, 100.0):
        boundary = Boundary({"model": schema_of(model), **REPORTS})
        setting = task.setting.replace(learning_rate=0.01, local_epochs=20)
        object.__setattr__(task, "setting", setting)
        client = fedavg.new_client(task, 0, part, boundary, partial(ProximalClient, mu=mu))
        client.load(model.state_dict())
        weights = client.update().weights
        moved.append(float(sum((weights[name] - tensor).square().sum() for name, tensor in model.state_dict().items())))
    assert moved[0] > moved[1] > moved[2]


def test_the_proximal_term_is_its_formula():
    task = random_task()
    model, other = task.new_model(), task.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    client = fedavg.new_client(task, 0, task.subgraphs()[0], boundary, partial(ProximalClient, mu=0.6))
    client.load(model.state_dict())
    client.given = [weight.detach().clone() for weight in model.parameters()]
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(0.5)
    count = sum(weight.numel() for weight in other.parameters())
    assert float(client.learner.regularizer(other)) == pytest.approx(0.3 * 0.25 * count, rel=1e-4)


@pytest.mark.parametrize("yogi", [False, True])
def test_a_server_optimiser_is_its_algorithm(yogi: bool):
    how = ServerOptimizerParameters(server_learning_rate=0.1, beta1=0.8, beta2=0.7, tau=0.01)
    rng = np.random.default_rng(0)
    start, means = rng.normal(size=5), rng.normal(size=(4, 5))
    server = AdaptiveServer({"w": torch.from_numpy(start)}, params=how, yogi=yogi)
    w, m, v = start.copy(), np.zeros(5), np.full(5, 0.01**2)
    for mean in means:
        server.aggregate([Update({"w": torch.from_numpy(mean)}, 1, 0.0)])
        change = mean - w
        m = 0.8 * m + 0.2 * change
        v = v - 0.3 * change**2 * np.sign(v - change**2) if yogi else 0.7 * v + 0.3 * change**2
        w = w + 0.1 * m / (np.sqrt(v) + 0.01)
        np.testing.assert_allclose(server.weights["w"].numpy(), w)


def test_scaffold_is_its_algorithm():
    """Full batches without sampling noise: g_i is the gradient of a client's loss, and a round is Algorithm 1, option II."""
    task = random_task(clients=2, fanout=30)
    setting = task.setting.replace(learning_rate=0.1, batch_size=100, local_epochs=2, layers=1, fanout=30)
    object.__setattr__(task, "setting", setting)
    model = with_control(task.new_model())
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    parts = task.subgraphs()
    clients = [
        fedavg.new_client(task, i, part, boundary, ScaffoldClient, with_control(task.new_model())) for i, part in enumerate(parts)
    ]
    sizes = np.array([len(split.train) for _, split in parts], dtype=float)
    shared = [torch.zeros_like(weight) for weight in model.parameters()]
    own = [list(shared) for _ in clients]
    weights = [weight.detach().clone() for weight in model.parameters()]
    for _ in range(2):
        updates = []
        for i, client in enumerate(clients):
            state = model.state_dict()
            client.load(state)
            sent = client.update().weights
            y = [sent[name] for name, _ in model.named_parameters()]
            drift = [(w - moved) / (2 * 0.1) for w, moved in zip(weights, y, strict=True)]
            own[i] = [c_i - c + d for c_i, c, d in zip(own[i], shared, drift, strict=True)]
            buffers = [sent[name] for name in sent if name.startswith("control_")]
            for mine, theirs in zip(own[i], buffers, strict=True):
                torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-6)
            updates.append(sent)
        share = sizes / sizes.sum()
        mean = {name: sum(float(s) * update[name] for s, update in zip(share, updates, strict=True)) for name in updates[0]}
        model.load_state_dict(mean)
        weights = [weight.detach().clone() for weight in model.parameters()]
        shared = controls(model)
        for k, c in enumerate(shared):
            torch.testing.assert_close(
                c, sum(float(s) * own_i[k] for s, own_i in zip(share, own, strict=True)), rtol=1e-4, atol=1e-6
            )
        shared = [c.clone() for c in shared]


def test_scaffold_corrects_what_it_says():
    """The gradient of the loss and the regularizer together is g_i − c_i + c."""
    task = random_task(clients=2)
    boundary = Boundary({"model": schema_of(with_control(task.new_model())), **REPORTS})
    model = with_control(task.new_model())
    client = fedavg.new_client(task, 0, task.subgraphs()[0], boundary, ScaffoldClient, model)
    state = {
        name: torch.full_like(value, 2.0) if name.startswith("control_") else value for name, value in model.state_dict().items()
    }
    client.load(state)
    client.own = [torch.full_like(weight, 0.5) for weight in model.parameters()]
    client.learner.regularizer(model).backward()
    assert all(torch.allclose(weight.grad, torch.full_like(weight, 1.5)) for weight in model.parameters())


def test_scaffold_needs_plain_sgd():
    task = task_of("scaffold")
    object.__setattr__(task, "setting", task.setting.replace(optimizer="adam"))
    with pytest.raises(ConfigError):
        run_on(task, "scaffold")


def test_more_epochs_and_other_layers():
    task = task_of("fedavg")
    longer = task_of("fedavg")
    object.__setattr__(longer, "setting", task.setting.replace(local_epochs=3))
    assert curve(run_on(task, "fedavg_more_local")) == curve(run_on(longer, "fedavg"))
    closed = task_of("fedavg")
    object.__setattr__(closed, "setting", task.setting.replace(encoder="sage_selfloop"))
    assert curve(run_on(task, "fedavg_selfloop")) == curve(run_on(closed, "fedavg"))


@pytest.mark.parametrize("encoder", BUILT_IN_ENCODERS)
@pytest.mark.parametrize("name", ["global", "local", "fedavg", "fedprox", "fedavg_oracle", "fedsage_plus", "locsage_plus"])
def test_methods_train_every_encoder(name: str, encoder: str):
    task = task_of(name)
    object.__setattr__(task, "setting", task.setting.replace(encoder=encoder, rounds=2))
    few = {"generator_local_epochs": 1, "generator_federated_epochs": 0 if name == "locsage_plus" else 1, "generator_width": 8}
    result = run_on(task, name, **(few if "sage" in name else {}))
    assert all(np.isfinite(history.loss).all() for history in result.histories)


@pytest.mark.parametrize("encoder", BUILT_IN_ENCODERS)
def test_feddep_trains_every_encoder(encoder: str):
    task = task_of("feddep")
    object.__setattr__(task, "setting", task.setting.replace(encoder=encoder, rounds=2))
    few = {"pretraining_epochs": 2, "embedding": 8, "prototypes": 3, "generator_epochs": 2, "count_bias": 2.0}
    assert np.isfinite(run_on(task, "feddep", fused="authors", **few).histories[0].loss).all()


def test_an_encoder_that_a_method_does_not_know():
    task = task_of("fedgnn")
    object.__setattr__(task, "setting", task.setting.replace(encoder="gcn"))
    with pytest.raises(ConfigError):
        run_on(task, "fedgnn")
