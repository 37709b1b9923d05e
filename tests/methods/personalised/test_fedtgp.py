"""FedTGP's server and predictions against its equations, class by class and pair by pair."""

import dataclasses
from itertools import permutations
from typing import Any

import pytest
import torch

from feddep.federation.client import Update
from feddep.methods.personalised import FedTGPParameters
from feddep.methods.personalised.fedproto import with_prototypes
from feddep.methods.personalised.fedtgp import NearestPrototype, PrototypeNetwork, TrainingServer
from feddep.training.config import TrainingConfig
from feddep.training.evaluator import Evaluator
from graphs import random_graph
from method_tasks import task_of
from small_models import drawn

CLASSES, WIDTH, RATE = 4, 5, 0.1
KNOWN = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1]])
"""Which of three clients has which class; nobody has class 2."""


def server_of(**params: Any) -> TrainingServer:
    network = drawn(PrototypeNetwork(CLASSES, WIDTH), 0)
    setting = TrainingConfig(optimizer="sgd", learning_rate=RATE)
    start = {"prototypes": torch.zeros(CLASSES, WIDTH), "known": torch.zeros(CLASSES)}
    given = FedTGPParameters(**params)
    return TrainingServer(start, network=network, setting=setting, params=given)


@pytest.mark.parametrize("margin", ["written", "released"])
def test_a_step_of_the_server_is_its_equation(margin: Any):
    server = server_of(server_steps=1, margin=margin)
    sent = torch.randn(3, CLASSES, WIDTH, generator=torch.Generator().manual_seed(1))
    means = {c: sent[KNOWN[:, c] > 0, c].mean(dim=0) for c in (0, 1, 3)}
    apart = {(c, d): float((means[c] - means[d]).norm()) for c, d in permutations(means, 2)}
    nearest = [min(apart[c, d] for d in means if d != c) for c in means]
    delta = max(apart.values()) if margin == "written" else max(nearest)
    names, weights = zip(*server.network.named_parameters(), strict=True)
    terms, ours = [], server.network()
    for k in range(3):
        for c in (c for c in means if KNOWN[k, c]):
            own = (-(sent[k, c] - ours[c]).norm() - delta).exp()
            others = sum((-(sent[k, c] - ours[d]).norm()).exp() for d in means if d != c)
            terms.append(-torch.log(own / (own + others)))
    gradients = torch.autograd.grad(sum(terms) / len(terms), weights)
    expected = [w.detach() - RATE * g for w, g in zip(weights, gradients, strict=True)]
    server.aggregate(
        [
            Update(i, {"prototypes": p * k[:, None], "known": k.float()}, 1, 0.0)
            for i, (p, k) in enumerate(zip(sent, KNOWN, strict=True))
        ]
    )
    for name, weight, moved in zip(names, weights, expected, strict=True):
        torch.testing.assert_close(weight.detach(), moved, msg=name)
    assert torch.equal(server.weights["prototypes"], server.network())
    assert server.weights["known"].tolist() == [1, 1, 0, 1]
    assert server_of(largest_margin=0.5).margin(sent[0]) == 0.5


def test_a_node_gets_the_nearest_prototype_that_there_is():
    graph, given = random_graph(20, 40), task_of("fedtgp")
    given = dataclasses.replace(given, graph=graph)
    model = with_prototypes(NearestPrototype(given.new_model()))
    inputs = Evaluator(graph, aggregation=model.aggregation)
    hidden = model.body(inputs.features, inputs.adjacency)
    assert torch.equal(inputs.logits(model), model.head(hidden, inputs.adjacency))
    model.known[1:] = 1
    model.prototypes.copy_(hidden[: len(model.known)])
    model.prototypes[0] = hidden.mean(dim=0)
    for v, logits in enumerate(inputs.logits(model)):
        apart = (model.prototypes - hidden[v]).norm(dim=1)[1:]
        torch.testing.assert_close(logits[1:], -apart)
        assert int(logits.argmax()) > 0
