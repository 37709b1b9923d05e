"""Graphs to and from PyTorch Geometric."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from feddep.datasets import pyg
from feddep.graph.partition import Partition
from feddep.graph.split import random_split
from feddep.utils.errors import DataError
from graphs import random_graph


def test_data_is_consistent():
    graph = random_graph(30, 60)
    split = random_split(30, {"train": 0.5, "val": 0.2, "test": 0.2}, 0)
    data = pyg.to_data(graph, split)
    assert data.validate()
    assert data.is_undirected()
    assert data.num_edges == 2 * graph.num_edges
    assert (data.x.dtype, data.y.dtype, data.num_classes) == (torch.float32, torch.int64, 3)
    back = pyg.split_of(data)
    assert all(
        np.array_equal(getattr(back, part), getattr(split, part))
        for part in ("train", "val", "test")
    )


def test_the_data_does_not_share_memory_with_the_graph():
    graph = random_graph(10, 20)
    before = graph.fingerprint
    data = pyg.to_data(graph)
    data.y += 1
    data.x += 1
    del graph.__dict__["fingerprint"]
    assert graph.fingerprint == before


def test_clients_hold_their_subgraphs():
    graph = random_graph(30, 90)
    partition = Partition(np.arange(30) % 3, 3)
    split = random_split(30, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    clients = pyg.client_data(graph, partition, split)
    whole = pyg.to_data(graph, split)
    for client, data in enumerate(clients):
        np.testing.assert_array_equal(data.n_id, partition.nodes(client))
        assert torch.equal(data.y, whole.y[data.n_id])
        assert torch.equal(data.train_mask, whole.train_mask[data.n_id])
        assert (
            pyg.from_data(data).fingerprint == graph.subgraph(partition.nodes(client)).fingerprint
        )
    assert all("train_mask" not in data for data in pyg.client_data(graph, partition))


def example(**changes: Any) -> Data:
    values = {
        "x": torch.ones(3, 2),
        "edge_index": torch.tensor([[0, 0, 1], [1, 1, 1]]),
        "y": torch.tensor([0, 2, 1]),
    }
    return Data(**{key: value for key, value in {**values, **changes}.items() if value is not None})


def test_other_forms_of_data():
    graph = pyg.from_data(example())
    assert (graph.num_edges, graph.num_classes) == (1, 3)  # once, undirected, without the loop
    assert pyg.from_data(example(y=torch.tensor([[0], [2], [1]]))).fingerprint == graph.fingerprint
    assert pyg.from_data(example(x=torch.ones(3, 2).to_sparse())).fingerprint == graph.fingerprint
    assert (
        pyg.from_data(example(x=torch.ones(3, 2, dtype=torch.float64))).fingerprint
        == graph.fingerprint
    )
    assert pyg.from_data(example(num_classes=5)).num_classes == 5


@pytest.mark.parametrize(
    "changes",
    [
        *({"x": None}, {"x": torch.full((3, 2), torch.nan)}, {"x": torch.ones(3)}),
        *(
            {"y": None},
            {"y": torch.full((3,), 0.5)},
            {"y": torch.zeros(3, 2, dtype=torch.int64)},
            {"y": torch.tensor([0, 1])},
        ),
        *(
            {"edge_index": [[0], [1]]},
            {"edge_index": torch.tensor([[0], [7]])},
            {"edge_index": torch.zeros(2, 3)},
        ),
        *({"edge_index": torch.zeros(5, 3, dtype=torch.int64)}, {"num_classes": 2}),
    ],
)
def test_data_that_is_no_graph(changes: dict[str, Any]):
    with pytest.raises(DataError):
        pyg.from_data(example(**changes))
