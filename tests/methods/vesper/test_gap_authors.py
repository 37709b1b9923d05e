"""GAP by its authors' code against a plain version of it: full batches, dense matrices, PyTorch's
own modules.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, selu

from feddep.methods.vesper.split_training import SplitTraining
from method_tasks import run_on, task_of

HOPS, EPOCHS, WIDTH, FULL = 3, 5, 16, 144


class Plain(nn.Module):
    """Their ``EncoderModule`` (one hop, no maps before the head) and ``ClassificationModule``, with
    given weights.
    """

    def __init__(self, before: list[nn.Module], head: Any) -> None:
        super().__init__()
        self.before, self.norm = nn.ModuleList(before), nn.BatchNorm1d(head.in_features)
        self.head = nn.Linear(head.in_features, head.out_features)
        self.head.load_state_dict(head.state_dict())

    def forward(self, hops: list[Tensor]) -> Tensor:
        h = torch.cat([module(x) for module, x in zip(self.before, hops, strict=True)], dim=-1)
        return self.head(selu(self.norm(normalize(h, dim=-1))))


def linear(given: Any) -> nn.Linear:
    found = nn.Linear(given.in_features, given.out_features)
    found.load_state_dict(given.state_dict())
    return found


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
    started: list[SplitTraining] = []
    first: list[dict[str, Any]] = []

    def show(name: str, training: Any) -> None:
        started.append(training)
        first.append(
            {
                part: {k: v.clone() for k, v in model.state_dict().items()}
                for part, model in training.model.items()
            }
        )

    result = run_on(
        dataclasses.replace(task, inspectors=(show,)),
        "gap_authors",
        theta=0.0,
        encoder_epochs=EPOCHS,
    )
    assert [set(each) for each in first] == [
        {"encoder", "decoder"},
        {"encoder", "extractor", "decoder"},
    ]
    for training, state in zip(started, first, strict=True):
        training.model["decoder"].load_state_dict(state["decoder"])
    ours = started[0].model["encoder"]
    trained = {name: value.clone() for name, value in ours.state_dict().items()}
    ours.load_state_dict(first[0]["encoder"])

    graph, labels = task.graph, torch.from_numpy(task.graph.labels)
    features, adjacency = (
        torch.from_numpy(graph.features.toarray()),
        torch.from_numpy(graph.adjacency.toarray()).float(),
    )
    encoder = nn.Sequential(
        linear(ours.maps[0]), nn.BatchNorm1d(WIDTH), nn.SELU(), linear(ours.maps[1])
    )
    fit(Plain([encoder], started[0].model["decoder"].head), [features], labels, task.split.train)
    for given, mine in ((encoder[0], "map0"), (encoder[3], "map1")):
        torch.testing.assert_close(given.weight, trained[f"{mine}.weight"], atol=1e-4, rtol=1e-3)
    with torch.no_grad():
        hops = [normalize(encoder.eval()(features), dim=-1)]
        for _ in range(HOPS):
            hops.append(normalize(adjacency @ hops[-1], dim=-1))
    decoder = started[1].model["decoder"]
    classifier = Plain([linear(each) for each in decoder.maps], decoder.head)
    assert result.curve["loss"] == pytest.approx(
        fit(classifier, hops, labels, task.split.train), rel=1e-2
    )
    with torch.no_grad():
        correct = classifier.eval()(hops).argmax(dim=1) == labels
    assert result.curve["test"][-1] == pytest.approx(
        float(correct[task.split.test].float().mean()), abs=1e-6
    )
