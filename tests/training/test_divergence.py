"""Training that diverges is an error in one sentence, and no result: which method, in which round, and what to lower."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from feddep.cli import main
from feddep.methods import registry
from feddep.training.divergence import check_finite
from feddep.utils.errors import DivergenceError
from feddep.utils.files import write_json
from method_tasks import run_on, task_of

FEW = {
    **{"pretraining_epochs": 3, "embedding": 8, "prototypes": 3},
    **{"generator_epochs": 3, "generator_local_epochs": 2, "generator_width": 8},
}


def divergence(name: str, setting: dict[str, Any], **changes: Any) -> str:
    """The sentence with which a method stops."""
    task = task_of(name)
    object.__setattr__(task, "setting", task.setting.replace(**setting))
    few = {key: value for key, value in FEW.items() if key in registry.find(name).parameters.model_fields}
    with pytest.raises(DivergenceError) as caught:
        run_on(task, name, **{**few, **changes})
    assert str(caught.value).isprintable()
    return str(caught.value)


DIVERGING = {"optimizer": "sgd", "learning_rate": 1000, "weight_decay": 1e6, "batch_size": 2}
CROSS_FITTED = {name for name in registry.methods() if name.startswith("fednld")}
"""Which train their classifiers in a step."""


@pytest.mark.parametrize("name", sorted(CROSS_FITTED))
def test_a_cross_fitted_classifier_that_diverges(name: str):
    sentence = divergence(name, DIVERGING)
    assert sentence.startswith(
        f"step fednld.cross_fitting of {name} diverged: the loss of the model of client0/fold0 in epoch 1 is"
    )
    assert sentence.endswith("; lower learning_rate or weight_decay")


@pytest.mark.parametrize("name", sorted(set(registry.methods()) - CROSS_FITTED - {"scaffold"}))  # which allows no weight decay
def test_a_classifier_that_diverges(name: str):
    sentence = divergence(name, DIVERGING)
    assert re.match(rf"{name} diverged in round 1: the (loss of the model|weights of a layer) ", sentence)
    assert "; lower learning_rate" in sentence


def test_the_round_is_the_one_that_diverges():
    assert divergence("fedavg", {"learning_rate": 1000, "weight_decay": 1.0}).startswith("fedavg diverged in round 2: ")


@pytest.mark.parametrize("noised", ["step", "update"])
def test_noise_that_overflows(noised: str):
    sentence = divergence("fedgnn", {"learning_rate": 1000, "weight_decay": 1e3}, sigma=1e6, clip=1e6, noised=noised)
    assert "fedgnn diverged in round " in sentence
    assert "sigma, clip" in sentence


@pytest.mark.parametrize("name", ["feddep", "feddep_wo_proto"])
def test_a_generator_that_diverges(name: str):
    far = {"generator_learning_rate": 1000, "cross_weight": 1e6, "task_weight": 1e6, "count_bias": 3.0, "generator_epochs": 8}
    sentence = divergence(name, {}, **far)
    assert sentence.startswith(f"step feddep.generator{'' if name == 'feddep' else '_without_prototypes'} of {name} diverged: ")
    assert re.search(r"the generator of client\d in epoch \d (has|is)", sentence)
    assert sentence.endswith("; lower generator_learning_rate or its weights")


def test_a_generator_beside_its_classifier():
    far = {"generator_learning_rate": 1000, "cross_weight": 1e6, "task_weight": 1e6, "count_bias": 3.0, "generator_epochs": 8}
    assert divergence("feddep_joint", {}, **far).startswith("feddep_joint diverged in round 1: the generator of client")


@pytest.mark.parametrize("name", ["fedsage_plus", "fedsage_plus_shared", "locsage_plus"])
def test_neighgen_that_diverges(name: str, monkeypatch: pytest.MonkeyPatch):
    """Adam's steps are bounded, so that only a loss that overflows can be had."""
    monkeypatch.setattr("feddep.methods.fedsage.neighgen_training.local_loss", lambda *args: torch.tensor(torch.inf))
    sentence = divergence(name, {})
    assert f" of {name} diverged: the loss of the generator of client0 in epoch 1 is inf; lower" in sentence


def test_what_is_finite_passes():
    check_finite("it", 1e308, [torch.zeros(3), torch.full((2,), 3e38)])
    for loss, weights in ((float("nan"), []), (float("inf"), []), (0.0, [torch.tensor([1.0, torch.nan])])):
        with pytest.raises(DivergenceError):
            check_finite("it", loss, weights)


def test_nothing_is_written_and_the_command_line_says_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture):
    config = {
        "datasets": {"tiny": {"synthetic": {"nodes": 60, "communities": 4}}},
        **{"clients": [2], "seeds": [0], "methods": {"global": {}}},
        "settings": {"quick": {"learning_rate": 1000, "weight_decay": 1e6, "rounds": 2, "hidden_channels": 4}},
    }
    write_json(tmp_path / "config.json", config)
    given = ["--config", f"{tmp_path}/config.json", "--dataset", "tiny"]
    graph, split = ["--graph", f"{tmp_path}/graph.safetensors"], f"{tmp_path}/split.safetensors"
    assert main(["prepare", *given, *graph, "--statistics", f"{tmp_path}/graph.json"]) == 0
    assert main(["split", *given, *graph, "--seed", "0", "--output", split]) == 0
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    run = ["--setting", "quick", "--method", "global", "--seed", "0", "--split", split]
    to = ["--metrics", f"{tmp_path}/metrics.json", "--model", f"{tmp_path}/model.safetensors"]
    assert main(["classify", *given, *graph, *run, *to]) == 1
    said = capsys.readouterr().err
    assert "feddep classify: global diverged in round " in said
    assert "Traceback" not in said
    assert sorted(tmp_path.iterdir()) == before
