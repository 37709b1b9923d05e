"""Training that diverges is an error in one sentence, and no result: which method, in which round,
and what to lower.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from feddep import api, cli
from feddep.methods import registry
from feddep.training.divergence import check_finite
from feddep.utils.errors import DivergenceError
from method_tasks import known, run_on, task_of

FEW = {
    **{"pretraining_epochs": 3, "encoder_epochs": 1, "embedding": 8, "prototypes": 3},
    **{"generator_epochs": 3, "generator_local_epochs": 2, "generator_width": 8},
}
DIVERGING = {"optimizer": "sgd", "learning_rate": 1000, "weight_decay": 1e6, "batch_size": 4}
FAR = {
    "generator_learning_rate": 1000,
    "cross_weight": 1e6,
    "task_weight": 1e6,
    "count_bias": 3.0,
    "generator_epochs": 8,
}


def said(name: str, setting: dict[str, Any], **changes: Any) -> str:
    """What a method that diverges says."""
    with pytest.raises(DivergenceError) as caught:
        run_on(task_of(name, **setting), name, **{**known(name, FEW), **changes})
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(set(registry.methods()) - {"scaffold", "fednova"})
)  # which allows no weight decay
def test_a_classifier_that_diverges(name: str):
    sentence = said(name, DIVERGING)
    assert name in sentence
    assert "learning_rate" in sentence
    assert "round 1" in sentence


def test_the_round_is_the_one_that_diverges():
    assert "round 2" in said(
        "fedavg", {"optimizer": "sgd", "learning_rate": 1000, "weight_decay": 1.0}
    )


@pytest.mark.parametrize("name", ["fedavg", "fedsage_plus", "feddep", "fedgcn", "global"])
def test_features_that_are_too_large_are_named(name: str):
    task = task_of(name)
    large = dataclasses.replace(task.graph, features=task.graph.features * np.float32(1e38))
    with pytest.raises(DivergenceError, match="minmax"):
        run_on(dataclasses.replace(task, graph=large), name, **known(name, FEW))
    assert "minmax" not in said("fedavg", DIVERGING)


def test_noise_that_overflows():
    assert "sigma, clip" in said(
        "fedgnn", {"learning_rate": 1000, "weight_decay": 1e3}, sigma=1e6, clip=1e6
    )


@pytest.mark.parametrize(
    ("name", "step"), [("feddep", True), ("feddep_wo_proto", True), ("feddep_joint", False)]
)
def test_a_generator_that_diverges(name: str, step: bool):
    sentence = said(name, {}, **FAR)
    assert "generator_learning_rate" in sentence
    assert ("feddep.generator" in sentence) == step
    assert ("round 1" in sentence) != step


@pytest.mark.parametrize("name", ["fedsage_plus", "fedsage_plus_shared", "locsage_plus"])
def test_neighgen_that_diverges(name: str, monkeypatch: pytest.MonkeyPatch):
    """Adam's steps are bounded, so that only a loss that overflows can be had."""
    monkeypatch.setattr(
        "feddep.methods.fedsage.neighgen_training.local_loss", lambda *args: torch.tensor(torch.inf)
    )
    assert "generator_learning_rate" in said(name, {})


def test_what_is_finite_passes():
    check_finite("it", 1e308, [torch.zeros(3), torch.full((2,), 3e38)])
    for loss, weights in (
        (float("nan"), []),
        (float("inf"), []),
        (0.0, [torch.tensor([1.0, torch.nan])]),
    ):
        with pytest.raises(DivergenceError):
            check_finite("it", loss, weights)


def test_nothing_is_written_and_the_command_line_says_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    graph, table = tmp_path / "graph.pt", tmp_path / "runs.csv"
    torch.save(api.to_pyg(api.synthetic_graph(nodes=60, communities=4)), graph)
    options = (
        "optimizer=sgd",
        "learning_rate=1000",
        "weight_decay=1e6",
        "rounds=2",
        "hidden_channels=4",
    )
    given = [
        "--graph",
        str(graph),
        "--clients",
        "2",
        "--seeds",
        "1",
        *(text for each in options for text in ("--set", each)),
    ]
    assert cli.main(["run", "global", *given, "--output", str(table)]) == 1
    assert "diverge" in capsys.readouterr().err.splitlines()[-1]
    assert not table.exists()
