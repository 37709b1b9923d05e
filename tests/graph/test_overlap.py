"""Clients that share nodes: what FED-PUB promises, and what else holds where a node may be at
several clients or at none.
"""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from divided import random_task
from feddep import api
from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, statistics
from feddep.graph.partitioners import REVISION, metis_partition, partition
from feddep.graph.split import within_clients_split
from feddep.methods.feddep import FedDEPParameters
from feddep.methods.feddep.classifier import of_global_graph
from feddep.training.config import FIELD
from feddep.training.task import Task
from feddep.utils.errors import ConfigError, PartitionError

SHARES = {"train": 0.2, "val": 0.4, "test": 0.4}
MANY_CLIENTS = st.integers(1, 4).map(lambda parts: 5 * parts)
SEEDS = st.integers(0, 2**63 - 1)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_partition(300, 4, 12, 64, 6.0, 1.0, 8, 0.5, seed=0)


@settings(max_examples=20)
@given(clients=MANY_CLIENTS, seed=SEEDS)
def test_five_clients_draw_half_of_each_part(graph: Graph, clients: int, seed: int):
    found = partition(graph, clients, seed, "overlap")
    part = metis_partition(graph, clients // 5, seed)
    assert found.num_clients == clients
    assert not found.is_disjoint
    assert (found.node.dtype, found.node.shape) == (np.int64, found.client.shape)
    for client in range(clients):
        nodes, of = found.nodes(client), np.flatnonzero(part == client // 5)
        assert len(nodes) == len(of) // 2
        assert np.isin(nodes, of).all()
        assert (np.diff(nodes) > 0).all()
    again = partition(graph, clients, seed, "overlap")
    np.testing.assert_array_equal([again.client, again.node], [found.client, found.node])


def test_clients_draw_apart_from_each_other(graph: Graph):
    """Two clients of a part share half of what each has in the mean, and a node is at none of five
    with probability 2⁻⁵.
    """
    drawn = [partition(graph, 10, seed, "overlap") for seed in range(40)]
    shared = [
        len(np.intersect1d(each.nodes(0), each.nodes(4))) / len(each.nodes(0)) for each in drawn
    ]
    assert np.mean(shared) == pytest.approx(0.5, abs=0.04)
    at_none = [1 - len(np.unique(each.node)) / graph.num_nodes for each in drawn]
    assert np.mean(at_none) == pytest.approx(1 / 32, abs=0.01)
    assert not any(len(np.intersect1d(each.nodes(0), each.nodes(5))) for each in drawn)


def test_the_partition_of_this_revision():
    """Whoever changes it raises the revision, here and in the module."""
    made = partition(planted_partition(240, 4, 12, 64, 2.0, 3.0, 8, 0.5, seed=0), 10, 3, "overlap")
    known = {1: "77a571c27a35"}
    assert (
        hashlib.sha256(np.stack([made.client, made.node]).astype("<i8").tobytes()).hexdigest()[:12]
        == known[REVISION]
    )


@pytest.mark.parametrize("clients", [-5, 0, 3, 12, 305])
def test_numbers_of_clients_that_are_refused(graph: Graph, clients: int):
    with pytest.raises(PartitionError):
        partition(graph, clients, 0, "overlap")


def test_a_part_of_one_node_has_no_half(graph: Graph, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pymetis.part_graph", lambda *_, **__: (0, [0] * 299 + [1]))
    with pytest.raises(PartitionError):
        partition(graph, 10, 0, "overlap")


def test_statistics_are_those_of_the_subgraphs(graph: Graph):
    found = partition(graph, 10, 0, "overlap")
    parts = [graph.subgraph(found.nodes(client)) for client in range(10)]
    numbers = statistics(graph, found)
    expected = [
        {
            "client": i,
            "nodes": p.num_nodes,
            "edges": p.num_edges,
            "classes": np.bincount(p.labels, minlength=4).tolist(),
        }
        for i, p in enumerate(parts)
    ]
    assert numbers["per_client"] == expected
    assert numbers["mean_client_edges"] == np.mean([part.num_edges for part in parts])
    held = [set(found.nodes(client).tolist()) for client in range(10)]
    assert (
        numbers["missing_edges"]
        == sum(not any({u, v} <= nodes for nodes in held) for u, v in graph.edges().tolist())
        > 0
    )


def test_save_and_load(graph: Graph, tmp_path):
    found, file = partition(graph, 5, 0, "overlap"), tmp_path / "partition.safetensors"
    found.save(file, "key")
    loaded = Partition.load(file, "key")
    np.testing.assert_array_equal([loaded.client, loaded.node], [found.client, found.node])
    assert not loaded.is_disjoint


def test_copies_that_somebody_wrote_by_hand():
    found = Partition(np.array([1, 0, 1]), 2, copies=torch.tensor([4, 2, 2])).checked(5)
    assert [found.nodes(client).tolist() for client in range(2)] == [[2], [2, 4]]
    assert {array.dtype for array in (found.client, found.node)} == {np.dtype(np.int64)}
    for client, copies in (
        ([0, 1], [0, 5]),
        ([0, 1], [-1, 0]),
        ([0, 1], [0.0, 1.0]),
        ([0, 1], [[0, 1]]),
        ([0, 1], [0, 1, 2]),
        ([0, 0], [0, 1]),
        ([0, 1, 1], [0, 1, 1]),
        ([], []),
    ):
        with pytest.raises(PartitionError):
            Partition(np.array(client), 2, copies=np.array(copies)).checked(5)


def overlapping_task(graph: Graph, clients: int, seed: int) -> Task:
    found = partition(graph, clients, seed, "overlap")
    return replace(
        random_task(),
        graph=graph,
        partition=found,
        split=within_clients_split(graph, found, SHARES, seed),
    )


@settings(max_examples=20)
@given(clients=MANY_CLIENTS, seed=SEEDS)
def test_no_training_node_of_a_client_is_validation_or_test_node_of_another(
    graph: Graph, clients: int, seed: int
):
    task = overlapping_task(graph, clients, seed)
    assert task.partition is not None
    trained, judged = set[int](), set[int]()
    for client, (part, split) in enumerate(task.subgraphs()):
        nodes = task.partition.nodes(client)
        np.testing.assert_array_equal(part.labels, graph.labels[nodes])
        assert part.num_nodes == sum(map(len, (split.train, split.val, split.test)))
        trained |= set(nodes[split.train].tolist())
        judged |= set(nodes[split.val].tolist()) | set(nodes[split.test].tolist())
    assert trained
    assert not trained & judged
    for label, count in enumerate(np.bincount(graph.labels)):
        assert np.sum(graph.labels[task.split.train] == label) == int(0.2 * count + 1e-9)


def test_a_constant_answer_a_client(graph: Graph):
    task = replace(overlapping_task(graph, 10, 0), evaluation="owners")
    right, tested = 0, 0
    for part, split in task.subgraphs():
        most = np.bincount(part.labels[split.train]).argmax()
        right = right + int(np.sum(part.labels[split.test] == most))
        tested = tested + len(split.test)
    assert task.constant.accuracy == pytest.approx(right / tested)


def test_what_several_clients_generate_for_a_node_counts_with_its_mean(graph: Graph):
    task = overlapping_task(graph, 5, 0)
    assert task.partition is not None
    mended = [torch.full((len(task.partition.nodes(i)), 2), float(i)) for i in range(5)]
    found = of_global_graph(task, FedDEPParameters(embedding=2, inference="generated"), mended)
    assert found is not None
    for node in range(graph.num_nodes):
        owners = task.partition.client[task.partition.node == node]
        assert found[node].tolist() == pytest.approx([owners.mean() if len(owners) else 0.0] * 2)


@pytest.mark.parametrize("method", ["local", "fedavg", "fedpub", "global"])
def test_methods_train_on_overlapping_clients(graph: Graph, method: str):
    found = api.partition(graph, 10, method="overlap")
    split = api.split(graph, 0, **SHARES, method="within_clients", partition=found)
    setting = {**FIELD, "rounds": 5, "hidden_channels": 8, "weight_decay": 0.0}
    result = api.run(method, graph, split, found, setting=setting, device="cpu")
    assert result.local_after["best"] > 0.5
    assert (
        result.clients["nodes"].tolist() == [len(found.nodes(client)) for client in range(10)]
        if len(result.clients)
        else True
    )


@pytest.mark.parametrize("method", ["fedgcn", "fedavg_oracle"])
def test_a_method_that_needs_edges_between_clients_is_refused(graph: Graph, method: str):
    found = api.partition(graph, 5, method="overlap")
    with pytest.raises(ConfigError):
        api.run(method, graph, api.split(graph), found, setting={"rounds": 1}, device="cpu")
