"""The commands, and a SuperLink and SuperNodes as processes: few, as each takes seconds to
start.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from flower_tasks import cut, small_task

from feddep import api
from feddep.flower import FederationError
from feddep.flower.__main__ import compared, main
from feddep.flower.certificates import make_certificate
from feddep.flower.processes import APP, LocalFederation
from feddep.utils.files import read_arrays, read_json, write_arrays
from method_tasks import task_of

CUT = [
    "cut",
    "fedavg",
    "--graph",
    "mine",
    "--clients",
    "2",
    "--set",
    "rounds=1",
    "--set",
    "hidden_channels=8",
    "--simulate",
]


@pytest.fixture(scope="module")
def participants(tmp_path_factory):
    """What ``cut`` has written, with the simulation beside it."""
    folder = tmp_path_factory.mktemp("participants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "load_graph", lambda path: small_task().graph)
        assert main([*CUT, "--output", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_processes_give_the_numbers_of_the_simulation(participants, tmp_path, capsys):
    assert main(["train", str(participants), "--output", str(tmp_path / "federated.json")]) == 0, (
        capsys.readouterr().err
    )
    outcome = read_json(tmp_path / "federated.json")
    simulation = read_json(participants / "simulation/outcome.json")
    assert simulation == {name: outcome[name] for name in simulation}
    ours, theirs = (
        read_arrays(participants / name / "weights.safetensors")
        for name in ("server", "simulation")
    )
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    for row in outcome["wire"]:
        each = ("client", "direction")
        counted = sum(
            part["bytes"]
            for part in outcome["communication"]
            if all(part[key] == row[key] for key in each)
        )
        assert counted < row["bytes"] < counted + 100_000  # what TLS, HTTP and Flower add
    assert (participants / "client1/superlink.pem").read_bytes() == (
        participants / "server/superlink.pem"
    ).read_bytes()


@pytest.mark.slow
def test_a_client_that_dies_stops_the_run_with_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    app = tmp_path / "app" / "pyproject.toml"
    app.parent.mkdir()
    app.write_text(
        (APP / "pyproject.toml")
        .read_text()
        .replace("feddep.flower.client_app", "faulty_client_app")
    )
    cut(task_of("fedavg", clients=2, rounds=1), tmp_path)
    with (
        LocalFederation(tmp_path, tls=False) as local,
        pytest.raises(FederationError, match="client 1 "),
    ):
        local.run(app=app.parent)
    assert not (tmp_path / "server/outcome.json").exists()
    assert not of_federation(tmp_path)


def of_federation(folder):
    """The processes of a federation in a folder, or of one participant."""
    return [
        process
        for process in psutil.process_iter(["environ", "cmdline"])
        if (process.info["environ"] or {}).get("FLWR_HOME", "").startswith(str(folder))
    ]


def wait_until(condition):
    """At most as long as a test may take."""
    while not condition():
        time.sleep(0.1)


@pytest.mark.slow
def test_all_processes_end_with_the_one_that_has_started_them(tmp_path):
    cut(task_of("fedavg", clients=2, rounds=500), tmp_path)
    with subprocess.Popen([sys.executable, "-m", "feddep.flower", "train", tmp_path]) as process:
        wait_until(
            lambda: any("flwr-clientapp" in str(p.info["cmdline"]) for p in of_federation(tmp_path))
        )
        process.kill()
    wait_until(lambda: not of_federation(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("file", ["superlink.pem", "node.key"])
def test_a_client_with_another_authority_or_the_key_of_another_is_not_let_in(
    tmp_path, monkeypatch, file
):
    cut(task_of("fedavg", clients=2, rounds=1), tmp_path)
    make_certificate(tmp_path / "other.key", [tmp_path / "superlink.pem"])
    start = LocalFederation._start_supernode

    def start_one_wrong(local, number):
        if number == 1:
            of_another = tmp_path if file == "superlink.pem" else tmp_path / "client0"
            shutil.copy(of_another / file, tmp_path / "client1" / file)
        start(local, number)

    monkeypatch.setattr(LocalFederation, "_start_supernode", start_one_wrong)
    wrong = r"client [01] "  # of two that have one key, the first is let in
    with LocalFederation(tmp_path) as local, pytest.raises(FederationError, match=wrong):
        local.run(60)
    assert not (tmp_path / "server/outcome.json").exists()


@pytest.mark.parametrize(
    "wrong", [{"loss": [0.5]}, {"validation": [0.5]}, {"best_round": 9}, {"communication": []}, {}]
)
def test_what_differs_from_the_simulation_is_an_error(participants, wrong):
    """Other weights, where nothing else is wrong."""
    simulation = participants / "simulation"
    weights = {
        name: array + (0 if wrong else 1e-7)
        for name, array in read_arrays(simulation / "weights.safetensors").items()
    }
    write_arrays(participants / "server" / "weights.safetensors", weights)
    outcome = read_json(simulation / "outcome.json") | wrong
    with pytest.raises(FederationError):
        compared(participants, outcome)
