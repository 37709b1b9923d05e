"""The example of a method of one's own, docs/examples/fedpub_like.py, from its file to its
result.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from feddep import api
from feddep.federation.client import Update
from feddep.federation.server import weighted_mean
from feddep.methods import registry
from method_tasks import task_of
from small_models import drawn

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "fedpub_like.py"


@pytest.fixture(autouse=True)
def example(no_plugins: None) -> Iterator[Any]:
    api.load_plugin(EXAMPLE)
    module = registry.find("fedpub_like").function.partition(":")[0]
    yield sys.modules[module]
    sys.modules.pop(module)


def test_the_weights_are_softmax_of_the_similarity_of_outputs(example: Any):
    task = task_of("fedavg", clients=3)
    server = example.FedPubServer(task.new_model().state_dict(), "nodes", task=task, tau=5.0)
    updates = []
    for k in range(3):
        model = drawn(task.new_model(), k)
        weights = {name: w.clone() for name, w in model.state_dict().items()}
        updates.append(Update(k, weights, 1, 0.0))
    server.aggregate(updates)
    outputs = []
    for update in updates:
        model.load_state_dict(update.weights)
        outputs.append(server.evaluator.logits(model).numpy().mean(axis=0))
    f = np.array(outputs)
    cosines = f @ f.T / np.linalg.norm(f, axis=1)[:, None] / np.linalg.norm(f, axis=1)[None]
    alpha = np.exp(5 * cosines) / np.exp(5 * cosines).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(server.alpha(updates), alpha, rtol=1e-4)
    for i in range(3):
        expected = weighted_mean([update.weights for update in updates], alpha[i])
        torch.testing.assert_close(server.weights_for(i), expected, rtol=1e-4, atol=1e-6)
