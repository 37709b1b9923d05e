"""FED-PUB: masks, regularisers and mixture against their formulas."""

import math

import numpy as np
import pytest
import torch

from divided import random_task
from feddep.federation.client import Update
from feddep.methods.mixtures import FedPubParameters
from feddep.methods.mixtures.fedpub import FedPubClient, is_mask, masked, random_graph
from feddep.methods.mixtures.mixing_server import SimilarityServer
from method_tasks import run_on, task_of
from mixing import client_of

FIELD = {"encoder": "gcn", "full_batch": True, "evaluation": "owners"}


def masked_client(**changes):
    task = random_task(encoder="gcn", full_batch=True)
    parameters = FedPubParameters(lambda1=0.25, lambda2=0.5, **changes)
    graph, model = random_graph(task, task.new_model()), masked(task.new_model(), 0.25)
    return client_of(
        task,
        0,
        FedPubClient,
        model,
        lambda name: not is_mask(name),
        graph=graph,
        parameters=parameters,
    )


def test_masks_multiply_and_small_ones_vanish_outside_training():
    task = random_task(encoder="gcn")
    plain, model = task.new_model(), masked(task.new_model(), 0.25)
    values = [-0.5, 0.2, 0.25, -0.1, 1.0]
    with torch.no_grad():
        for layer in model.layers:
            mask = layer.parametrizations.weight[0].mask
            mask.copy_(torch.tensor(values * len(mask.flatten()))[: mask.numel()].view_as(mask))
    for training, kept in ((True, values), (False, [-0.5, 0.0, 0.25, 0.0, 1.0])):
        model.train(training)
        for layer, original in zip(model.layers, plain.layers, strict=True):
            factors = torch.tensor(kept * original.weight.numel())[
                : original.weight.numel()
            ].view_as(original.weight)
            assert torch.equal(layer.weight, original.weight * factors)


def test_the_penalty_is_its_formula_from_the_second_round_on():
    client = masked_client()
    first = {
        name: tensor.clone()
        for name, tensor in client.model.state_dict().items()
        if not is_mask(name)
    }
    names = [name for name, _ in client.model.named_parameters() if is_mask(name)]
    entries = sum(client.model.state_dict()[name].numel() for name in names)
    client.load(first)
    assert float(client.penalty(client.model).detach()) == pytest.approx(0.25 * entries)
    client.load({name: tensor + 0.5 for name, tensor in first.items()})
    client.model.load_state_dict(first, strict=False)
    penalty = client.penalty(client.model)
    distances = sum(0.5 * math.sqrt(tensor.numel()) for tensor in first.values())
    assert float(penalty.detach()) == pytest.approx(0.25 * entries + 0.5 * distances, rel=1e-5)
    penalty.backward()
    assert all(
        torch.allclose(client.model.get_parameter(name).grad, torch.tensor(0.25)) for name in names
    )
    assert all(client.model.get_parameter(name).grad.norm() > 0.4 for name in first)


def test_as_released_nothing_is_regularised():
    assert masked_client(regularizers="released").learner.regularizer is None
    # The first step of a round is at θ̄, where its norm has no gradient.
    task = task_of("fedpub", local_epochs=2, **FIELD)
    without = run_on(task, "fedpub", lambda1=0.0, lambda2=0.0)
    released = run_on(task, "fedpub", lambda1=0.0, regularizers="released")
    written = run_on(task, "fedpub", lambda1=0.0)
    assert released.history.losses == without.history.losses != written.history.losses


@pytest.mark.parametrize(("compared", "read"), [("logits", 2), ("embeddings", 1)])
def test_the_function_is_what_the_masked_model_gives_for_the_random_graph(compared, read):
    client = masked_client(compared=compared)
    adjacency = client.graph[1].dense().double()
    hidden = client.graph[0].double()
    assert adjacency.shape == (500, 500)
    blocks = torch.arange(500) // 100
    assert not (adjacency * (blocks[:, None] != blocks)).any()
    assert 0.09 < ((adjacency > 0).sum() - 500) / (500 * 99) < 0.11
    for k, layer in enumerate(client.model.layers[:read]):
        hidden = (
            adjacency @ ((hidden.relu() if k else hidden) @ layer.weight.double())
            + layer.bias.double()
        )
    np.testing.assert_allclose(
        client.extra()["function"].numpy(),
        hidden.mean(dim=0).detach().numpy(),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("tau", [0.0, 2.0])
def test_the_mixture_is_a_softmax_of_cosines(tau: float):
    vectors = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]
    updates = [
        Update(k, {"w": torch.tensor([float(k)])}, k + 1.0, 0.0, {"f": torch.tensor(v)})
        for k, v in enumerate(vectors)
    ]
    server = SimilarityServer({"w": torch.zeros(1)}, parameters=FedPubParameters(tau=tau), name="f")
    server.aggregate(updates)
    for i, mine in enumerate(vectors):
        powers = [
            math.exp(tau * np.dot(mine, other) / (math.hypot(*mine) * math.hypot(*other)))
            for other in vectors
        ]
        expected = sum(power * k for k, power in enumerate(powers)) / sum(powers)
        assert float(server.weights_for(i)["w"]) == pytest.approx(expected, rel=1e-5)
