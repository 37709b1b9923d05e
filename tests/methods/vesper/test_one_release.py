"""Weights that learn from a single release of one layer: what crosses, what is drawn, and that it
is the same layer.
"""

from typing import Any

import pytest
import torch

from feddep.methods.vesper.perturbed import PerturbedMessagePassing
from feddep.training.task import Task
from method_tasks import ROUNDS, run_on, task_of, watch

ONCE: dict[str, Any] = {"weights": "detached", "release": "one_shot", "bounding": "none"}
BATCH, STEPS, WIDTH, VAL, TEST, NODES = 16, 9, 16, 48, 48, 240


def task() -> Task:
    return task_of("vesper_gin", layers=1)


@pytest.mark.parametrize(
    ("name", "further"),
    [
        ("vesper_gin", {}),
        ("vesper_gin", {"encodings": True}),
        ("vesper_gcn", {"degree_ratio": 2.0}),
    ],
)
def test_noise_is_drawn_once_and_every_byte_is_counted(
    name: str, further: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    noised = watch(monkeypatch, PerturbedMessagePassing, "_noised")
    result = run_on(task(), name, theta=0.3, encoder_epochs=0, **ONCE, **further)
    assert [len(each["x"]) for each in noised] == [NODES]
    row = (1 + bool(further.get("encodings"))) * WIDTH * 4
    assert {
        (sent["direction"], sent["kind"]): (sent["messages"], sent["bytes"])
        for sent in result.communication
    } == {
        ("up", "representations"): (ROUNDS * STEPS, ROUNDS * STEPS * BATCH * row),
        ("down", "gradients"): (ROUNDS * STEPS, ROUNDS * STEPS * BATCH * row),
        ("up", "validation representations"): (ROUNDS, ROUNDS * VAL * row),
        ("up", "test representations"): (ROUNDS, ROUNDS * TEST * row),
    }


@pytest.mark.parametrize("name", ["vesper_gin", "vesper_gcn"])
def test_without_noise_it_is_the_layer_that_is_computed_in_every_step(name: str):
    steps = {**ONCE, "release": "per_step"}
    once, every = (
        run_on(task(), name, theta=0.0, **options).curve["loss"] for options in (ONCE, steps)
    )
    torch.testing.assert_close(torch.tensor(once), torch.tensor(every), atol=1e-4, rtol=0)
    assert once[-1] < once[0]
