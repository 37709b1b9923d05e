"""Distances of mended neighbourhoods from the true ones against a loop over nodes."""

import math

import numpy as np
import pytest
import torch

from feddep.datasets.synthetic import planted_partition
from feddep.graph.halo import missing_neighbours
from feddep.graph.partition import Partition
from feddep.methods.method import StepResult, by_client
from studies.neighbourhoods.measure import neighbourhood_distances, predicted_neighbours

GRAPH = planted_partition(160, 4, 8, 32, 6.0, 1.0, 8, 0.8, 0)


def test_quality_is_what_loops_over_nodes_say():
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
    missing, predicted = np.diff(missing_neighbours(GRAPH, partition).indptr), predicted_neighbours(GRAPH, partition, made)
    found = neighbourhood_distances(GRAPH, partition, made)

    def mean(rows: list[np.ndarray], over: int) -> np.ndarray:
        return np.sum(rows, axis=0) / over if over and rows else np.zeros(32)

    x = GRAPH.features.toarray()
    for v in range(160):
        client = partition.client[v]
        place = int(np.flatnonzero(partition.nodes(client) == v)[0])
        neighbours = GRAPH.indices[GRAPH.indptr[v] : GRAPH.indptr[v + 1]]
        own = [x[u] for u in neighbours if partition.client[u] == client]
        new = list(features[client][owners[client] == place].float().numpy())
        true = mean([x[u] for u in neighbours], len(neighbours))
        assert missing[v] == len(neighbours) - len(own)
        assert predicted[v] == counts[client][place]
        assert found["local"][v] == pytest.approx(math.dist(mean(own, len(own)), true), abs=1e-4)
        assert found["mended"][v] == pytest.approx(math.dist(mean(own + new, len(own + new)), true), abs=1e-4)
        assert found["empty"][v] == pytest.approx(math.dist(mean(own, len(own + new)), true), abs=1e-4)
