"""FedSpray: its steps against autograd on loops, what the server mixes, what is sent, and that
alone it is Local.
"""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from divided import random_task
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import EXTRA, REPORTS, Update
from feddep.methods.basic import fedavg
from feddep.methods.distilled import FedSprayParameters
from feddep.methods.distilled.fedspray import FedSprayClient, FedSprayModel, FedSprayServer
from feddep.training.task import Task

GCN = {
    "encoder": "gcn",
    "full_batch": True,
    "dropout": 0.0,
    "local_epochs": 1,
    "learning_rate": 0.1,
}


def client_of(task: Task, **changes: object) -> FedSprayClient:
    params = FedSprayParameters(proxy_width=4, **changes)
    model = FedSprayModel(task, 4)
    shared = {
        name: shape for name, shape in schema_of(model).items() if not name.startswith("gnn.")
    }
    boundary = Boundary({"model": shared, **REPORTS, EXTRA: {"shares": (task.graph.num_classes,)}})
    client = fedavg.new_client(
        task,
        0,
        task.subgraphs()[0],
        boundary,
        partial(FedSprayClient, task=task, params=params),
        model,
    )
    client.load({name: model.state_dict()[name] for name in shared})
    return client


def kl(target: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    p, q = target.detach().softmax(dim=-1), outputs.softmax(dim=-1)
    return (p * (p.log() - q.log())).sum(dim=-1)


def test_a_round_is_its_two_steps():
    task = random_task(**GCN)
    client = client_of(task, soft_weight=0.6, confidence=0.3)
    model, source, train = client.model, client.evaluator, client.split.train
    labels = source.labels[train]
    x = torch.from_numpy(task.subgraphs()[0][0].features.toarray())
    encoded = torch.relu(model.shared["encoder"](x))
    q = model.shared["plain"](encoded).softmax(dim=1)
    proxies = q @ model.proxies
    proxies[train] = 0.1
    reliable = [i for i in range(len(x)) if i in train or float(q[i].detach().max()) > 0.3]
    soft = model.shared["fused"](encoded + proxies)
    logits = model.gnn.full(source.features, source.adjacency)
    loss = cross_entropy(logits[train], labels) + 0.6 * kl(soft[reliable], logits[reliable]).mean()
    gradients = torch.autograd.grad(loss, list(model.gnn.parameters()))
    expected = [
        weight - 0.1 * gradient
        for weight, gradient in zip(model.gnn.parameters(), gradients, strict=True)
    ]

    before = {name: weight.detach().clone() for name, weight in model.shared.named_parameters()}
    assert client.train() == pytest.approx(float(cross_entropy(logits[train], labels)))
    torch.testing.assert_close([*model.gnn.parameters()], expected, rtol=1e-4, atol=1e-6)

    weights = {name: weight.requires_grad_() for name, weight in before.items()}
    encoded = torch.relu(x @ weights["encoder.weight"].T + weights["encoder.bias"])
    plain = encoded @ weights["plain.weight"].T + weights["plain.bias"]
    fused = (encoded + 0.1) @ weights["fused.weight"].T + weights["fused.bias"]
    taught = source.logits(model)[train]
    (cross_entropy(plain[train], labels) + kl(taught, fused[train]).mean()).backward()
    for name, weight in model.shared.named_parameters():
        torch.testing.assert_close(
            weight, before[name] - 0.1 * before[name].grad, rtol=1e-4, atol=1e-6
        )
    for c in range(task.graph.num_classes):
        own = client.node_proxies[train[labels.numpy() == c]]
        torch.testing.assert_close(
            model.proxies[c], own.mean(dim=0) if len(own) else torch.zeros(4)
        )


@pytest.mark.parametrize("by_nodes", [True, False])
def test_proxies_of_a_class_are_mixed_over_those_who_have_it(by_nodes: bool):
    server = FedSprayServer(
        {"w": torch.zeros(1), "proxies": torch.full((3, 2), 9.0)}, by_nodes=by_nodes
    )
    sent = [torch.rand(3, 2), torch.rand(3, 2)]
    shares = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    updates = [
        Update(
            k, {"w": torch.ones(1) * k, "proxies": sent[k]}, 10 + 20 * k, 0.0, {"shares": shares[k]}
        )
        for k in range(2)
    ]
    server.aggregate(updates)
    first, second = (5, 30) if by_nodes else (0.5, 1)
    mixed = (first * sent[0][0] + second * sent[1][0]) / (first + second)
    np.testing.assert_allclose(
        server.weights["proxies"],
        torch.stack([mixed, sent[0][1], torch.full((2,), 9.0)]),
        rtol=1e-6,
    )
    assert float(server.weights["w"]) == pytest.approx(30 / 40)


def test_the_classifier_without_proxies_may_start_from_the_other():
    client = client_of(random_task(**GCN), plain_start="fused")
    assert torch.equal(client.model.shared["plain"].weight, client.model.shared["fused"].weight)
