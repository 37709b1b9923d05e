"""Divisions as files, and the examples that hand them to other code."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from examples import load_fedpub, load_openfgl

from feddep import api
from feddep.judging import divisions
from feddep.utils.errors import ConfigError
from small_board import Board


def test_seeds_are_named_or_drawn_by_a_phrase():
    assert divisions.seeds("30..32") == [30, 31, 32]
    assert divisions.seeds("7") == [7]
    drawn = divisions.seeds("fresh:a phrase")
    assert len({seed for seed in drawn if 1000 <= seed < 2**15}) == 10
    assert drawn == divisions.seeds("fresh:a phrase") != divisions.seeds("fresh:another")


@pytest.mark.parametrize("text", ["", "a", "3..", "..3", "5..3", "1..2..3", "40000", "-1"])
def test_what_names_no_seeds(text: str):
    with pytest.raises(ConfigError):
        divisions.seeds(text)


def test_an_exported_graph_is_the_graph_and_its_divisions_are_those_of_the_field(board: Board):
    assert api.load_graph(board.divisions / "graph.npz").fingerprint == board.graph.fingerprint
    partition = api.partition(board.graph, 3, 1)
    split = api.split(board.graph, 1, 0.2, 0.4, 0.4, method="within_clients", partition=partition)
    with np.load(board.divisions / "1.npz") as found:
        for name, ids in {**vars(split), "client": partition.client}.items():
            assert np.array_equal(found[name], ids)
    clients = torch.load(board.divisions / "1.pt", weights_only=False)
    for given, expected in zip(
        clients, api.client_data(board.graph, partition, split), strict=True
    ):
        assert {*given.keys()} == {*expected.keys()} - {"x"}
        assert all(torch.equal(given[key], expected[key]) for key in ("edge_index", "y", "n_id"))
        assert torch.equal(given.test_mask, expected.test_mask)


def test_openfgl_finds_its_files(board: Board, tmp_path: Path):
    load_openfgl.write(board.divisions, 0, tmp_path)
    folder = tmp_path / "distrib" / "subgraph_fl_louvain_1_Cora_client_3"
    split = folder / "node_cls" / "default_split"
    owners = np.load(board.divisions / "0.npz")["client"]
    for i in range(3):
        data = torch.load(folder / f"data_{i}.pt", weights_only=False)
        nodes = np.flatnonzero(owners == i)
        assert list(data.global_map.values()) == nodes.tolist()
        assert np.array_equal(data.x, board.graph.features[nodes].toarray())
        assert data.num_global_classes == 3
        mask = torch.load(split / f"test_{i}.pt")
        ids = pickle.loads((split / f"glb_test_{i}.pkl").read_bytes())
        assert ids == nodes[mask].tolist()


def test_fedpub_finds_its_files(board: Board, tmp_path: Path):
    load_fedpub.write(board.divisions, 0, tmp_path)
    total = 0
    for i in range(3):
        file = tmp_path / "Cora_disjoint" / "3" / f"partition_{i}.pt"
        found = torch.load(file, weights_only=False)
        data = found["client_data"]
        assert found["client_id"] == i
        assert data.x.sum(dim=1).max() <= 1 + 1e-5
        assert {"edge_index", "y", "train_mask", "val_mask", "test_mask"} <= {*data.keys()}
        total += len(data.n_id)
    assert total == 150
