"""Training by processes: a SuperLink, three SuperNodes, and the numbers of the simulation."""

import numpy as np
import pytest
from flower_tasks import KEY, PROCESSES, cut, simulated, small_task

pytest.importorskip("flwr", reason="Flower is not installed")

from feddep.deployment.client_folders import server_folder
from feddep.deployment.processes import started
from feddep.utils.storage import read_arrays

pytestmark = PROCESSES


@pytest.mark.parametrize(("method", "tls"), [("fedavg", False), ("fedavg", True), ("feddep", True), ("fedsage_plus", True)])
def test_the_numbers_are_those_of_the_simulation(tmp_path, method, tls):
    task = small_task(method=method)
    expected = simulated(task)
    history = expected.histories[0]
    with started(cut(task, tmp_path), tls) as local:
        outcome = local.run()
    assert outcome["curve"] == {"loss": history.loss, "validation": history.validation}
    assert outcome["communication"] == expected.communication
    assert outcome["best_round"] == history.best_round
    weights = read_arrays(server_folder(tmp_path) / "weights.safetensors", KEY)
    assert all((weights[name] == tensor.numpy()).all() for name, tensor in history.best_weights.items())
    for row in outcome["wire"]:
        for direction in ("up", "down"):
            counted = [
                each["bytes"]
                for each in expected.communication
                if (each["client"], each["direction"]) == (row["client"], direction)
            ]
            assert row[direction] > (0 if method == "fedsage_plus" else sum(counted))  # docs/federation.md


def test_with_secure_aggregation_the_numbers_are_those_of_the_simulation_up_to_rounding(tmp_path):
    task = small_task()
    history = simulated(task).histories[0]
    with started(cut(task, tmp_path, secure=True)) as local:
        outcome = local.run()
    assert outcome["curve"]["loss"] == pytest.approx(history.loss, abs=1e-4)
    weights = read_arrays(server_folder(tmp_path) / "weights.safetensors", KEY)
    assert all(np.allclose(weights[name], tensor.numpy(), rtol=0, atol=1e-4) for name, tensor in history.best_weights.items())
