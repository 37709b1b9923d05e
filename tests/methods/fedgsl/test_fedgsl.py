"""FedGSL's own promises: what is shared, how it is noised, and that learned edges are all there is
to it.
"""

import pytest
import torch

from method_tasks import observed, task_of, train


def test_embeddings_are_noised_before_they_are_sent():
    sent = (
        [
            each.payload["embeddings"]
            for each in observed(task_of("fedgsl"), "fedgsl", noise=noise)[1]
            if each.direction == "up" and each.kind.startswith("embeddings")
        ]
        for noise in (0.0, 3.0)
    )
    for clean, noisy in zip(*sent, strict=True):
        lengths = clean.norm(dim=1)
        assert (((lengths - 1).abs() < 1e-5) | (lengths == 0)).all()
        assert float((noisy - clean).square().sum(dim=1).mean().sqrt()) == pytest.approx(3, rel=0.1)


def test_the_metric_is_trained_and_averaged_with_the_classifier():
    metric = train("fedgsl").weights()["metric"]
    assert metric.shape == (16,)
    assert not torch.equal(metric, torch.ones(16))
