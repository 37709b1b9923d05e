"""FedAux: its classifier against its equations, and what is mixed."""

import math

import numpy as np
import pytest
import torch

from divided import random_task
from feddep.methods.mixtures.fedaux import AuxiliaryGCN, smoothed
from feddep.training.evaluator import Evaluator
from method_tasks import CLIENTS, run_on, task_of


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 4.0])
def test_smoothing_is_its_formula(sigma: float):
    rng = np.random.default_rng(0)
    hidden, auxiliary = rng.normal(size=(6, 3)), rng.normal(size=3)
    scores = [h @ auxiliary / (math.sqrt(h @ h) * math.sqrt(auxiliary @ auxiliary)) for h in hidden]
    expected = []
    for v in range(6):
        kernel = [math.exp(-((scores[v] - scores[u]) ** 2) / sigma**2) for u in range(6)]
        expected.append(sum(k * h for k, h in zip(kernel, hidden, strict=True)) / sum(kernel))
    found = smoothed(torch.from_numpy(hidden), torch.from_numpy(auxiliary), sigma)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("layers", [2, 3])
def test_the_last_layer_reads_both(layers: int):
    task = random_task(encoder="gcn", layers=layers)
    model = AuxiliaryGCN(*task.model_sizes, 1.0)
    model.reset_parameters(torch.Generator().manual_seed(0))
    assert 0 <= float(model.auxiliary.detach().min()) < float(model.auxiliary.detach().max()) < 1
    inputs = Evaluator(task.graph, "cpu", model.aggregation)
    hidden, adjacency = inputs.features.dense(), inputs.adjacency.dense()
    for layer in model.layers[:-1]:
        hidden = (adjacency @ hidden @ layer.weight + layer.bias).relu()
    both = torch.cat([hidden, smoothed(hidden, model.auxiliary, 1.0)], dim=1)
    expected = adjacency @ both @ model.layers[-1].weight + model.layers[-1].bias
    torch.testing.assert_close(inputs.logits(model), expected.detach(), rtol=1e-4, atol=1e-5)
    model.full(inputs.features, inputs.adjacency).square().sum().backward()
    assert model.auxiliary.grad.norm() > 0
    assert set(dict(model.named_parameters())) == {
        "auxiliary",
        *(f"layer{k}.{name}" for k in range(layers) for name in ("weight", "bias")),
    }


def test_masks_stay_and_are_trained():
    plain, masked = (run_on(task_of("fedaux"), "fedaux", masks=masks) for masks in (False, True))
    assert plain.communication == masked.communication
    trained = [w for name, w in masked.weights().items() if name.endswith(".mask")]
    assert len(trained) == 2 * CLIENTS
    assert all((mask != 1).any() for mask in trained)
