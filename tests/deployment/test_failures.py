"""Processes that are killed, slow, wrong or not invited: the run goes on or stops with a sentence, and weights stay right."""

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from flower_tasks import KEY, PROCESSES, cut, simulated, small_task

pytest.importorskip("flwr", reason="Flower is not installed")

from feddep.deployment import DeploymentError
from feddep.deployment.certificates import make_node_key
from feddep.deployment.client_folders import client_folder, server_folder
from feddep.deployment.processes import LocalFederation, started
from feddep.utils.errors import DataError
from feddep.utils.storage import read_arrays

pytestmark = PROCESSES


def after_round(directory: Path, number: int, act) -> threading.Thread:
    """Do something as soon as a round has ended."""

    def wait() -> None:
        while True:
            try:
                read_arrays(server_folder(directory) / "round.safetensors", f"{KEY}/round{number}")
            except DataError:
                time.sleep(0.2)
            else:
                return act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def assert_equal(task, outcome) -> None:
    history = simulated(task).histories[0]
    assert outcome["curve"] == {"loss": history.loss, "validation": history.validation}


def assert_stopped(directory: Path, weights, number: int) -> None:
    """A run that stopped left no result, and the weights of its last round that ended."""
    server = server_folder(directory)
    kept = read_arrays(server / "round.safetensors", f"{KEY}/round{number}")
    assert all(np.array_equal(kept[name], tensor.numpy()) for name, tensor in weights.items())
    assert not [name for name in ("outcome.json", "weights.safetensors") if (server / name).exists()]


def test_a_supernode_that_is_killed_comes_back_and_nothing_changes(tmp_path):
    task = small_task()
    with started(cut(task, tmp_path)) as local:
        killed = after_round(tmp_path, 1, lambda: local.kill_supernode(1))
        outcome = local.run(patience=1000, resend=120)
        assert not killed.is_alive()
    assert_equal(task, outcome)
    assert (client_folder(tmp_path, 1) / "supernode.log").read_text().count("Starting Flower SuperNode") > 1


def test_a_straggler_is_waited_for(tmp_path):
    task = small_task(rounds=2)

    def stall() -> None:
        local.signal_supernode(2, signal.SIGSTOP)
        time.sleep(20)
        local.signal_supernode(2, signal.SIGCONT)

    with started(cut(task, tmp_path), tls=False) as local:
        stalled = after_round(tmp_path, 1, stall)
        outcome = local.run(resend=15)
        stalled.join(30)
    assert_equal(task, outcome)


def test_a_straggler_that_takes_too_long_stops_the_run(tmp_path):
    task = small_task(rounds=2)
    with started(cut(task, tmp_path), tls=False) as local:
        after_round(tmp_path, 0, lambda: local.signal_supernode(2, signal.SIGSTOP))
        sentence = r"^of 3 clients, 2 did not answer in round [01] within 120 seconds; .*the run stops$"
        with pytest.raises(DeploymentError, match=sentence) as stopped:
            local.run(patience=120)
    if "round 0" in str(stopped.value):  # it was stopped before it had answered
        assert_stopped(tmp_path, task.new_model().state_dict(), 0)
    else:
        assert_stopped(tmp_path, simulated(small_task(rounds=1)).histories[0].best_weights, 1)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("nan", "client 1 sent in round 1 numbers that are not finite"),
        ("shape", "client 1 sent in round 1 what may not cross the boundary"),
        ("type", "client 1 sent in round 1 torch.float64 in convolution0.weight of kind model, not torch.float32"),
        ("raise", "client 1 failed in round 1: out of order"),
        ("sleep", "of 3 clients, 1 did not answer in round 1 within 120 seconds; the run stops"),
    ],
)
def test_a_client_that_sends_something_wrong_stops_the_run(tmp_path, monkeypatch, fault, sentence):
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with (
        started(cut(small_task(rounds=2), tmp_path), tls=False) as local,
        pytest.raises(DeploymentError, match=f"^{re.escape(sentence)}"),
    ):
        local.run(patience=120 if fault == "sleep" else 3600, client_app="faulty_client_app:app")
    assert_stopped(tmp_path, simulated(small_task(rounds=1)).histories[0].best_weights, 1)


def test_supernodes_without_credentials_are_not_let_in(tmp_path):
    """Client 1 has no key, and client 2 one that nobody registered."""
    local = LocalFederation(cut(small_task(rounds=2), tmp_path))
    try:
        local.start_superlink()
        local.register(0)
        make_node_key(client_folder(tmp_path, 2) / "node.key", tmp_path / "unknown.pub")
        for number in range(3):
            local.start_supernode(number)
        sentence = "of 3 clients, 1, 2 did not answer in round 0 within 90 seconds; no SuperNode is connected for 1, 2: "
        with pytest.raises(DeploymentError, match=f"^{sentence}it does not run, or its key is not registered; the run stops$"):
            local.run(patience=90)
    finally:
        local.stop()
    for number in (1, 2):
        said = (client_folder(tmp_path, number) / "supernode.log").read_text()
        assert "Failed to initialize the connection to the SuperLink" in said
        assert not (client_folder(tmp_path, number) / "state").exists()
    assert_stopped(tmp_path, small_task(rounds=2).new_model().state_dict(), 0)


def test_the_command_fails_with_one_sentence_and_writes_nothing(tmp_path):
    """In a folder in which a run has ended before, and what describes the federation to client 2 was changed since.

    Without authentication the server cannot tell which client a SuperNode is that has never answered; the file's name does.
    """
    cut(small_task(rounds=1), tmp_path)
    server, output = server_folder(tmp_path), tmp_path / "federated.json"
    for name in ("round", "weights"):
        (server / f"{name}.safetensors").write_bytes(b"of the run before")
    described = client_folder(tmp_path, 2) / "federation.json"
    described.write_text(described.read_text().replace(KEY, "f" * 64))
    options = ["--directory", str(tmp_path), "--output", str(output), "--insecure"]
    done = subprocess.run([sys.executable, "-m", "feddep", "federate", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"feddep federate: the SuperNode \d+ failed in round 0: .*/client2/federation\.json .*\n", done.stderr)
    assert not output.exists()
    assert_stopped(tmp_path, small_task(rounds=1).new_model().state_dict(), 0)
