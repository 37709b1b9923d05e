"""FedIIH's routing, divergences and mixtures against their equations, node by node and client by
client.
"""

import math

import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import leaky_relu, normalize

from feddep.federation.client import Update
from feddep.methods.mixtures import FedIIHParameters
from feddep.methods.mixtures.fediih import DisentangledNetwork, FactorServer
from feddep.training.evaluator import Evaluator
from graphs import random_graph
from small_models import drawn

PARAMETERS = FedIIHParameters(factors=3, routings=2, scale=4.0)
WIDTH = 4


def test_the_network_routes_each_edge():
    graph = random_graph(12, 30)
    model = drawn(
        DisentangledNetwork(graph.num_features, WIDTH, graph.num_classes, 2, 0.5, PARAMETERS), 0
    )
    inputs = Evaluator(graph, aggregation=model.aggregation)
    h = leaky_relu(torch.from_numpy(graph.features.toarray()) @ model.weight + model.bias)
    x = normalize(h.view(12, 3, WIDTH), dim=2)
    u = x
    for _ in range(2):
        new = x.clone()
        for target, source in zip(*graph.adjacency.nonzero(), strict=True):
            p = (x[source] * u[target]).sum(dim=1).softmax(dim=0)
            new[target] = new[target] + p[:, None] * x[source]
        u = normalize(new, dim=2)
    expected = model.last(leaky_relu(u).flatten(1))
    torch.testing.assert_close(inputs.logits(model), expected, rtol=1e-4, atol=1e-5)


def test_each_factor_is_mixed_by_its_divergences():
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(4, *shape, generator=generator)
        for name, shape in {
            "weight": (5, 3 * WIDTH),
            "bias": (3 * WIDTH,),
            "last.weight": (2, 3 * WIDTH),
            "last.bias": (2,),
        }.items()
    }
    means = torch.randn(4, 3, WIDTH, generator=generator)
    server = FactorServer({name: each[0] for name, each in weights.items()}, parameters=PARAMETERS)
    server.aggregate(
        [
            Update(
                k, {name: each[k] for name, each in weights.items()}, 1, 0.0, {"latents": means[k]}
            )
            for k in range(4)
        ]
    )

    def js(one: torch.Tensor, other: torch.Tensor) -> float:
        middle = Normal((one + other) / 2, ((one.exp() + other.exp()) / 2).sqrt())
        both = (Normal(each, (each / 2).exp()) for each in (one, other))
        return float(sum(kl_divergence(each, middle).sum() for each in both)) / 2

    for k in range(4):
        received = server.weights_for(k)
        torch.testing.assert_close(received["last.bias"], weights["last.bias"].mean(dim=0))
        for j in range(3):
            found = [js(means[k, j], means[each, j]) for each in range(4)]
            shares = (4 * (1 - torch.tensor(found) / math.log(2))).softmax(dim=0)
            own = slice(j * WIDTH, (j + 1) * WIDTH)
            for name in ("weight", "bias", "last.weight"):
                expected = sum(a * w for a, w in zip(shares, weights[name][..., own], strict=True))
                torch.testing.assert_close(received[name][..., own], expected)
