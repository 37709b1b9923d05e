"""FedGSL's own promises: what is shared, how it is noised, and that learned edges are all there is
to it.
"""

import numpy as np
import pytest
import torch

from feddep.utils.errors import ConfigError
from method_tasks import CLIENTS, run_on, task_of, train


def run(clients=CLIENTS, **parameters):
    return train("fedgsl", clients=clients, **parameters)


@pytest.mark.parametrize(("clients", "share"), [(CLIENTS, 0.0), (1, 0.7)])
def test_without_learned_edges_it_is_fedavg(clients, share):
    ours, plain = run(clients, share=share), train("fedavg", clients=clients)
    np.testing.assert_allclose(ours.curve["loss"], plain.curve["loss"], rtol=1e-6)
    assert ours.curve["test"] == plain.curve["test"]


def test_embeddings_are_noised_before_they_are_sent():
    sent = {0.0: [], 3.0: []}
    for noise, messages in sent.items():

        def record(client, direction, kind, payload, messages=messages):
            if direction == "up" and kind.startswith("embeddings"):
                messages.append(payload["embeddings"])

        train("fedgsl", observers=(record,), noise=noise)
    for clean, noisy in zip(sent[0.0], sent[3.0], strict=True):
        lengths = clean.norm(dim=1)
        assert (((lengths - 1).abs() < 1e-5) | (lengths == 0)).all()
        assert float((noisy - clean).square().sum(dim=1).mean().sqrt()) == pytest.approx(3, rel=0.1)


def test_the_metric_is_trained_and_averaged_with_the_classifier():
    metric = run().weights()["metric"]
    assert metric.shape == (16,)
    assert not torch.equal(metric, torch.ones(16))


def test_a_single_layer_has_nothing_to_share_but_features():
    with pytest.raises(ConfigError):
        run_on(task_of("fedgsl", layers=1), "fedgsl")
