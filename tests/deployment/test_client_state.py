"""A client that is kept on disk goes on with the draws that it would have made."""

import pytest
import torch
from flower_tasks import small_task

from feddep.deployment import DeploymentError, client_state
from feddep.federation.boundary import Boundary, numbers, schema_of
from feddep.federation.client import REPORTS
from feddep.methods.basic.fedavg import new_client


@pytest.fixture
def client():
    task = small_task()
    client = new_client(task, 0, task.subgraphs()[0], Boundary({"model": schema_of(task.new_model()), **REPORTS}))
    client.load(task.new_model().state_dict())
    return client


def test_it_goes_on_as_if_it_had_not_stopped(client, tmp_path):
    first = client.update()
    client_state.save(tmp_path, "run", 0, client, {"model": first.weights})
    again = client_state.client_after(tmp_path, "run", 0)
    ours, theirs = client.update(), again.update()
    assert ours.loss == theirs.loss
    assert all(ours.weights[name].equal(theirs.weights[name]) for name in ours.weights)
    assert not all(ours.weights[name].equal(first.weights[name]) for name in ours.weights)


def test_an_answer_is_kept_bit_by_bit(client, tmp_path):
    update = client.update()
    weights, report = update.weights, numbers(nodes=update.nodes, loss=update.loss)
    client_state.save(tmp_path, "run", 2, client, {"model": weights, "training": report})
    answer = client_state.answer_of(tmp_path, "run", 2)
    assert answer is not None
    assert all(answer["model"][name].equal(tensor) for name, tensor in weights.items())
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in answer["training"].items()} == {
        "nodes": (torch.Size(), torch.float64),
        "loss": (torch.Size(), torch.float64),
    }
    assert answer["training"]["loss"] == report["loss"]


@pytest.mark.parametrize(("run", "number"), [("other", 0), ("run", 1)])
def test_another_run_or_round_is_not_taken_up(client, tmp_path, run, number):
    client_state.save(tmp_path, "run", 0, client, {})
    assert client_state.answer_of(tmp_path, run, number) is None
    with pytest.raises(DeploymentError, match=f"the client cannot go on after round {number}: .*(stale|does not exist)"):
        client_state.client_after(tmp_path, run, number)


def test_what_is_no_longer_needed_goes(client, tmp_path):
    for number in range(4):
        client_state.save(tmp_path, "run", number, client, {})
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["round2.safetensors", "round3.safetensors"]
