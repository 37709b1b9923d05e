"""What the command says: how the federation compares with the simulation, and what is missing."""

import copy
import importlib.util
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from flower_tasks import KEY, cut, federation_of, small_task

from feddep.cli import main
from feddep.deployment.client_folders import server_folder
from feddep.stages import federate
from feddep.utils.storage import read_result, write_arrays, write_result

RESULT = {
    "best_round": 2,
    "curve": {"loss": [0.5, 0.25], "validation": [0.5, 0.75]},
    "communication": [{"client": 0, "direction": way, "kind": "model", "messages": 2, "bytes": 80} for way in ("down", "up")],
}


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A federation whose outcome is RESULT, and the simulation's files beside it."""
    monkeypatch.chdir(tmp_path)
    task = small_task()
    cut(task, tmp_path / "participants")
    write_arrays(server_folder(tmp_path / "participants") / "weights.safetensors", {"w": np.ones(2)}, KEY)
    write_arrays(tmp_path / "model.safetensors", {"w": np.ones(2)}, KEY)
    write_result(tmp_path / "metrics.json", {"key": KEY, "result": {**RESULT, "accuracy": {}}})
    outcome = {**copy.deepcopy(RESULT), "key": KEY, "seconds": [1.0, 2.0], "wire": [{"client": 0, "down": 100, "up": 120}]}

    @contextmanager
    def started(directory, tls):
        yield SimpleNamespace(federation=federation_of(task), run=lambda patience, resend: outcome)

    monkeypatch.setattr(federate, "started", started)
    return ["federate", "--directory", "participants", "--output", "federated.json", "--metrics", "metrics.json"]


def test_an_equal_federation(command, capsys):
    assert main([*command, "--model", "model.safetensors"]) == 0
    said = capsys.readouterr().out
    assert "| 0 | up | 80 | 120 | 1.500 |" in said
    assert said.endswith("Equal to the simulation, number for number.\n")
    assert read_result("federated.json", KEY)["result"]["curve"] == RESULT["curve"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"curve": {"loss": [0.5, 0.25 + 2**-50], "validation": [0.5, 0.75]}}, "loss"),
        ({"curve": {"loss": [0.5, 0.25], "validation": [0.75, 0.75]}, "best_round": 1}, "validation accuracy, best round"),
        ({"communication": RESULT["communication"][:1]}, "communication"),
    ],
)
def test_what_differs_is_named(command, capsys, change, named):
    write_result("metrics.json", {"key": KEY, "result": {**RESULT, **change}})
    assert main(command) == 1
    assert capsys.readouterr().err == f"feddep federate: the federation differs from the simulation in {named}\n"


def test_rounding_by_secure_aggregation_is_told_and_no_failure(command, monkeypatch, capsys):
    task = small_task()
    command_started = federate.started

    @contextmanager
    def started(directory, tls):
        with command_started(directory, tls) as local:
            yield SimpleNamespace(federation=federation_of(task, secure=True), run=local.run)

    monkeypatch.setattr(federate, "started", started)
    write_arrays("model.safetensors", {"w": np.array([1, 1.25])}, KEY)
    write_result("metrics.json", {"key": KEY, "result": {**RESULT, "curve": {"loss": [0.5, 0.25], "validation": [0.5, 0.5]}}})
    assert main([*command, "--model", "model.safetensors"]) == 0
    said = "Differs from the simulation in validation accuracy by up to 0.2500 in a round, a weight by up to 2.50e-01.\n"
    assert capsys.readouterr().out.endswith(said)


def test_other_weights_are_noticed(command, capsys):
    write_arrays("model.safetensors", {"w": np.array([1, np.nextafter(1, 2)])}, KEY)
    assert main([*command, "--model", "model.safetensors"]) == 1
    assert "differs from the simulation in weights" in capsys.readouterr().err


def test_without_flower_there_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["federate", "--directory", str(tmp_path), "--output", str(tmp_path / "new.json")]) == 1
    said = 'feddep federate: Flower is not installed; pip install "feddep-bench[federation]" installs it\n'
    assert capsys.readouterr().err == said
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_federation_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert main(["federate", "--directory", str(tmp_path), "--output", str(tmp_path / "new.json")]) == 1
    assert capsys.readouterr().err.startswith(f"feddep federate: {tmp_path}/server/federation.json does not exist")
