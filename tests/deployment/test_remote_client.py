"""The server's side of a federation, with SuperNodes that are not there, fail or lie."""

import dataclasses
import itertools
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from flower_tasks import KEY, cut, federation_of, simulated, small_task

pytest.importorskip("flwr", reason="Flower is not installed")

from in_process_grid import InProcessGrid

from feddep.deployment import DeploymentError, client_state, remote_client, server_app
from feddep.deployment.client_folders import Federation, client_folder, server_folder
from feddep.deployment.messages import pack, unpack
from feddep.graph.partition import louvain
from feddep.methods.fedsage.cross_client import gradients_for, request_of
from feddep.utils.storage import read_arrays


@pytest.fixture
def task():
    return small_task()


def train(task, directory, grid, patience=60.0, resend=60.0):
    server = server_folder(directory)
    return server_app.train(grid, Federation.load(server), server, patience, resend)


def changed(client, number, **payloads):
    """A change of what one client sends in one round."""

    def change(which, when, content):
        if (which, when) != (client, number):
            return content
        answer, facts = unpack(content)
        for kind, make in payloads.items():
            if kind == "facts":
                facts = make(facts)
            else:
                answer[kind] = make(answer[kind])
        return pack(answer, facts)

    return change


def each_tensor(make):
    return lambda payload: {name: make(tensor) for name, tensor in payload.items()}


def assert_equal(task, result):
    expected = simulated(task)
    ours, theirs = result.histories[0], expected.histories[0]
    assert (ours.loss, ours.validation) == (theirs.loss, theirs.validation)
    assert all(ours.best_weights[name].equal(tensor) for name, tensor in theirs.best_weights.items())
    assert result.communication == expected.communication


@pytest.mark.parametrize("method", ["fedavg", "feddep", "fedsage_plus"])
@pytest.mark.parametrize("named", [False, True])
def test_the_numbers_are_those_of_the_simulation(tmp_path, method, named):
    task = small_task(method=method)
    assert_equal(task, train(task, tmp_path, InProcessGrid(cut(task, tmp_path), 3, named=named)))


@pytest.mark.parametrize("code", [3, 4, 5, 8])
def test_a_lost_message_is_sent_again(task, tmp_path, code):
    grid = InProcessGrid(cut(task, tmp_path), 3)
    grid.lose = [(1, 1, code), (1, 1, code), (2, 3, code)]
    assert_equal(task, train(task, tmp_path, grid, resend=0.1))
    assert grid.pushed.count((1, 1)) > 2
    assert grid.pushed.count((2, 3)) > 1


@pytest.fixture
def clock(monkeypatch):
    """A clock of the courier that goes on a tenth of a second whenever it is read: no matter how fast the machine is."""
    ticks = itertools.count()
    monkeypatch.setattr(remote_client, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 10, sleep=lambda seconds: None))


def test_a_straggler_is_asked_again_and_then_stops_the_run(task, tmp_path, clock):
    grid = InProcessGrid(cut(task, tmp_path), 3)
    grid.silent = {0, 2}
    with pytest.raises(DeploymentError, match="of 3 clients, 0, 2 did not answer in round 0 within 2 seconds; the run stops"):
        train(task, tmp_path, grid, patience=2, resend=0.1)
    assert grid.pushed.count((0, 0)) > 1
    assert grid.pushed.count((1, 0)) == 1


WRONG = {
    "NaN": ({"model": each_tensor(lambda t: t * math.nan)}, "numbers that are not finite, in convolution0.weight of kind model"),
    "infinity": ({"training": each_tensor(lambda t: t / 0)}, "numbers that are not finite, in nodes of kind training"),
    "shape": (
        {"model": each_tensor(lambda t: t[:-1])},
        "what may not cross the boundary, and the run stops: convolution0.bias of kind model must have the",
    ),
    "type": ({"model": each_tensor(lambda t: t.long())}, "what may not cross the boundary.* only floating-point"),
    "nothing": ({"model": lambda _: {}}, "what may not cross the boundary"),
    "more": ({"model": lambda payload: {**payload, "more": torch.ones(1)}}, "what may not cross the boundary"),
    "wider": (
        {"model": each_tensor(lambda t: t.double() + 1e300)},
        r"torch\.float64 in convolution0.weight of kind model, not tor",
    ),
    "narrower": ({"model": each_tensor(lambda t: t.half())}, r"torch\.float16 in convolution0.weight of kind model, not torch"),
    "negative": ({"training": each_tensor(lambda t: -t)}, "-[0-9.]+ for nodes of kind training, which must be between 0 and 1e"),
    "huge": ({"training": each_tensor(lambda t: t + 1e300)}, r"1e\+300 for nodes of kind training, which must be between 0 and"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_numbers_stop_the_run_and_reach_no_weight(task, tmp_path, wrong):
    payloads, sentence = WRONG[wrong]
    grid = InProcessGrid(cut(task, tmp_path), 3, changed(1, 1, **payloads))
    with pytest.raises(DeploymentError, match=f"^client 1 sent in round 1 {sentence}"):
        train(task, tmp_path, grid)
    kept = read_arrays(tmp_path / "server" / "round.safetensors", f"{KEY}/round1")
    expected = simulated(small_task(rounds=1)).histories[0].best_weights
    assert all(np.array_equal(kept[name], tensor.numpy()) for name, tensor in expected.items())


def test_a_client_that_is_not_connected_is_named(task, tmp_path, clock):
    grid = InProcessGrid(cut(task, tmp_path), 3, named=True)
    grid.clients, grid.silent = [0, 2], {2}
    sentence = (
        "of 3 clients, 1, 2 did not answer in round 0 within 1 seconds; "
        "no SuperNode is connected for 1: it does not run, or its key is not registered; the run stops"
    )
    with pytest.raises(DeploymentError, match=f"^{sentence}$"):
        train(task, tmp_path, grid, patience=1)
    kept = read_arrays(tmp_path / "server" / "round.safetensors", f"{KEY}/round0")
    assert all(np.array_equal(kept[name], tensor.numpy()) for name, tensor in task.new_model().state_dict().items())


def test_a_client_that_is_not_what_it_says_stops_the_run(task, tmp_path):
    grid = InProcessGrid(cut(task, tmp_path), 3, changed(1, 0, facts=lambda facts: {**facts, "client": 2}), named=True)
    with pytest.raises(DeploymentError, match="client 1 answered as client 2 in round 0"):
        train(task, tmp_path, grid)


@pytest.mark.parametrize("facts", [{"client": 1, "round": 0}, {"client": 9, "round": 1}, {"client": -1, "round": 1}])
def test_an_answer_of_another_round_or_client_stops_the_run(task, tmp_path, facts):
    grid = InProcessGrid(cut(task, tmp_path), 3, changed(1, 1, facts=lambda _: facts))
    with pytest.raises(
        DeploymentError, match=f"client 1 answered as client {facts['client']} of round {facts['round']} in round 1"
    ):
        train(task, tmp_path, grid)


def test_an_answer_without_facts_stops_the_run(task, tmp_path):
    grid = InProcessGrid(cut(task, tmp_path), 3, changed(1, 1, facts=lambda _: {}))
    with pytest.raises(DeploymentError, match="client 1 sent no answer in round 1"):
        train(task, tmp_path, grid)


def test_a_client_of_another_run_says_so(task, tmp_path):
    grid = InProcessGrid(cut(task, tmp_path), 3)
    federation = federation_of(task)
    other = type(federation)(**{**vars(federation), "key": "f" * 64})
    other.save(client_folder(tmp_path, 0))
    with pytest.raises(
        DeploymentError, match=r"failed in round 0: client 0 holds its part of the run ffffffffffff…, but the server"
    ):
        train(task, tmp_path, grid)


def test_a_client_that_lost_its_state_says_so(task, tmp_path):
    grid = InProcessGrid(cut(task, tmp_path), 3)
    grid.change = lambda client, number, content: (
        (shutil.rmtree(client_folder(tmp_path, 2) / "state") if (client, number) == (2, 1) else None) or content
    )
    with pytest.raises(DeploymentError, match="client 2 failed in round 2: the client cannot go on after round 1: "):
        train(task, tmp_path, grid)


def test_a_client_that_shares_something_wrong_stops_the_run(tmp_path):
    task = small_task(method="feddep")
    grid = InProcessGrid(cut(task, tmp_path), 3, changed(2, -1, prototypes=each_tensor(lambda t: t[:, 1:])))
    with pytest.raises(
        DeploymentError, match="client 2 sent in exchange 1 of 1 before the first round what may not cross the boundary"
    ):
        train(task, tmp_path, grid)


def test_prototypes_go_to_the_others_alone(tmp_path):
    task = small_task(method="feddep")
    grid = InProcessGrid(cut(task, tmp_path), 3)
    train(task, tmp_path, grid)
    assert grid.kinds[1, 0] == {"model", "prototypes/0", "prototypes/2"}
    assert grid.kinds[1, -1] == set()
    assert grid.kinds[1, 1] == {"model"}


WRONG_EXCHANGES = [
    (-4, request_of(1), "widen.0.weight", lambda t: t * math.nan, "numbers that are not finite, in widen.0.weight of kind {}"),
    (-2, request_of(1), "embeddings", lambda t: t[1:], ".*the run stops: embeddings of kind {} must have the shape .* but has"),
    (-3, gradients_for(2), "heads.1.bias", lambda t: t / 0, "numbers that are not finite, in heads.1.bias of kind {}"),
    (
        -1,
        gradients_for(0),
        "heads.4.weight",
        lambda t: t[:, 1:],
        ".*the run stops: heads.4.weight of kind {} must have the shape",
    ),
    (
        -1,
        gradients_for(0),
        "heads.4.weight",
        lambda t: t.double(),
        "torch.float64 in heads.4.weight of kind {}, not torch.float32",
    ),
]


@pytest.mark.parametrize(("exchange", "kind", "name", "make", "sentence"), WRONG_EXCHANGES)
def test_something_wrong_in_an_exchange_of_fedsage_stops_the_run(tmp_path, exchange, kind, name, make, sentence):
    task = small_task(method="fedsage_plus")
    spoil = changed(1, exchange, **{kind: lambda payload: {**payload, name: make(payload[name])}})
    said = f"^client 1 sent in exchange {exchange + 5} of 4 before the first round {sentence.format(kind)}"
    with pytest.raises(DeploymentError, match=said):
        train(task, tmp_path, InProcessGrid(cut(task, tmp_path), 3, spoil))
    assert not (server_folder(tmp_path) / "round.safetensors").exists()


def test_exchanges_of_fedsage_that_are_lost_or_cut_short_change_nothing(tmp_path, monkeypatch):
    """Clients 0 and 2 are asked twice for the same; client 1 is killed, twice, before it has kept what it did."""
    task = small_task(method="fedsage_plus")
    grid = InProcessGrid(cut(task, tmp_path), 3, named=True)
    grid.lose = [(0, -4, 8), (1, -3, 8), (1, -2, 8), (2, -1, 8)]
    killed, save = [-3, -2], client_state.save

    def save_unless_killed(folder, run, number, *kept):
        if folder == client_folder(tmp_path, 1) and number in killed:
            killed.remove(number)
        else:
            save(folder, run, number, *kept)

    monkeypatch.setattr(client_state, "save", save_unless_killed)
    assert_equal(task, train(task, tmp_path, grid, resend=0.1))
    assert not killed
    assert not grid.lose


def test_what_fedsage_sends_reaches_its_receivers_alone(tmp_path):
    task = small_task(method="fedsage_plus")
    grid = InProcessGrid(cut(task, tmp_path), 3)
    train(task, tmp_path, grid)
    assert [grid.kinds[1, exchange] for exchange in (-4, -3, -2, -1, 0, 1)] == [
        set(),
        {f"{request_of(0)}/0", f"{request_of(2)}/2"},
        {gradients_for(1)},
        {f"{request_of(0)}/0", f"{request_of(2)}/2"},
        {"model", gradients_for(1)},
        {"model"},
    ]


def test_a_single_client_of_fedsage_asks_nobody(tmp_path):
    task = small_task(method="fedsage_plus")
    task = dataclasses.replace(task, partition=louvain(task.graph, 1, 0))
    grid = InProcessGrid(cut(task, tmp_path), 1)
    assert_equal(task, train(task, tmp_path, grid))
    assert grid.pushed == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_clients_of_fedsage_sample_as_many_nodes_as_they_have(tmp_path):
    federation = Federation.load(server_folder(cut(small_task(method="fedsage_plus"), tmp_path)))
    assert federation.sizes == [65, 65, 66]
