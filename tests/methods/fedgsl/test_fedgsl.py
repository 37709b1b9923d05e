"""FedGSL's own promises: what is shared, how it is noised, and that learned edges are all there is
to it.
"""

import pytest
import torch

from method_tasks import CLIENTS, train


def run(clients=CLIENTS, **parameters):
    return train("fedgsl", clients=clients, **parameters)


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
