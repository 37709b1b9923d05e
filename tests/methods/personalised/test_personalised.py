"""The personalised methods against their equations, written out on tiny graphs, and against FedAvg
and Local.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from feddep.federation.client import Client, Update
from feddep.federation.server import weighted_mean
from feddep.methods.optimisation.scaffold import with_control
from feddep.methods.personalised import FedALAParameters, FedDCParameters, MoonParameters
from feddep.methods.personalised.ditto import DittoClient
from feddep.methods.personalised.fedala import MixingClient
from feddep.methods.personalised.feddc import DriftClient
from feddep.methods.personalised.fedper import upper_weights
from feddep.methods.personalised.fedproto import PrototypeClient, PrototypeServer, with_prototypes
from feddep.methods.personalised.moon import ContrastiveClient, embeddings
from feddep.training.history import History
from feddep.training.task import Task
from graphs import random_graph
from method_tasks import observed, owned_task, run_on
from mixing import client_of
from small_models import flat

ROUNDS, RATE = 4, 0.1
SETTING = {
    **{"optimizer": "sgd", "learning_rate": RATE, "dropout": 0.0},
    **{"rounds": ROUNDS, "local_epochs": 2, "hidden_channels": 8},
}


def task(**changes: Any) -> Task:
    """Three clients of a random graph; class 0 is missing at client 2."""
    graph, owner = random_graph(60, 150), np.arange(60) % 3
    labels = np.where((owner == 2) & (graph.labels == 0), 1, graph.labels)
    graph = dataclasses.replace(graph, labels=labels)
    return owned_task("a task", graph, owner, **{**SETTING, **changes})


def judged(name: str, given: Task | None = None, **parameters: Any) -> History:
    """What owners find of a method."""
    history = run_on(given or task(), name, **parameters).history
    assert history.evaluation == "owners"
    return history


def gradient(client: Client, weights: torch.Tensor, given: Task) -> torch.Tensor:
    """The gradient of a client's cross-entropy at weights in one row."""
    model = given.new_model()
    torch.nn.utils.vector_to_parameters(weights, model.parameters())
    inputs, nodes = client.evaluator, client.split.train
    cross_entropy(
        model.full(inputs.features, inputs.adjacency)[nodes], inputs.labels[nodes]
    ).backward()
    return flat(weight.grad for weight in model.parameters())


def shifted(model: Any, by: float) -> dict[str, torch.Tensor]:
    """The state of a model with all weights moved."""
    weights = dict(model.named_parameters())
    return {
        name: tensor + by if name in weights else tensor
        for name, tensor in model.state_dict().items()
    }


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_the_last_layer_of_fedper_stays(encoder: str):
    given = task(encoder=encoder, full_batch=encoder != "sage")
    _, crossed = observed(given, "fedper")
    names = [name for name, _ in given.new_model().named_parameters()]
    first = [name for name in names if name.split(".")[0][-1] == "0"]
    assert 0 < len(first) < len(names)
    assert {tuple(each.payload) for each in crossed if each.kind == "model"} == {tuple(first)}
    assert list(upper_weights(given.new_model(), 1)) == names[len(first) :]
    assert list(upper_weights(given.new_model(), 9)) == names


def test_ditto_without_pull_is_local_and_what_it_sends_is_fedavg():
    assert judged("ditto", personal_weight=0.0).after == judged("local").after
    models = [
        [each.payload for each in observed(task(), name)[1] if each.kind == "model"]
        for name in ("ditto", "fedavg")
    ]
    torch.testing.assert_close(*models, rtol=0, atol=0)


def test_dittos_personal_steps_are_its_equation():
    given = task()
    client = client_of(given, 0, DittoClient, weight=0.7)
    v = flat(client.model.parameters())
    for shift in (0.0, 0.3):
        client.load(shifted(given.new_model(), shift))
        client.update()
        w = flat(given.new_model().parameters()) + shift
        for _ in range(2):
            v = v - RATE * (gradient(client, v, given) + 0.7 * (v - w))
    torch.testing.assert_close(flat(client.model.parameters()), v, rtol=1e-4, atol=1e-6)


def test_the_contrast_is_its_formula():
    given = task()
    client = client_of(given, 0, ContrastiveClient, params=MoonParameters(mu=2.0, temperature=0.3))
    client.update()
    previous = embeddings(client.model, client.evaluator)
    client.load(shifted(given.new_model(), 0.1))
    received = embeddings(client.model, client.evaluator)
    client.train()
    z = previous.flip(1) + 0.1
    terms = []
    for i in range(len(z)):
        to_received, to_previous = (
            np.exp(float(z[i] @ other[i] / max(z[i].norm() * other[i].norm(), 1e-8)) / 0.3)
            for other in (received, previous)
        )
        terms.append(-np.log(to_received / (to_received + to_previous)))
    client.previous = previous  # that of the round before, as it was while the client trained
    assert float(client.contrast(client.model, z, z)) == pytest.approx(2 * np.mean(terms), rel=1e-4)


def test_a_clients_prototypes_and_their_pull_are_their_formulas():
    given = task()
    client = client_of(given, 0, PrototypeClient, with_prototypes(given.new_model()), weight=0.6)
    client.update()
    hidden = embeddings(client.model, client.evaluator)
    labels = client.evaluator.labels
    train = client.split.train
    for label in range(3):
        of_class = [hidden[node] for node in train if labels[node] == label]
        torch.testing.assert_close(
            client.model.prototypes[label], torch.stack(of_class).mean(dim=0)
        )
    client.model.known[1] = 0
    client.model.prototypes += 0.2
    z = hidden + 1
    terms = [
        float(((z[i] - client.model.prototypes[labels[i]]) ** 2).mean()) * (int(labels[i]) != 1)
        for i in train
    ]
    assert float(client.pull(client.model, z, z)) == pytest.approx(0.6 * np.mean(terms), rel=1e-4)


def test_a_class_is_averaged_over_the_clients_that_have_it():
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(3, 4, 5))
    known = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]])
    prototypes *= known[..., None]
    server = PrototypeServer({"prototypes": torch.zeros(4, 5), "known": torch.zeros(4)})
    sent = [
        {"prototypes": torch.from_numpy(p), "known": torch.from_numpy(k).double()}
        for p, k in zip(prototypes, known, strict=True)
    ]
    updates = [Update(i, sent[i], n, 0.0) for i, n in enumerate((1, 5, 9))]
    server.aggregate(updates)
    for label in range(4):
        having = [prototypes[i, label] for i in range(3) if known[i, label]]
        expected = np.mean(having, axis=0) if having else np.zeros(5)
        np.testing.assert_allclose(server.weights["prototypes"][label], expected)
    assert server.weights["known"].tolist() == [1, 1, 1, 0]


def test_the_slip_shrinks_prototypes_of_classes_that_a_client_lacks():
    crossed = (
        observed(task(rounds=1), "fedproto", mean=mean)[1] for mean in ("written", "openfgl")
    )
    last = ([each.payload for each in every if each.direction == "down"][-1] for every in crossed)
    written, slip = (sent["prototypes"].norm(dim=1) for sent in last)
    assert slip[0] < 0.9 * written[0]
    torch.testing.assert_close(slip[1:], written[1:], rtol=0.1, atol=0.0)


@pytest.mark.parametrize("correction", ["written", "openfgl"])
def test_feddc_is_its_algorithm(correction: str):
    given = task()
    written = correction == "written"
    parts, model = given.subgraphs(), with_control(given.new_model())
    params = FedDCParameters(alpha=0.3, correction=correction)
    clients = [
        client_of(given, i, DriftClient, with_control(given.new_model()), params=params)
        for i in range(len(parts))
    ]
    shares = [len(split.train) for _, split in parts]
    names = [name for name, _ in model.named_parameters()]
    w = flat(model.parameters())
    mean, drift, last = torch.zeros_like(w), [torch.zeros_like(w)] * 3, [torch.zeros_like(w)] * 3
    for number in range(3):
        updates, expected = [], []
        for i, client in enumerate(clients):
            client.load(model.state_dict())
            updates.append(client.update().weights)
            theta = w
            for _ in range(2):
                step = gradient(client, theta, given)
                if written or number:
                    step = (
                        step
                        + 0.3 * (drift[i] + theta - w)
                        + (last[i] - (mean if written else 0)) / (2 * RATE)
                    )
                theta = theta - RATE * step
            drift[i] = drift[i] + (theta - w if written else last[i])
            last[i] = theta - w
            expected.append({"sent": theta + drift[i], "change": last[i]})
            torch.testing.assert_close(
                flat(updates[i][name] for name in names), expected[i]["sent"], rtol=1e-3, atol=1e-5
            )
        model.load_state_dict(weighted_mean(updates, shares))
        of_both = weighted_mean(expected, shares)
        w, mean = of_both["sent"], of_both["change"]
        torch.testing.assert_close(flat(model.parameters()), w, rtol=1e-3, atol=1e-5)


def test_mixing_weights_follow_the_gradient():
    """By a network of one layer, all of which is mixed: 11 steps at first, as few losses tell
    nothing, and then one.
    """
    given = task(layers=1)
    client = client_of(
        given, 0, MixingClient, params=FedALAParameters(mixing_share=1.0, mixing_rate=3.0), seed=0
    )
    client.load(given.new_model().state_dict())
    assert not client.mixing  # nothing to mix yet
    w = torch.ones_like(flat(client.model.parameters()))
    for steps in (11, 1):
        client.update()
        own = flat(client.model.parameters())
        sent = shifted(given.new_model(), -0.2)
        change = flat(given.new_model().parameters()) - 0.2 - own
        for _ in range(steps):
            w = (w - 3 * gradient(client, own + change * w, given) * change).clamp(0, 1)
        client.load(sent)
        torch.testing.assert_close(flat(client.mixing), w, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(
            flat(client.model.parameters()), own + change * w, rtol=1e-3, atol=1e-5
        )
        assert 0 < w.mean() < 1


def test_fedala_mixes_upper_layers_only_and_draws_a_share():
    given = task()
    client = client_of(given, 0, MixingClient, params=FedALAParameters(mixing_rate=30.0), seed=0)
    client.update()
    sent = shifted(given.new_model(), -0.2)
    client.load(sent)
    assert torch.equal(client.model.layer0.weight, sent["layer0.weight"])
    assert not torch.equal(client.model.layer1.weight, sent["layer1.weight"])
    plain, mixed = judged("fedavg"), judged("fedala", mixing_rate=1e-30)
    np.testing.assert_allclose(mixed.losses, plain.losses, rtol=1e-4)  # W stays 1
    assert (
        judged("fedala", mixing_share=0.2, mixing_rate=30.0).losses
        != judged("fedala", mixing_rate=30.0).losses
    )
