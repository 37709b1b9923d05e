"""Noise of what clients train on, and unseen test nodes: what is drawn, where, and what is tested
as it was.
"""

import dataclasses
from typing import Any, get_args

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
BETWEEN = OWNER.client[:, None] != OWNER.client


def noisy(noise: Noise, level: float, clients: float = 1.0, seed: int = 0) -> tuple[Graph, Split]:
    return with_noise(GRAPH, SPLIT, OWNER, seed, noise, level, clients)


def parts(graph: Graph, split: Split) -> list[tuple[Graph, Split]]:
    return [(graph.subgraph(OWNER.nodes(i)), split.restrict(OWNER.nodes(i))) for i in range(M)]


def links(graph: Graph) -> np.ndarray:
    return np.triu(graph.adjacency.toarray() > 0)


def same(one: tuple[Graph, Split], other: tuple[Graph, Split]) -> bool:
    sets = zip(vars(one[1]).values(), vars(other[1]).values(), strict=True)
    return one[0].fingerprint == other[0].fingerprint and all(np.array_equal(*of) for of in sets)


@given(st.sampled_from(MODES), st.floats(0, 0.9), st.integers(0, 99))
def test_shares_are_as_asked(noise: Noise, level: float, seed: int):
    made, split = noisy(noise, level, seed=seed)
    for (was, had), (now, has) in zip(parts(GRAPH, SPLIT), parts(made, split), strict=True):
        lost = was.num_edges - round((1 - level) * was.num_edges)
        added = round(level * was.num_edges)
        assert (links(was) & ~links(now)).sum() == lost * ("topology" in noise)
        assert (links(now) & ~links(was)).sum() == added * (noise == "topology_noise")
        changed = round(level * len(had.train))
        assert len(has.train) == len(had.train) - changed * (noise == "label_sparsity")
        wrong = np.flatnonzero(was.labels != now.labels)
        assert len(wrong) == changed * (noise == "label_noise")
        assert {*has.train, *wrong} <= {*had.train}
        count = np.diff(was.features.indptr)
        gone = (level * count).astype(int) * (noise == "feature_sparsity")
        if noise != "feature_noise":
            np.testing.assert_array_equal(count - np.diff(now.features.indptr), gone)
            assert abs(now.features - was.features.multiply(now.features != 0)).nnz == 0
    np.testing.assert_array_equal(links(made) & BETWEEN, links(GRAPH) & BETWEEN)
    assert (split.val is SPLIT.val, split.test is SPLIT.test) == (True, True)
    assert made.tested is (None if noise.startswith("label") else GRAPH)


def test_noise_is_normal_and_uniform():
    found = (noisy("feature_noise", 0.3)[0].features - GRAPH.features).toarray().ravel()
    assert kstest(found / 0.3, "norm").pvalue > 0.001
    counts, added = np.zeros((3, 3)), np.zeros((N, N))
    for seed in range(300):
        np.add.at(counts, (GRAPH.labels, noisy("label_noise", 0.5, seed=seed)[0].labels), 1)
        added += links(noisy("topology_noise", 0.5, seed=seed)[0]) & ~links(GRAPH)
    wrong = counts[~np.eye(3, dtype=bool)].reshape(3, 2)
    assert (abs(wrong[:, 0] - wrong[:, 1]) < 4.5 * np.sqrt(wrong.sum(axis=1))).all()
    for i in range(M):
        own = OWNER.nodes(i)
        free = np.triu(GRAPH.adjacency[own][:, own].toarray() == 0, 1)
        found = added[np.ix_(own, own)][free]
        assert abs(found - found.mean()).max() < 6 * np.sqrt(found.mean())


@pytest.mark.parametrize("noise", MODES)
def test_half_of_the_clients(noise: Noise):
    """Half are as they were; the others have the noise that they have where all do."""
    for seed in range(5):
        found, everywhere = (parts(*noisy(noise, 0.4, share, seed)) for share in (0.5, 1.0))
        clean = [same(*each) for each in zip(found, parts(GRAPH, SPLIT), strict=True)]
        assert clean == [not same(*each) for each in zip(found, everywhere, strict=True)]
        assert sum(clean) == M // 2
    assert same(noisy(noise, 0.4, seed=1), noisy(noise, 0.4, seed=1))
    assert not same(noisy(noise, 0.4, seed=1), noisy(noise, 0.4, seed=2))


@pytest.mark.parametrize("name", APART)
def test_what_is_tested_is_as_it_was(name: str):
    """A method that has learned nothing yet is tested as without noise, but trained on noise."""
    changes = {"learning_rate": 1e-30, "optimizer": "sgd", "weight_decay": 0.0, "rounds": 1}
    changes |= OWNED if registry.find(name).full_batch else {}
    partition = Partition(np.arange(240) % 2, 2)
    task = dataclasses.replace(task_of(name, **changes), partition=partition)
    graph, _ = with_noise(task.graph, task.split, partition, 0, "feature_noise", 1.0)
    ours = run_on(dataclasses.replace(task, graph=graph), name)
    theirs = run_on(task, name)
    assert ours.history.before == theirs.history.before
    assert ours.curve["loss"] != theirs.curve["loss"]


def test_unseen_nodes_are_nowhere_while_training():
    seen, rest = without_test_nodes(GRAPH, SPLIT), np.sort([*SPLIT.train, *SPLIT.val])
    assert seen.tested is GRAPH
    assert seen.degrees[SPLIT.test].sum() == seen.features[SPLIT.test].nnz == 0
    assert seen.subgraph(rest).fingerprint == GRAPH.subgraph(rest).fingerprint
    task = task_of("fedavg", **OWNED)
    hidden = dataclasses.replace(task, graph=without_test_nodes(task.graph, task.split))
    assert not same_runs(run_on(hidden, "fedavg"), run_on(task, "fedavg"))


def graph_with(partition: Partition | None, **options: Any) -> Graph:
    dataset = {"features": "raw", "labelled": None, **options}
    specification = {"dataset": dataset, "setting": TrainingConfig().in_key(), "seed": 0}
    return build_task(specification, GRAPH, SPLIT, partition, "a task").graph


def test_a_task_has_the_noise_of_its_dataset():
    made = graph_with(OWNER, noise="topology_noise", noisy_clients=0.5)
    assert made.fingerprint == noisy("topology_noise", 0.1, 0.5)[0].fingerprint
    copies = Partition(np.arange(5) % 2, 2, copies=np.zeros(5, dtype=np.int64))
    for partition in (None, copies):
        with pytest.raises(PartitionError):
            graph_with(partition, noise="label_noise")
    with pytest.raises(ConfigError, match="noise_level"):
        graph_with(OWNER, noise="label_sparsity", noise_level=1.0)
