"""FedGSL's own promises: what is shared, how it is noised, and that learned edges are all there is
to it.
"""

import numpy as np
import pytest
import torch

from method_tasks import CLIENTS, observed, run_on, task_of

FULL = [{"full_batch": True, "encoder": encoder, "dropout": 0.5} for encoder in ("sage", "gcn")]


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


@pytest.mark.parametrize("options", FULL, ids=str)
@pytest.mark.parametrize(("clients", "share"), [(1, 0.7), (CLIENTS, 0.0)])
def test_without_learned_edges_it_is_fedavg_in_full_batches(options, clients, share):
    task = task_of("fedgsl", clients=clients, **options)
    ours, plain = run_on(task, "fedgsl", share=share), run_on(task, "fedavg")
    for name in ("loss", "validation", "local_after"):
        np.testing.assert_allclose(ours.curve[name], plain.curve[name], rtol=1e-4)


@pytest.mark.parametrize("options", [{}, *FULL], ids=str)
def test_the_metric_is_trained_and_averaged_with_the_classifier(options):
    metric = run_on(task_of("fedgsl", **options), "fedgsl").weights()["metric"]
    assert metric.shape == (16,)
    assert not torch.equal(metric, torch.ones(16))
