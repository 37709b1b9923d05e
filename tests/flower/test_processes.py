"""The commands, and a SuperLink and SuperNodes as processes: few, as each takes seconds to start."""

from pathlib import Path

import numpy as np
import pytest
from flower_tasks import cut, small_task

from feddep import api
from feddep.flower import FederationError, processes
from feddep.flower.__main__ import main
from feddep.flower.processes import APP, LocalFederation
from feddep.utils.storage import read_arrays, read_json, write_arrays, write_json

CUT = ["cut", "fedavg", "--graph", "mine", "--clients", "2", "--set", "rounds=1", "--set", "hidden_channels=8", "--simulate"]


@pytest.fixture
def participants(tmp_path, monkeypatch):
    """What ``cut`` has written, with the simulation beside it."""
    monkeypatch.setattr(api, "load_graph", lambda path: small_task().graph)
    assert main([*CUT, "--output", str(tmp_path / "participants")]) == 0
    return tmp_path / "participants"


@pytest.mark.slow
def test_processes_give_the_numbers_of_the_simulation(participants, tmp_path, capsys):
    assert main(["train", str(participants), "--output", str(tmp_path / "federated.json")]) == 0, capsys.readouterr().err
    outcome, simulation = read_json(tmp_path / "federated.json"), read_json(participants / "simulation.json")
    assert simulation == {name: outcome[name] for name in simulation}
    ours, theirs = read_arrays(participants / "server/weights.safetensors"), read_arrays(participants / "simulation.safetensors")
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    for row in outcome["wire"]:
        each = ("client", "direction")
        counted = sum(part["bytes"] for part in outcome["communication"] if all(part[key] == row[key] for key in each))
        assert counted < row["bytes"] < counted + 100_000  # what TLS, HTTP and Flower add
    assert (participants / "client1/superlink.pem").read_bytes() == (participants / "server/superlink.pem").read_bytes()


@pytest.mark.slow
def test_a_client_that_dies_stops_the_run_with_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    app = tmp_path / "app" / "pyproject.toml"
    app.parent.mkdir()
    app.write_text((APP / "pyproject.toml").read_text().replace("feddep.flower.client_app", "faulty_client_app"))
    cut(small_task(rounds=1), tmp_path)
    with LocalFederation(tmp_path, tls=False) as local, pytest.raises(FederationError, match="client 1 "):
        local.run(app=app.parent)
    assert not (tmp_path / "server/outcome.json").exists()


class Trained(LocalFederation):
    """A federation that has given the numbers of the simulation, without any process."""

    def __enter__(self):
        return self

    def run(self, patience):
        wire = [{"client": client, "direction": direction, "bytes": 10} for client in (0, 1) for direction in ("up", "down")]
        return {**read_json(self._server.parent / "simulation.json"), "wire": wire}


@pytest.mark.parametrize(("secure", "change", "status"), [(False, 0, 0), (False, 1e-7, 1), (True, 1e-7, 0)])
def test_other_weights_than_the_simulations_are_an_error_unless_masked(participants, monkeypatch, secure, change, status):
    monkeypatch.setattr(processes, "LocalFederation", Trained)
    weights = read_arrays(participants / "simulation.safetensors")
    write_arrays(participants / "server/weights.safetensors", {name: array + change for name, array in weights.items()})
    if secure:
        description = participants / "server/federation.json"
        write_json(description, {**read_json(description), "public_keys": ["00", "11"]})
    assert main(["train", str(participants)]) == status


def test_another_curve_than_the_simulations_is_an_error(participants, monkeypatch, capsys):
    monkeypatch.setattr(processes, "LocalFederation", Trained)
    monkeypatch.setattr(Trained, "run", lambda self, patience, run=Trained.run: {**run(self, patience), "loss": [0.5]})
    weights = read_arrays(participants / "simulation.safetensors")
    write_arrays(participants / "server/weights.safetensors", weights)
    assert main(["train", str(participants)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("command", ["cut", "train"])
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"python -m feddep.flower {command} " in capsys.readouterr().out


def test_a_folder_without_a_federation_is_one_sentence(tmp_path, capsys):
    assert main(["train", str(tmp_path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
