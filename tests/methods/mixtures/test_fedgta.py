"""FedGTA against its equations, node by node."""

import math

import numpy as np
import pytest
import torch
from scipy.special import softmax

from divided import random_task
from feddep.federation.client import Update
from feddep.methods.mixtures import FedGTAParameters
from feddep.methods.mixtures.fedgta import FedGTAClient, FedGTAServer
from mixing import client_of


@pytest.mark.parametrize("moments", ["origin", "mean", "hybrid"])
def test_moments_and_confidence_are_their_formulas(moments: str):
    task = random_task(encoder="gcn", full_batch=True)
    given = FedGTAParameters(
        moments=moments, orders=3, propagation_steps=2, propagation=0.3, temperature=4.0
    )
    graph, split = task.subgraphs()[1]
    client = client_of(task, 1, FedGTAClient, parameters=given)
    sent = client.extra()

    n, classes = graph.num_nodes, graph.num_classes
    adjacency = graph.adjacency.toarray() + np.eye(n)
    degrees = adjacency.sum(axis=1)
    logits = client.evaluator.logits(client.model).double().numpy()
    start = np.array(
        [
            np.eye(classes)[graph.labels[v]] if v in split.train else softmax(logits[v])
            for v in range(n)
        ]
    )
    spread = start
    for _ in range(2):
        following = np.zeros_like(spread)
        for v in range(n):
            heard = sum(
                adjacency[v, u] * spread[u] / math.sqrt(degrees[v] * degrees[u]) for u in range(n)
            )
            following[v] = 0.3 * heard + 0.7 * start[v] + (start[v] if v in split.train else 0)
        spread = following
    sharp = [start[v] if v in split.train else softmax(spread[v]) for v in range(n)]
    soft = [start[v] if v in split.train else softmax(spread[v] / 4) for v in range(n)]
    confidence = sum(
        degrees[v]
        * (classes / math.e + sum(share * math.log(share) for share in soft[v] if share > 0))
        for v in range(n)
    )
    assert float(sent["confidence"]) == pytest.approx(confidence, rel=1e-4)
    origin = [np.mean([row[c] ** p for row in sharp]) for p in (1, 2, 3) for c in range(classes)]
    centre = np.mean(sharp, axis=0)
    about_mean = [
        np.mean([(row[c] - centre[c]) ** p for row in sharp])
        for p in (1, 2, 3)
        for c in range(classes)
    ]
    expected = {"origin": origin, "mean": about_mean, "hybrid": origin + about_mean}[moments]
    np.testing.assert_allclose(sent["moments"].numpy(), expected, atol=1e-6)


def test_the_server_mixes_similar_clients_by_confidence():
    vectors, confidences = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]], [2.0, 5.0, 6.0]
    updates = [
        Update(
            k,
            {"w": torch.tensor([float(k)])},
            1,
            0.0,
            {"moments": torch.tensor(vector), "confidence": torch.tensor(surety)},
        )
        for k, (vector, surety) in enumerate(zip(vectors, confidences, strict=True))
    ]
    server = FedGTAServer({"w": torch.zeros(1)}, parameters=FedGTAParameters(threshold=0.5))
    server.aggregate(updates)
    assert [float(server.weights_for(k)["w"]) for k in range(3)] == pytest.approx(
        [(0 * 2 + 2 * 6) / 8, 1.0, 12 / 8]
    )
