"""The server's side of a federation: the numbers of the simulation, and SuperNodes that are not
there, fail or lie.
"""

import dataclasses
import math

import numpy as np
import pytest
import torch
from flower_tasks import cut, simulated, small_task, train
from flwr.app import Array

from feddep.federation.boundary import numbers
from feddep.flower import FederationError
from feddep.flower.feddep_protocol import PROTOTYPES
from feddep.flower.messages import pack, unpack
from feddep.flower.protocols import name_of
from feddep.graph.partition import louvain
from feddep.methods.fedsage.cross_client import GRADIENTS, REQUEST
from feddep.utils.files import read_arrays

pytestmark = pytest.mark.slow


def changed(client, number, kind, make):
    """A change of what one client sends in one round."""

    def change(which, when, content):
        if (which, when) != (client, number):
            return content
        answer, facts = unpack(content)
        if kind == "facts":
            return pack(answer, make(facts))
        return pack({**answer, kind: make(answer[kind])}, facts)

    return change


def each_tensor(make):
    return lambda payload: {name: make(tensor) for name, tensor in payload.items()}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    "method", ["fedavg", "feddep", pytest.param("fedsage_plus", marks=pytest.mark.slow)]
)
def test_the_numbers_are_those_of_the_simulation(tmp_path, monkeypatch, method, named):
    task = small_task(method)
    cut(task, tmp_path)
    result, _ = train(tmp_path, monkeypatch, named=named)
    expected, weights = simulated(task), result.weights()
    (ours,), (theirs,) = result.history.judged, expected.history.judged
    assert ours.rounds == theirs.rounds
    assert all(result.curve[name] == expected.curve[name] for name in ("loss", "validation"))
    assert all(weights[name].equal(tensor) for name, tensor in expected.weights().items())
    assert result.communication == expected.communication


def test_a_single_client_asks_nobody(tmp_path, monkeypatch):
    task = small_task("fedsage_plus")
    task = dataclasses.replace(task, partition=louvain(task.graph, 1, 0))
    cut(task, tmp_path)
    result, grid = train(tmp_path, monkeypatch)
    assert result.curve["loss"] == simulated(task).curve["loss"]
    assert grid.received == {(0, number): {"model"} for number in range(3)}


WRONG = {
    "NaN": ("model", each_tensor(lambda t: t * math.nan)),
    "infinity": ("training", each_tensor(lambda t: t / 0)),
    "shape": ("model", each_tensor(lambda t: t[:-1])),
    "integers": ("model", each_tensor(lambda t: t.long())),
    "nothing": ("model", lambda _: {}),
    "more": ("model", lambda payload: {**payload, "features": torch.ones(1)}),
    "wider": ("model", each_tensor(lambda t: t.double() + 1e300)),
    "narrower": ("model", each_tensor(lambda t: t.half())),
    "negative": ("training", each_tensor(lambda t: -t)),
    "another client": ("facts", lambda facts: {**facts, "client": 2}),
    "no such client": ("facts", lambda facts: {**facts, "client": 9}),
    "another round": ("facts", lambda facts: {**facts, "round": 0}),
    "no facts": ("facts", lambda _: {}),
    "a round as text": ("facts", lambda facts: {**facts, "round": str(facts["round"])}),
    "a client as text": ("facts", lambda facts: {**facts, "client": str(facts["client"])}),
    "absurd weights": ("model", each_tensor(lambda t: t + 1e30)),
    "more right than there are": (
        "validation",
        lambda report: {**report, "correct": report["nodes"] + 1},
    ),
    "half a node": ("validation", lambda report: {**report, "correct": report["nodes"] / 2 + 0.25}),
    "more nodes to train": ("training", lambda report: {**report, "nodes": report["nodes"] * 1e6}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_stops_the_run_and_reaches_no_weight(tmp_path, monkeypatch, wrong):
    cut(small_task(), tmp_path)
    with pytest.raises(FederationError, match="client 1 "):
        train(tmp_path, monkeypatch, changed(1, 1, *WRONG[wrong]))
    kept = read_arrays(tmp_path / "server" / "round.safetensors")
    expected = simulated(small_task(rounds=1)).weights()
    assert all(
        np.allclose(kept[name], tensor, rtol=0, atol=1e-6) for name, tensor in expected.items()
    )


@pytest.mark.parametrize(
    ("method", "exchange", "kind", "make"),
    [
        ("feddep", -1, PROTOTYPES, each_tensor(lambda t: t[:, 1:])),
        ("fedsage_plus", -4, REQUEST, each_tensor(lambda t: t * math.nan)),
        ("fedsage_plus", -1, name_of(GRADIENTS, 0), each_tensor(lambda t: t.double())),
    ],
)
def test_what_is_wrong_in_an_exchange_stops_the_run(
    tmp_path, monkeypatch, method, exchange, kind, make
):
    cut(small_task(method), tmp_path)
    with pytest.raises(FederationError, match="client 1 "):
        train(tmp_path, monkeypatch, changed(1, exchange, kind, make))
    assert not (tmp_path / "server" / "round.safetensors").exists()


HUGE = b"\x93NUMPY\1\0v\0{'descr':'<f4','fortran_order':False,'shape':(99999999999999,)}".ljust(127)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("data", [b"", b"PK\3\4", HUGE + b"\n"], ids=["none", "archive", "huge"])
def test_bytes_that_are_no_tensor_stop_the_run(tmp_path, monkeypatch, data, number):
    def change(client, when, content):
        if (client, when) == (1, number):
            name, array = next(iter(content["model"].items()))
            content["model"][name] = Array(array.dtype, array.shape, array.stype, data)
        return content

    cut(small_task(), tmp_path)
    with pytest.raises(FederationError, match="client 1 "):
        train(tmp_path, monkeypatch, change)


@pytest.mark.parametrize("nodes", [1e300, 1e6, 240, 81])
def test_a_client_reports_no_more_nodes_than_it_has(tmp_path, monkeypatch, nodes):
    assert cut(small_task(), tmp_path).nodes[1] == 80
    first = changed(1, 0, "training", lambda report: {**report, **numbers(nodes=nodes)})
    with pytest.raises(FederationError, match="client 1 "):
        train(tmp_path, monkeypatch, first)
    assert not (tmp_path / "server" / "outcome.json").exists()


@pytest.mark.parametrize(
    ("absence", "named", "who"),
    [("silent", True, "client 1"), ("away", True, "client 1"), ("away", False, "1 of 3 clients")],
)
def test_a_client_that_is_missing_stops_the_run(tmp_path, monkeypatch, absence, named, who):
    cut(small_task(), tmp_path)
    with pytest.raises(FederationError, match=f"^{who} did not"):
        train(tmp_path, monkeypatch, named=named, **{absence: [1]})


def test_a_client_of_another_federation_says_so(tmp_path, monkeypatch):
    cut(small_task(), tmp_path)
    cut(small_task(), tmp_path / "other")
    (tmp_path / "other/client2/federation.json").rename(tmp_path / "client2/federation.json")
    with pytest.raises(FederationError, match="client 2 failed"):
        train(tmp_path, monkeypatch)


@pytest.mark.slow
def test_what_clients_exchange_reaches_its_receivers_alone(tmp_path, monkeypatch):
    for method in ("feddep", "fedsage_plus"):
        cut(small_task(method), tmp_path / method)
    _, grid = train(tmp_path / "feddep", monkeypatch)
    assert [grid.received[1, number] for number in (-1, 0, 1)] == [
        set(),
        {"model", "prototypes/0", "prototypes/2"},
        {"model"},
    ]
    reports = {"training", "validation"}
    sent = [grid.sent[1, number] for number in (-1, 0, 1, 2)]
    assert sent == [{PROTOTYPES}, {"model", "training"}, {"model", *reports}, {"validation"}]
    _, grid = train(tmp_path / "fedsage_plus", monkeypatch)
    requests, gradients = {name_of(REQUEST, i) for i in (0, 2)}, {GRADIENTS}
    messages = [grid.received[1, number] for number in range(-4, 2)]
    assert messages == [set(), requests, gradients, requests, {"model", *gradients}, {"model"}]


def test_clients_report_numbers_of_nodes(tmp_path) -> None:
    with pytest.raises(FederationError, match="metric is roc_auc"):
        cut(small_task(metric="roc_auc"), tmp_path)
