"""Clients that are absent from rounds: who is drawn, and what every method makes of it."""

import dataclasses
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.federation.averaging import Absence
from feddep.federation.client import Update
from feddep.graph.partition import Partition, louvain
from feddep.methods import registry
from feddep.methods.optimisation.scaffold import ControlServer
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from method_tasks import OWNED, counted, observed, run_on, same_runs, task_of

ABSENT = {"participation": 0.5, "lost_updates": 0.3}
METHODS = registry.methods()
ALONE = ("global", "local")
FEDERATED = [name for name, method in METHODS.items() if method.absence and name not in ALONE]


def absent_task(name: str = "fedavg", **changes: Any) -> Task:
    given = {"full_batch": True, "encoder": "gcn", "rounds": 6, **ABSENT, **changes}
    if not METHODS[name].full_batch:
        given.update(full_batch=False, encoder="sage")
    return task_of(name, clients=4, **given)


def drawn_by(setting: TrainingConfig, nodes: list[int], seed: int = 0) -> Absence:
    clients: list[Any] = [
        SimpleNamespace(evaluator=SimpleNamespace(graph=SimpleNamespace(num_nodes=n)))
        for n in nodes
    ]
    return Absence(setting, clients, seed)


@given(st.floats(0.01, 1), st.floats(0, 0.9), st.integers(1, 12), st.integers(0, 9))
def test_a_round_has_so_many_clients(share: float, lost: float, clients: int, seed: int):
    setting = TrainingConfig(participation=share, lost_updates=lost)
    absence = drawn_by(setting, [5] * clients, seed)
    for _ in range(5):
        present, missing = absence.draw()
        assert len(present) == max(1, round(share * clients))
        assert missing <= present <= set(range(clients))


@pytest.mark.parametrize("participants", ["uniform", "nodes"])
def test_clients_are_drawn_by_their_probabilities(participants: str):
    nodes, rounds = [10, 20, 70], 4000
    setting = TrainingConfig(participation=0.34, participants=participants, lost_updates=0.25)
    absence, drawn, lost = drawn_by(setting, nodes), Counter[int](), 0
    for _ in range(rounds):
        present, missing = absence.draw()
        drawn.update(present)
        lost += len(missing)
    expected = np.array(nodes) / 100 if participants == "nodes" else np.full(3, 1 / 3)
    found = [drawn[i] / rounds for i in range(3)]
    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / rounds**0.5)
    assert abs(lost / rounds - 0.25) < 4 * 0.5 / rounds**0.5


def test_the_server_averages_what_it_is_sent():
    """Rounds of a run, read from its messages: the weights sent back are the mean of those that
    came, and as before where none came.
    """
    task = absent_task(lost_updates=0.6)
    sizes = [len(split.train) for _, split in task.subgraphs()]
    messages = [each for each in observed(task, "fedavg")[1] if each.kind == "model"]
    came: list[tuple[int, Any]] = []
    held: dict[str, torch.Tensor] | None = None
    numbers: list[int] = []
    for client, direction, _, weights in messages:
        if direction == "up":
            came.append((client, weights))
            continue
        if came or held is None:
            numbers.append(len(came))
            total = sum(sizes[i] for i, _ in came)
            held = weights if held is None else held
            if came:
                held = {
                    name: sum(sizes[i] / total * sent[name].double() for i, sent in came)
                    for name in held
                }
            came = []
        for name, tensor in weights.items():
            torch.testing.assert_close(tensor.double(), held[name].double())
    assert set(numbers) <= {0, 1, 2}
    assert sum(each.direction == "down" for each in messages) == 4 * (6 + 1)


@pytest.mark.parametrize("name", FEDERATED)
def test_every_method_trains_the_same_together_and_alone(name: str):
    changes = {"weight_decay": 0.0, "optimizer": "sgd"} if name == "scaffold" else {}
    task = absent_task(name, **changes)
    ours, alone = (
        run_on(dataclasses.replace(task, stacked=stacked), name) for stacked in (None, False)
    )
    assert str(ours.curve) == str(alone.curve)  # a loss may be unknown
    assert ours.history.after == alone.history.after
    assert ours.communication == alone.communication
    sent = counted(ours.communication, "training")
    assert 0 < sum(messages for messages, _ in sent.values()) <= 6 * 2
    assert all(torch.isfinite(tensor).all() for tensor in ours.weights().values())


def test_everybody_drawn_is_everybody_present():
    ours, theirs = (
        run_on(absent_task(participation=share, lost_updates=0.0), "fedavg") for share in (0.9, 1.0)
    )
    assert same_runs(ours, theirs)


@pytest.mark.parametrize("key", ABSENT)
def test_other_methods_refuse(key: str):
    for method in METHODS.values():
        if not method.absence:
            setting = TrainingConfig(
                encoder=method.encoders[0], full_batch=not method.mini_batch, **{key: ABSENT[key]}
            )
            with pytest.raises(ConfigError, match="participation"):
                method.check_setting(setting.model_dump(), method.parameters())


@pytest.mark.parametrize("name", ["fedavg", "fednova"])
def test_a_round_without_training_nodes_leaves_the_model(name: str):
    """One client of four trains in a round; three have no training node."""
    task = absent_task(name, participation=0.25, lost_updates=0.0, weight_decay=0.0)
    with_nodes = task.ownership.nodes(0)
    train = np.intersect1d(task.split.train, with_nodes)
    task = dataclasses.replace(task, split=dataclasses.replace(task.split, train=train))
    result = run_on(task, name)
    losses = result.history.losses
    trained = [any(nodes for nodes, _ in each) for each in losses]
    assert {True, False} == set(trained)
    for i, moved in enumerate(trained):
        if i and not moved:
            assert result.history.before[i] == result.history.before[i - 1]


SERVED = [name for name, method in METHODS.items() if method.absence and method.new_clients]


def new_clients_task(name: str, new: int = 2) -> Task:
    """Two of four clients are new, and the same clients have models at the same rounds."""
    setting = {"learning_rate": 0.1, "weight_decay": 0.0, "local_epochs": 3, "rounds": 6}
    task = task_of(name, clients=4, **{**OWNED, **setting, "new_clients": new})
    task = dataclasses.replace(task, partition=louvain(task.graph, 4, 0))
    return task.with_new_clients() if new else task


@pytest.mark.parametrize("name", [name for name in SERVED if METHODS[name].full_batch])
def test_new_clients_send_nothing_and_are_tested_alone(name: str):
    task = new_clients_task(name)
    result, messages = observed(task, name)
    new = task.new_clients
    assert {each.client for each in messages if each.direction == "up"} <= {0, 1, 2, 3} - new
    for counts in (*result.history.before, *result.history.after):
        validated, tested = (
            {i for i, (_, nodes) in enumerate(each) if nodes}
            for each in (counts.validation, counts.test)
        )
        assert (validated, tested) == ({0, 1, 2, 3} - new, new)
    if name not in (*ALONE, "fedstar_local"):
        assert {each.client for each in messages if each.direction == "down"} == {0, 1, 2, 3}
        assert {i for losses in result.history.losses for i, (n, _) in enumerate(losses) if n} == {
            0, 1, 2, 3,
        } - new  # fmt: skip


@pytest.mark.parametrize("name", ["fedavg", "fedper", "scaffold", "global"])
def test_data_of_new_clients_reach_nobody(name: str):
    """With other labels at their nodes the others have the same models."""
    task = new_clients_task(name)
    labels = task.graph.labels.copy()
    labels[np.isin(task.ownership.client, list(task.new_clients))] = 0
    other = dataclasses.replace(task, graph=dataclasses.replace(task.graph, labels=labels))
    ours, theirs = (run_on(each, name) for each in (task, other))
    assert [each.validation for each in ours.history.before] == [
        each.validation for each in theirs.history.before
    ]
    assert all(torch.equal(tensor, theirs.weights()[key]) for key, tensor in ours.weights().items())


def test_new_clients_have_the_model_of_a_federation_without_them():
    """FedAvg of the others on the same graph gives the weights that new clients are tested with."""
    task, name = new_clients_task("fedavg"), "fedavg"
    old = sorted({0, 1, 2, 3} - task.new_clients)
    assert task.partition is not None
    owner = task.partition.client
    nodes = np.flatnonzero(np.isin(owner, old))
    alone = dataclasses.replace(
        task,
        graph=task.graph.subgraph(nodes),
        split=task.split.restrict(nodes),
        partition=Partition(np.searchsorted(old, owner[nodes]), 2),
        setting=task.setting.replace(new_clients=0, dropout=0.0),
    )
    task = dataclasses.replace(task, setting=task.setting.replace(dropout=0.0))
    ours, theirs = run_on(task, name), run_on(alone, name)
    assert [each.validation for each in theirs.history.before] == [
        tuple(each.validation[i] for i in old) for each in ours.history.before
    ]
    assert all(torch.equal(tensor, theirs.weights()[key]) for key, tensor in ours.weights().items())


@pytest.mark.parametrize("name", METHODS)
def test_methods_without_a_model_for_new_clients_refuse(name: str):
    method = METHODS[name]
    setting = TrainingConfig(encoder=method.encoders[0], full_batch=not method.mini_batch)
    fields = {**setting.model_dump(), "new_clients": 2}
    with pytest.raises(ConfigError, match="new_clients"):  # of all, where the server's is judged
        method.check_setting(fields, method.parameters())
    fields["evaluation"] = "owners"
    if name in SERVED:
        method.check_setting(fields, method.parameters())
    else:
        with pytest.raises(ConfigError, match="new_clients"):
            method.check_setting(fields, method.parameters())


def test_somebody_has_to_train():
    with pytest.raises(ConfigError, match="new_clients"):
        new_clients_task("fedavg", new=4)


@pytest.mark.parametrize("rounds", [1, 4])
def test_rounds_of_tuning_are_everybodys(rounds: int):
    task = absent_task("fedavg_finetuned")
    result, messages = observed(task, "fedavg_finetuned", tuning_rounds=rounds)
    assert sum(each[1:3] == ("up", "model") for each in messages) <= 2 * (6 - rounds)
    tuned = result.history.after[-rounds:]
    assert result.history.before[-rounds:] == tuned  # nobody is sent anything
    plain = run_on(dataclasses.replace(task, name="fedavg"), "fedavg")
    assert plain.history.after[: 6 - rounds] == result.history.after[: 6 - rounds]


@given(st.integers(0, 999))
def test_the_control_variate_is_the_papers(seed: int):
    """SCAFFOLD's c ← c + |S| / N mean over S of (c_i⁺ − c_i), with absent clients."""
    rng = np.random.default_rng(seed)
    n, c = 5, np.zeros(3)
    own = np.zeros((n, 3))
    start = {"w": torch.zeros(3), "control_w": torch.zeros(3)}
    server = ControlServer(start, "equal", clients=n)
    for _ in range(6):
        present = np.flatnonzero(rng.random(n) < 0.5)
        if not len(present):
            continue
        new, weights = rng.normal(size=(2, len(present), 3))
        c = c + (new - own[present]).mean(axis=0) * len(present) / n
        own[present] = new
        server.aggregate(
            [
                Update(int(i), {"w": torch.tensor(w), "control_w": torch.tensor(v)}, 1, 0.0)
                for i, w, v in zip(present, weights, new, strict=True)
            ]
        )
        np.testing.assert_allclose(server.weights["control_w"], c, atol=1e-6)
        np.testing.assert_allclose(server.weights["w"], weights.mean(axis=0), atol=1e-6)
