"""FedStar against its equations with dense matrices."""

from typing import Any

import numpy as np
import pytest
import torch

from feddep.graph.graph import Graph
from feddep.methods.personalised.fedstar import StructureClassifier, with_structure
from feddep.training.evaluator import Evaluator
from graphs import random_graph
from small_models import drawn


def dense(graph: Graph) -> torch.Tensor:
    return torch.from_numpy(graph.adjacency.toarray()).double()


def test_structure_features_are_powers_of_the_walk_and_degrees(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("feddep.methods.personalised.fedstar._BLOCK", 7)
    graph = random_graph(30, 100)
    found = with_structure(graph).features[:, graph.num_features :].toarray()
    walk = dense(graph) / dense(graph).sum(dim=0).clamp(min=1)
    for k in range(16):
        expected = torch.linalg.matrix_power(walk, k + 1).diagonal()
        np.testing.assert_allclose(found[:, k], expected, atol=1e-6)
    assert (found[:, 0] == 0).all()
    assert (found[:, 16:].argmax(axis=1) + 1 == np.clip(graph.degrees, 1, 16)).all()
    assert (found[:, 16:].sum(axis=1) == 1).all()


def test_the_classifier_is_its_equations():
    graph = random_graph(15, 40)
    model: Any = drawn(StructureClassifier(graph.num_features, 8, graph.num_classes, 2, 0.5), 0)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    inputs = Evaluator(with_structure(graph), aggregation=model.aggregation)
    both = torch.from_numpy(inputs.graph.features.toarray())
    x = model.first(both[:, : graph.num_features])
    embed, *convolutions = model.structure
    s = embed(both[:, graph.num_features :])
    summed = (dense(graph) + torch.eye(15)).float()
    root = summed.sum(dim=1).rsqrt()
    for mlp, layer in zip(model.isomorphisms, convolutions, strict=True):
        following = mlp(summed @ torch.cat([x, s], dim=1)).relu()
        s = (root[:, None] * summed * root @ s @ layer.weight + layer.bias).tanh()
        x = following
    expected = model.last(model.inner(model.joined(torch.cat([x, s], dim=1))).relu())
    torch.testing.assert_close(inputs.logits(model), expected, rtol=1e-4, atol=1e-5)
