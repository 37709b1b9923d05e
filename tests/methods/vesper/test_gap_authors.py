"""GAP by its authors' code against a plain version of it: full batches, dense matrices, PyTorch's
own modules.
"""

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, selu

from method_tasks import run_on, task_of

HOPS, EPOCHS, WIDTH, FULL = 3, 5, 16, 144


def linear(given: Any) -> nn.Linear:
    found = nn.Linear(given.in_features, given.out_features)
    found.load_state_dict(given.state_dict())
    return found


class Plain(nn.Module):
    """Their ``EncoderModule`` (one hop, no maps before the head) and ``ClassificationModule``, with
    given weights.
    """

    def __init__(self, before: list[nn.Module], head: Any) -> None:
        super().__init__()
        self.before, self.norm = nn.ModuleList(before), nn.BatchNorm1d(head.in_features)
        self.head = linear(head)

    def forward(self, hops: list[Tensor]) -> Tensor:
        h = torch.cat([module(x) for module, x in zip(self.before, hops, strict=True)], dim=-1)
        return self.head(selu(self.norm(normalize(h, dim=-1))))


def fit(model: nn.Module, inputs: list[Tensor], labels: Tensor, train: np.ndarray) -> list[float]:
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = cross_entropy(model.train()([x[train] for x in inputs]), labels[train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_it_is_what_the_authors_compute():
    """Losses and accuracies of both stages without noise, with the same first weights."""
    task = task_of("gap_authors", batch_size=FULL, rounds=EPOCHS, layers=HOPS, dropout=0.0)
    shown: list[Any] = []
    first: list[Any] = []

    def show(name: str, training: Any) -> None:
        shown.append(training.model)
        first.append(copy.deepcopy(training.model))

    result = run_on(
        dataclasses.replace(task, inspectors=(show,)),
        "gap_authors",
        theta=0.0,
        encoder_epochs=EPOCHS,
    )
    assert [set(model) for model in first] == [
        {"encoder", "decoder"},
        {"encoder", "extractor", "decoder"},
    ]
    graph, labels = task.graph, torch.from_numpy(task.graph.labels)
    features = torch.from_numpy(graph.features.toarray())
    adjacency = torch.from_numpy(graph.adjacency.toarray()).float()
    start = first[0]["encoder"].maps
    encoder = nn.Sequential(linear(start[0]), nn.BatchNorm1d(WIDTH), nn.SELU(), linear(start[1]))
    fit(Plain([encoder], first[0]["decoder"].head), [features], labels, task.split.train)
    ours = [each.weight for each in shown[0]["encoder"].maps]
    expected = [encoder[0].weight, encoder[3].weight]
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-3)
    with torch.no_grad():
        hops = [normalize(encoder.eval()(features), dim=-1)]
        for _ in range(HOPS):
            hops.append(normalize(adjacency @ hops[-1], dim=-1))
    decoder = first[1]["decoder"]
    classifier = Plain([linear(each) for each in decoder.maps], decoder.head)
    assert result.curve["loss"] == pytest.approx(
        fit(classifier, hops, labels, task.split.train), rel=1e-2
    )
    with torch.no_grad():
        correct = classifier.eval()(hops).argmax(dim=1) == labels
    assert result.curve["test"][-1] == pytest.approx(
        float(correct[task.split.test].float().mean()), abs=1e-6
    )
