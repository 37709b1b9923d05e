"""Secure aggregation: the mean is that of the simulation up to rounding, and no answer holds a client's weights."""

import dataclasses
import math
import re

import numpy as np
import pytest
import torch
from flower_tasks import cut, simulated, small_task

pytest.importorskip("flwr", reason="Flower is not installed")

from flwr.app import Context, RecordDict
from flwr.common import ndarray_to_bytes
from in_process_grid import RUN, InProcessGrid

from feddep.deployment import DeploymentError, server_app
from feddep.deployment.client_folders import Federation, server_folder
from feddep.deployment.secure_aggregation import CLIP, KIND, masked_reply
from feddep.graph.partition import louvain

ROUNDS = 2
STAGES = 4


@pytest.fixture
def task():
    return small_task(ROUNDS)


def train(directory, change=None):
    server = server_folder(directory)
    grid, context = InProcessGrid(directory, 3, change), Context(RUN, 1, {}, RecordDict(), {})
    return server_app.train(grid, Federation.load(server), server, 60.0, 60.0, context)


@pytest.mark.parametrize("client_weights", ["nodes", "equal"])
def test_the_mean_is_that_of_the_simulation_up_to_rounding(tmp_path, task, client_weights):
    task = dataclasses.replace(task, setting=task.setting.replace(client_weights=client_weights))
    cut(task, tmp_path, secure=True)
    seen = []

    def note(client, number, content):
        seen.extend(name for name, record in content.array_records.items() if record.count_bytes())
        return content

    result = train(tmp_path, note)
    ours, theirs = result.histories[0], simulated(task).histories[0]
    assert set(seen) == {"training", "validation"}  # two numbers each
    assert ours.loss == pytest.approx(theirs.loss, abs=1e-4)
    assert ours.best_round == theirs.best_round
    for name, tensor in theirs.best_weights.items():
        assert ours.best_weights[name].dtype == tensor.dtype
        assert not ours.best_weights[name].equal(tensor)
        torch.testing.assert_close(ours.best_weights[name], tensor, rtol=0, atol=1e-4)


def test_rounding_is_the_same_in_each_run_and_all_is_counted(tmp_path, task):
    results = [train(cut(task, tmp_path / name, secure=True)) for name in ("one", "other")]
    first, second = (result.histories[0].best_weights for result in results)
    assert all(first[name].equal(tensor) for name, tensor in second.items())
    rows = {(row["direction"], row["kind"]): row for row in results[0].communication if row["client"] == 1}
    assert ("up", "model") not in rows
    assert rows["up", KIND]["messages"] == rows["down", KIND]["messages"] == STAGES * ROUNDS
    assert rows["up", KIND]["bytes"] > sum(tensor.numel() * 8 for tensor in first.values()) * ROUNDS


def test_masked_weights_of_another_shape_stop_the_run(tmp_path, task):
    def change(client, number, content):
        for record in content.config_records.values():
            if client == 1 and "masked_params" in record:
                record["masked_params"] = [ndarray_to_bytes(np.zeros(2))]
        return content

    sentence = "client 1 failed in secure aggregation in round 0: it sent masked weights of other shapes than the model's"
    with pytest.raises(DeploymentError, match=sentence):
        train(cut(task, tmp_path, secure=True), change)


def test_a_client_that_is_missing_stops_the_run(tmp_path, task, monkeypatch):
    whole = InProcessGrid.send_and_receive
    monkeypatch.setattr(InProcessGrid, "send_and_receive", lambda *sent, timeout: whole(*sent, timeout=timeout)[1:])
    with pytest.raises(DeploymentError, match=r"^0 did not answer in secure aggregation in round 0; the run stops$"):
        train(cut(task, tmp_path, secure=True))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 2 * CLIP])
def test_weights_that_cannot_be_rounded_are_not_sent(wrong):
    weights = {"first": torch.zeros(2), "second": torch.tensor([0.5, wrong])}
    sentence = "secure aggregation takes weights from -8 to 8, but second has others"
    with pytest.raises(DeploymentError, match=re.escape(sentence)):
        masked_reply(weights, 5, np.random.default_rng(0))


def test_a_single_client_cannot_hide(tmp_path, task):
    alone = dataclasses.replace(task, partition=louvain(task.graph, 1, 0))
    with pytest.raises(DeploymentError, match="secure aggregation needs 2 clients or more, but there is 1"):
        cut(alone, tmp_path, secure=True)
