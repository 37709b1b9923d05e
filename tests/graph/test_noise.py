"""Noise of what clients train on, and unseen test nodes: what is drawn, where, and what is tested
as it was.
"""

import dataclasses
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from feddep.experiment.tasks import build_task
from feddep.graph.graph import Graph
from feddep.graph.noise import Noise, with_noise, without_test_nodes
from feddep.graph.partition import Partition
from feddep.graph.split import Split, random_split
from feddep.methods import registry
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from feddep.utils.errors import ConfigError, PartitionError
from graphs import random_graph
from method_tasks import OWNED, run_on, same_runs, task_of

N, M = 160, 4
SHARES = {"train": 0.5, "val": 0.2, "test": 0.3}
GRAPH = random_graph(N, 900, features=30)
OWNER = Partition(np.arange(N) % M, M)
SPLIT = random_split(N, SHARES, 0)
MODES = get_args(Noise)
APART = [name for name, method in registry.methods().items() if method.tested_apart]


def noisy(noise: Noise, level: float, clients: float = 1.0, seed: int = 0) -> tuple[Graph, Split]:
    return with_noise(GRAPH, SPLIT, OWNER, seed, noise, level, clients)


def parts(graph: Graph, split: Split) -> list[tuple[Graph, Split]]:
    return [(graph.subgraph(OWNER.nodes(i)), split.restrict(OWNER.nodes(i))) for i in range(M)]


def edges(graph: Graph) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in graph.edges()}


def same(one: tuple[Graph, Split], other: tuple[Graph, Split]) -> bool:
    return one[0].fingerprint == other[0].fingerprint and all(
        np.array_equal(a, b)
        for a, b in zip(vars(one[1]).values(), vars(other[1]).values(), strict=True)
    )


@given(st.sampled_from(MODES), st.floats(0, 0.9), st.integers(0, 99))
def test_shares_are_as_asked(noise: Noise, level: float, seed: int):
    made = noisy(noise, level, seed=seed)
    for (was, had), (now, has) in zip(parts(GRAPH, SPLIT), parts(*made), strict=True):
        before, after = edges(was), edges(now)
        kept = round((1 - level) * len(before)) if "topology" in noise else len(before)
        assert len(before & after) == kept
        added = round(level * len(before)) if noise == "topology_noise" else 0
        assert len(after - before) == added
        changed = round(level * len(had.train))
        assert len(has.train) == len(had.train) - changed * (noise == "label_sparsity")
        assert {*has.train} <= {*had.train}
        wrong = np.flatnonzero(was.labels != now.labels)
        assert len(wrong) == changed * (noise == "label_noise")
        assert {*wrong} <= {*had.train}
        if noise == "feature_sparsity":
            count = np.diff(was.features.indptr)
            lost = count - np.diff(now.features.indptr)
            np.testing.assert_array_equal(lost, np.floor(level * count))
            assert abs(now.features - was.features.multiply(now.features != 0)).nnz == 0
        elif noise != "feature_noise":
            assert abs(now.features - was.features).nnz == 0
    between = edges(GRAPH) - edges_within(GRAPH)
    assert edges(made[0]) - edges_within(made[0]) == between
    np.testing.assert_array_equal(made[1].test, SPLIT.test)
    np.testing.assert_array_equal(made[1].val, SPLIT.val)
    assert made[0].tested is (None if noise.startswith("label") else GRAPH)


def edges_within(graph: Graph) -> set[tuple[int, int]]:
    return {(a, b) for a, b in edges(graph) if OWNER.client[a] == OWNER.client[b]}


def test_noise_is_normal():
    made, _ = noisy("feature_noise", 0.3)
    found = (made.features - GRAPH.features).toarray().ravel() / 0.3
    assert kstest(found, "norm").pvalue > 0.001


def test_wrong_labels_and_edges_are_uniform():
    counts, added = np.zeros((GRAPH.num_classes,) * 2), np.zeros((N, N))
    for seed in range(300):
        labels = noisy("label_noise", 0.5, seed=seed)[0].labels
        np.add.at(counts, (GRAPH.labels, labels), 1)
        for a, b in edges(noisy("topology_noise", 0.5, seed=seed)[0]) - edges(GRAPH):
            added[a, b] += 1
    wrong = counts[~np.eye(len(counts), dtype=bool)].reshape(len(counts), -1)
    total = wrong.sum(axis=1, keepdims=True)
    assert (abs(wrong - total / wrong.shape[1]) < 4.5 * np.sqrt(total)).all()
    for i in range(M):
        own = OWNER.nodes(i)
        free = np.triu(GRAPH.adjacency[own][:, own].toarray() == 0, 1)
        found = added[np.ix_(own, own)][free]
        assert abs(found - found.mean()).max() < 6 * np.sqrt(found.mean())


@pytest.mark.parametrize("noise", MODES)
def test_half_of_the_clients(noise: Noise):
    """Half are as they were; the others have the noise that they have where all do."""
    for seed in range(5):
        found = parts(*noisy(noise, 0.4, 0.5, seed))
        clean, everywhere = parts(GRAPH, SPLIT), parts(*noisy(noise, 0.4, seed=seed))
        is_clean = [same(a, b) for a, b in zip(found, clean, strict=True)]
        is_noisy = [same(a, b) for a, b in zip(found, everywhere, strict=True)]
        assert sum(is_clean) == M // 2
        assert [not each for each in is_clean] == is_noisy
    assert same(noisy(noise, 0.4, seed=1), noisy(noise, 0.4, seed=1))
    assert not same(noisy(noise, 0.4, seed=1), noisy(noise, 0.4, seed=2))


@pytest.mark.parametrize("name", APART)
def test_what_is_tested_is_as_it_was(name: str):
    """Models see other features while they are trained, and the true ones when they are tested: a
    method that has learned nothing yet is tested as without noise.
    """
    still = {"learning_rate": 1e-30, "optimizer": "sgd", "weight_decay": 0.0, "rounds": 1}
    method = registry.find(name)
    if method.full_batch:
        still.update({**OWNED, "encoder": "gcn"})
    task = task_of(name, **still)
    partition = task.partition or Partition(np.arange(240) % 2, 2)
    task = dataclasses.replace(task, partition=partition)
    graph, split = with_noise(task.graph, task.split, partition, 0, "feature_noise", 1.0)
    assert graph.tested is task.graph
    ours, theirs = (
        run_on(each, name) for each in (dataclasses.replace(task, graph=graph, split=split), task)
    )
    assert ours.history.before == theirs.history.before
    assert ours.curve["loss"] != theirs.curve["loss"]


def test_unseen_nodes_are_nowhere_while_training():
    seen = without_test_nodes(GRAPH, SPLIT)
    assert seen.tested is GRAPH
    assert seen.degrees[SPLIT.test].sum() == seen.features[SPLIT.test].nnz == 0
    rest = np.setdiff1d(np.arange(N), SPLIT.test)
    assert seen.subgraph(rest).fingerprint == GRAPH.subgraph(rest).fingerprint
    task = task_of("fedavg", **OWNED)
    hidden = dataclasses.replace(task, graph=without_test_nodes(task.graph, task.split))
    again = dataclasses.replace(task, graph=dataclasses.replace(task.graph, tested=task.graph))
    assert same_runs(run_on(again, "fedavg"), run_on(task, "fedavg"))
    assert not same_runs(run_on(hidden, "fedavg"), run_on(task, "fedavg"))


def task_with(partition: Partition | None, **options: object) -> Task:
    specification = {
        "dataset": {"features": "raw", "labelled": None, **options},
        "split": SHARES,
        "setting": TrainingConfig().in_key(),
        "seed": 0,
    }
    return build_task(specification, GRAPH, SPLIT, partition, "a task")


def test_a_task_has_the_noise_of_its_dataset():
    made = task_with(OWNER, noise="topology_noise", noisy_clients=0.5)
    expected, _ = noisy("topology_noise", 0.1, 0.5)
    assert made.graph.fingerprint == expected.fingerprint
    assert [graph.tested is None for graph, _ in made.subgraphs()] == [False] * M
    copies = Partition(np.arange(5) % 2, 2, copies=np.zeros(5, dtype=np.int64))
    for partition in (None, copies):
        with pytest.raises(PartitionError):
            task_with(partition, noise="label_noise")
    with pytest.raises(ConfigError, match="noise_level"):
        task_with(OWNER, noise="label_sparsity", noise_level=1.0)
