"""Graphs of one's own: equal graphs from all formats, and one sentence for every file that holds none."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from feddep import api
from feddep.datasets import own_files, pyg
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError
from graphs import Payload, graphs, npz_arrays, random_graph

GRAPH = random_graph(12, 30, seed=3)


def write(path: Path, graph: Graph = GRAPH) -> Path:
    """A graph as files in the format that the path ends with; in a folder, that of the tables."""
    if path.suffix == ".npz":
        np.savez(path, **npz_arrays(graph))
    elif path.suffix == ".pt":
        torch.save(pyg.to_data(graph), path)
    else:
        path.mkdir(exist_ok=True)
        ids = np.array([f"{7 * node % 13:03}" for node in range(graph.num_nodes)])  # neither numbers from 0 nor in order
        nodes = pd.DataFrame(graph.features.toarray()).add_prefix("x").assign(label=graph.labels, id=ids)
        edges = pd.DataFrame(ids[graph.edges()[:, ::-1]], columns=["target", "source"])
        for name, table in (("nodes", nodes), ("edges", edges)):
            if path.name == "parquet":
                table.to_parquet(path / f"{name}.parquet")
            else:
                table.to_csv(path / f"{name}.csv", index=False)
    return path


@pytest.mark.parametrize("form", ["graph.npz", "graph.pt", "csv", "parquet"])
def test_equal_graphs_from_all_formats(form: str, tmp_path: Path):
    graph = Graph.from_edges(GRAPH.edges(), GRAPH.features, GRAPH.labels, int(GRAPH.labels.max()) + 1)
    assert api.load_graph(write(tmp_path / form)).fingerprint == graph.fingerprint


@given(graphs())
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, graph: Graph):
    """Of any graph of two classes or more."""
    folder = tmp_path_factory.mktemp("any")
    expected = Graph.from_edges(graph.edges(), graph.features, graph.labels, max(graph.labels) + 1).fingerprint
    for form in ("graph.npz", "csv"):
        path = write(folder / form, graph)
        if 2 <= graph.labels.max() + 1 <= graph.num_nodes:
            assert own_files.read(path).fingerprint == expected
        else:
            with pytest.raises(DataError):
                own_files.read(path)


def test_other_forms_that_are_allowed(tmp_path: Path):
    dense = {name: array for name, array in npz_arrays(GRAPH).items() if not name.startswith("attr")}
    dense["attr_matrix"] = GRAPH.features.toarray().astype(np.float64)
    dense["names"] = np.array(["a", None], dtype=object)  # not opened
    np.savez(tmp_path / "dense.npz", **dense)
    assert own_files.read(tmp_path / "dense.npz").fingerprint == own_files.read(write(tmp_path / "graph.npz")).fingerprint
    folder = write(tmp_path / "named")
    nodes = pd.read_csv(folder / "nodes.csv", dtype={"id": str})
    nodes["label"] = nodes.label.map({0: "a b", 1: "b", 2: "ć"})
    nodes.to_csv(folder / "nodes.csv", index=False, encoding="utf-8-sig")
    assert own_files.read(folder).fingerprint == own_files.read(tmp_path / "dense.npz").fingerprint


WIDE = np.concatenate([GRAPH.adjacency.indices[:-1], [99]]).astype(np.int32)
WRONG_ARRAYS: dict[str, dict[str, Any]] = {
    "no labels": {"labels": None},
    "labels that are NaN": {"labels": np.full(12, np.nan)},
    "one-hot labels": {"labels": np.eye(12, dtype=int)},
    "too few labels": {"labels": GRAPH.labels[1:]},
    "a negative label": {"labels": GRAPH.labels - 1},
    "a huge label": {"labels": GRAPH.labels * 10**9},
    "one class": {"labels": GRAPH.labels * 0},
    "no features": {"attr_indptr": None},
    "features that are NaN": {"attr_data": GRAPH.features.data * np.nan},
    "no feature": {"attr_matrix": np.ones((12, 0))},
    "a node that is not there": {"adj_indices": WIDE},
    "rows out of order": {"adj_indptr": GRAPH.adjacency.indptr[::-1]},
    "more nodes with edges": {"adj_shape": np.array([12, 100]), "adj_indices": WIDE},
}
NODES, EDGES = "id,label,x\n1,0,0.5\n2,1,1\n", "source,target\n1,2\n"
WRONG_TABLES = {
    "no table of edges": (NODES, None),
    "no column of labels": ("id,x\n1,2\n", EDGES),
    "an empty label": ("id,label,x\n1,0,0\n2,,1\n", EDGES),
    "a label between numbers": ("id,label,x\n1,0,0\n2,1.5,1\n", EDGES),
    "an empty feature": ("id,label,x\n1,0,0\n2,1,\n", EDGES),
    "an infinite feature": ("id,label,x\n1,0,0\n2,1,inf\n", EDGES),
    "a feature of text": ("id,label,x\n1,0,red\n2,1,2\n", EDGES),
    "a repeated id": ("id,label,x\n1,0,0\n1,1,1\n", EDGES),
    "a long row": ("id,label,x\n1,0,0,7\n2,1,1,7\n", EDGES),
    "an edge to nowhere": (NODES, "source,target\n1,2\n2,02\n"),
    "an edge with a weight": (NODES, "source,target,w\n1,2,3\n"),
    "edges without a header": (NODES, "1,2\n"),
}


def assert_is_refused(path: Path) -> None:
    """In one sentence that names the path."""
    with pytest.raises(DataError) as caught:
        api.load_graph(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 800 + len(str(path))


@pytest.mark.parametrize("wrong", WRONG_ARRAYS)
def test_archives_that_hold_no_graph(wrong: str, tmp_path: Path):
    arrays = {**npz_arrays(GRAPH), **WRONG_ARRAYS[wrong]}
    np.savez(tmp_path / "graph.npz", **{name: array for name, array in arrays.items() if array is not None})
    assert_is_refused(tmp_path / "graph.npz")


@pytest.mark.parametrize("wrong", WRONG_TABLES)
def test_tables_that_hold_no_graph(wrong: str, tmp_path: Path):
    for name, text in zip(("nodes", "edges"), WRONG_TABLES[wrong], strict=True):
        if text is not None:
            (tmp_path / f"{name}.csv").write_text(text)
    assert_is_refused(tmp_path)


def test_other_files(tmp_path: Path):
    path, payload = tmp_path / "graph.npz", Payload(tmp_path / "victim")
    assert_is_refused(path)
    assert_is_refused(tmp_path / "graph.txt")
    for content in (b"", b"text", pickle.dumps(payload), write(path).read_bytes()[:500]):
        path.write_bytes(content)
        assert_is_refused(path)
    np.savez(path, **{**npz_arrays(GRAPH), "labels": np.array([payload] * 12, dtype=object)})
    assert_is_refused(path)
    path = write(tmp_path / "graph.pt")
    path.write_bytes(path.read_bytes()[:500])
    assert_is_refused(path)
    for value in (payload, {"x": torch.ones(3, 2)}, Data(x=torch.ones(3, 2), more=payload)):
        torch.save(value, path)
        assert_is_refused(path)
    assert not payload.victim.exists()
    folder = write(tmp_path / "csv")
    (folder / "edges.parquet").write_bytes(b"")  # a second table of edges
    assert_is_refused(folder)
    (folder / "edges.csv").unlink()
    assert_is_refused(folder)


def test_checksums_are_of_the_content_alone(tmp_path: Path):
    """Keys of results on graphs of one's own rest on them."""
    path = tmp_path / "graph.npz"
    path.write_bytes(b"any")
    found = {".npz": "d6a7cd2a7371b1a15d543196979ff74fdb027023ebf187d5d329be11055c77fd"}
    assert own_files.checksums(path) == own_files.checksums(path.rename(tmp_path / "moved.npz")) == found
    folder = write(tmp_path / "csv")
    before = own_files.checksums(folder)
    assert list(before) == ["edges.csv", "nodes.csv"]
    (folder / "readme.txt").write_text("not read")
    assert own_files.checksums(folder) == before
    (folder / "edges.csv").write_bytes(b"")
    assert own_files.checksums(folder)["edges.csv"] != before["edges.csv"]
    with pytest.raises(DataError):
        own_files.checksums(path)
