"""Mended neighbourhoods: averages over the right nodes, every node counted once, and the paper's numbers where they belong."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from small import case_of, of_run, small_task

from feddep.datasets.synthetic import planted_partition
from feddep.experiment.plan import Run
from feddep.graph.halo import missing_neighbours
from feddep.graph.partition import Partition
from feddep.methods.method import StepResult, by_client
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import Task
from studies.measuring import frame
from studies.neighbourhoods.measure import (
    local_distances,
    measure,
    neighbourhood_distances,
    predicted_neighbours,
)
from studies.neighbourhoods.page import summarise, summarise_counts

NEIGHGEN = {"embedding": 8, "generator_width": 8, "generator_local_epochs": 2, "generator_federated_epochs": 1}


@pytest.fixture(scope="module")
def case() -> tuple[Task, StepResult, dict[str, Any]]:
    """A run's task, its generators' results, and what is measured."""
    found = case_of("fedsage_plus", small_task(), **NEIGHGEN)
    return found.task, found.step("generator"), measure(found)


def test_what_degrees_let_expect_is_true_where_nodes_are_hidden(case):
    """As many neighbours are hidden from a node, on average, as its remaining ones times the odds of being hidden."""
    task, _, tables = case
    odds = {row["expected"] / row["degree"] for row in tables["counts"] if row["degree"]}
    assert len({round(each, 9) for each in odds}) == 1
    parameters = case_of("fedsage_plus", task, steps=False, **NEIGHGEN).parameters
    impaired = [impair_client(task, parameters, i, client) for i, client in enumerate(task.subgraphs())]
    remaining = sum(each.graph.degrees.sum() for each in impaired)
    assert odds.pop() * remaining == pytest.approx(sum(each.missing.sum() for each in impaired), rel=0.2)


def test_zeros_in_the_true_number_dilute_what_is_at_hand(case):
    task, made, _ = case
    counted = neighbourhood_distances(task.graph, task.partition, made)["counted"]
    lost = missing_neighbours(task.graph, task.partition)
    node = int(np.diff(lost.indptr).argmax())
    others = lost[[node]].indices
    whole = task.graph.features[task.graph.adjacency[[node]].indices].toarray()
    expected = task.graph.features[others].toarray().sum(axis=0) / len(whole)  # what zeros stand for is all that is wrong
    assert counted[node] == pytest.approx(np.linalg.norm(expected), rel=1e-5)
    assert counted[np.diff(lost.indptr) == 0].max() < 1e-6


def test_local_distances_of_other_features(case):
    """With the graph's own features they are those of Table 1; scaled ones grow in proportion."""
    task, made, tables = case
    graph, local = task.graph, neighbourhood_distances(task.graph, task.partition, made)["local"]
    assert local_distances(graph, task.partition, graph.features) == pytest.approx(local, abs=1e-5)
    assert local_distances(graph, task.partition, 3 * graph.features) == pytest.approx(3 * local, abs=3e-5)
    means = {row["neighbourhood"]: row["mean"] for row in tables["distances"] if row["nodes"] == "all"}
    dense = graph.features.toarray()
    by_sum = sp.csr_matrix(dense / np.maximum(np.abs(dense).sum(axis=1, keepdims=True), 1e-12))
    assert means["local_l1"] == pytest.approx(local_distances(graph, task.partition, by_sum).mean(), rel=1e-4)
    assert 0 < means["local_l1"] < means["local_l2"] < np.sqrt(2)


def test_distances_are_what_loops_over_nodes_say():
    graph = planted_partition(160, 4, 8, 32, 6.0, 1.0, 8, 0.8, 0)
    partition = Partition(np.arange(160) % 3, 3)
    rng = np.random.default_rng(0)
    counts, owners, features = [], [], []
    for client in range(3):
        nodes = partition.nodes(client)
        new = rng.integers(0, 3, len(nodes))
        counts.append(torch.from_numpy(rng.uniform(0, 3, len(nodes)).astype(np.float32)))
        owners.append(torch.from_numpy(np.repeat(np.arange(len(nodes)), new)))
        features.append(torch.from_numpy(rng.uniform(-1, 1, (new.sum(), 32))).half())
    made = StepResult(by_client(count=counts, owner=owners, features=features))
    missing, predicted = np.diff(missing_neighbours(graph, partition).indptr), predicted_neighbours(graph, partition, made)
    found = neighbourhood_distances(graph, partition, made)

    def mean(rows: list[np.ndarray], over: int) -> np.ndarray:
        return np.sum(rows, axis=0) / over if over and rows else np.zeros(32)

    x = graph.features.toarray()
    for v in range(160):
        client = partition.client[v]
        place = int(np.flatnonzero(partition.nodes(client) == v)[0])
        neighbours = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        own = [x[u] for u in neighbours if partition.client[u] == client]
        new = list(features[client][owners[client] == place].float().numpy())
        true = mean([x[u] for u in neighbours], len(neighbours))
        assert missing[v] == len(neighbours) - len(own)
        assert predicted[v] == counts[client][place]
        assert found["local"][v] == pytest.approx(math.dist(mean(own, len(own)), true), abs=1e-4)
        assert found["mended"][v] == pytest.approx(math.dist(mean(own + new, len(own + new)), true), abs=1e-4)
        assert found["empty"][v] == pytest.approx(math.dist(mean(own, len(own + new)), true), abs=1e-4)


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    """Two methods, two seeds, measured: mending halves the distance of FedSage+, and 3 of 4 nodes miss nobody."""
    distances, counts = [], []
    for run in (Run("quick", "cora", 3, name, seed) for name in ("fedsage_plus", "fedsage_plus_shared") for seed in (0, 1)):
        mean = {"local": 0.4 + 0.2 * run.seed, "mended": 0.2 + 0.1 * run.seed, "empty": 0.3, "counted": 0.25}
        mean |= {"local_l1": 0.02, "local_l2": 0.07}
        distances += [
            {**of_run(run), "nodes": nodes, "neighbourhood": name, "count": 4, "mean": mean[name] * factor, "std": 0.1}
            for nodes, factor in (("all", 1), ("missing", 4))
            for name in mean
        ]
        pairs = [(0, 0, 2), (0, 1, 1), (2, 1 + run.seed, 1)]  # 2 of 4 right with seed 0, 3 of 4 with seed 1
        counts += [
            {**of_run(run), "missing": missing, "predicted": number, "degree": 4, "expected": 0.4 + 0.8 * missing, "nodes": size}
            for missing, number, size in pairs
        ]
    return {"distances": frame(distances), "counts": frame(counts)}


def test_distances_stand_beside_the_paper_s(tables):
    summary = summarise(tables["distances"])
    rows = summary.set_index(["method", "nodes", "neighbourhood"])
    assert rows.loc[("fedsage_plus", "all", "mended"), "mean"] == pytest.approx(0.25)
    assert rows.loc[("fedsage_plus", "all", "mended"), "seeds"] == 2
    assert rows.loc[("fedsage_plus", "all", "mended"), "paper_fedsage_mean"] == 0.0124
    assert rows.loc[("fedsage_plus", "all", "local"), "paper_fedsage_std"] == 0.0182
    assert rows["paper_fedsage_mean"].notna().sum() == 2  # neither of nodes that miss one, nor of the shared generator


def test_numbers_beside_guesses(tables):
    row = summarise_counts(tables["counts"]).iloc[0]
    assert row["missing"] == 0.25
    assert row["error"] == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert row["error_none"] == 0.5
    assert row["error_mean"] == pytest.approx(0.5)  # the mean is 0.5, which rounds to 0
    assert row["error_degree"] == 0  # 0.4 and 2.0 round to 0 and 2
    assert row["correlation"] == pytest.approx((0.57735 + 0.87039) / 2, abs=1e-4)
    assert row["correlation_degree"] == pytest.approx(1)
