"""Secure aggregation: the mean is that of the simulation up to rounding, and no answer holds a client's weights."""

import dataclasses
import math

import pytest
import torch
from flower_tasks import cut, simulated, small_task, train

from feddep.flower import FederationError
from feddep.flower.secure_aggregation import CLIP, MASKED, SCALE, make_keys, masked, unmasked_mean
from feddep.graph.partition import louvain


@pytest.mark.parametrize("client_weights", ["nodes", "equal"])
def test_the_mean_is_that_of_the_simulation_up_to_rounding(tmp_path, monkeypatch, client_weights):
    task = small_task(client_weights=client_weights)
    cut(task, tmp_path, secure=True)
    seen = set()

    def note(client, number, content):
        seen.update(content.array_records)
        return content

    result, _ = train(tmp_path, monkeypatch, note)
    ours, expected = result.histories[0], simulated(task)
    theirs = expected.histories[0]
    assert seen == {MASKED, "training", "validation"}
    assert (ours.validation, ours.best_round) == (theirs.validation, theirs.best_round)
    for name, tensor in theirs.best_weights.items():
        torch.testing.assert_close(ours.best_weights[name], tensor, rtol=0, atol=1e-6)
    size = 8 * sum(tensor.numel() for tensor in theirs.best_weights.values())
    rows = {(row["direction"], row["kind"]): row for row in result.communication if row["client"] == 1}
    assert (rows["up", MASKED]["messages"], rows["up", MASKED]["bytes"]) == (2, 2 * size)


@pytest.fixture
def keys(tmp_path):
    """Private keys of three clients, and the public ones."""
    folders = [tmp_path / f"client{i}" for i in range(3)]
    for folder in folders:
        folder.mkdir()
    public = make_keys(folders)
    assert {(folder / "mask.key").stat().st_mode & 0o777 for folder in folders} == {0o600}
    return [(folder / "mask.key").read_bytes() for folder in folders], public


def test_masks_cancel_in_the_sum_alone(keys):
    private, public = keys
    weights = [{"w": torch.full((1000,), value)} for value in (0.25, -0.5, 1.0)]
    nodes = [3, 5, 2]
    sent = [masked(weights[i], nodes[i], private[i], i, public, "round 1") for i in range(3)]
    expected = (3 * 0.25 - 5 * 0.5 + 2) / 10
    assert unmasked_mean(sent, nodes)["w"].allclose(torch.tensor(expected), rtol=0, atol=1e-9)
    plain = 3 * torch.tensor(0.25 * SCALE).long()
    one, two = sent[0]["w"] - plain, sent[0]["w"] + sent[1]["w"]  # client 0's masks; what two clients hide together
    assert all(each.unique().numel() == 1000 and each.double().abs().mean() > 2**60 for each in (one, two))
    other = masked(weights[0], nodes[0], private[0], 0, public, "round 2")["w"]
    assert not (other == sent[0]["w"]).any()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 2 * CLIP])
def test_weights_that_cannot_be_rounded_are_not_sent(keys, wrong):
    weights = {"first": torch.zeros(2), "second": torch.tensor([0.5, wrong])}
    with pytest.raises(FederationError):
        masked(weights, 5, keys[0][0], 0, keys[1], "round 1")


def test_a_single_client_cannot_hide(tmp_path):
    task = small_task()
    with pytest.raises(FederationError):
        cut(dataclasses.replace(task, partition=louvain(task.graph, 1, 0)), tmp_path, secure=True)
