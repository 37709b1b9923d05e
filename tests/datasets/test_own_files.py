"""Graphs of one's own: equal graphs from all formats, and one sentence for every file that holds
none.
"""

import csv
import dataclasses
import gzip
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data, HeteroData

from feddep import api
from feddep.datasets import own_files, pyg
from feddep.graph.graph import Graph
from feddep.graph.split import PARTS
from feddep.utils.errors import DataError, FeddepError, Notice
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
        # Neither numbers from 0 nor in order.
        ids = np.array([f"{7 * node % 13:03}" for node in range(graph.num_nodes)])
        nodes = (
            pd.DataFrame(graph.features.toarray())
            .add_prefix("x")
            .assign(label=graph.labels, id=ids)
        )
        edges = pd.DataFrame(ids[graph.edges()[:, ::-1]], columns=["target", "source"])
        for name, table in (("nodes", nodes), ("edges", edges)):
            if path.name == "parquet":
                table.to_parquet(path / f"{name}.parquet")
            else:
                table.to_csv(path / f"{name}.csv", index=False)
    return path


@given(graphs())
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, graph: Graph):
    """Of any graph of two classes or more."""
    folder = tmp_path_factory.mktemp("any")
    expected = Graph.from_edges(
        graph.edges(), graph.features, graph.labels, max(graph.labels) + 1
    ).fingerprint
    for form in ("graph.npz", "graph.pt", "csv", "parquet"):
        path = write(folder / form, graph)
        if 2 <= graph.labels.max() + 1 <= graph.num_nodes:
            assert own_files.read(path).fingerprint == expected
        else:
            with pytest.raises(DataError):
                own_files.read(path)


def test_other_forms_that_are_allowed(tmp_path: Path):
    dense = {
        name: array for name, array in npz_arrays(GRAPH).items() if not name.startswith("attr")
    }
    dense["attr_matrix"] = GRAPH.features.toarray().astype(np.float64)
    dense["names"] = np.array(["a", None], dtype=object)  # not opened
    np.savez(tmp_path / "dense.npz", **dense)
    assert (
        own_files.read(tmp_path / "dense.npz").fingerprint
        == own_files.read(write(tmp_path / "graph.npz")).fingerprint
    )
    folder = write(tmp_path / "named")
    nodes = pd.read_csv(folder / "nodes.csv", dtype={"id": str})
    nodes["label"] = nodes.label.map({0: "a b", 1: "b", 2: "ć"})
    nodes.to_csv(folder / "nodes.csv", index=False, encoding="utf-8-sig")
    assert own_files.read(folder).fingerprint == own_files.read(tmp_path / "dense.npz").fingerprint


NUMBERS = ["u1", "u8", ">i4", "i2", "f2", ">f8"]
"""Types of numbers that NumPy or SciPy treat otherwise than the usual ones."""


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_any_type(kind: str, tmp_path: Path):
    graph = dataclasses.replace(GRAPH, features=GRAPH.features.astype(bool).astype(np.float32))
    arrays = {
        name: array for name, array in npz_arrays(graph).items() if not name.startswith("attr")
    }
    arrays |= {
        "labels": graph.labels.astype(kind),
        "attr_matrix": graph.features.toarray().astype(kind),
    }
    np.savez(tmp_path / "graph.npz", **{**arrays, "adj_data": arrays["adj_data"].astype(kind)})
    assert (
        own_files.read(tmp_path / "graph.npz").fingerprint
        == own_files.read(write(tmp_path / "usual.npz", graph)).fingerprint
    )
    data = pyg.to_data(graph)
    if kind in ("u1", "i2", "f2"):
        data.y, data.x = (torch.from_numpy(each.numpy().astype(kind)) for each in (data.y, data.x))
    assert pyg.from_data(data).fingerprint == graph.fingerprint


def bare(form: str, path: Path) -> Path:
    """A graph without the labels of its first and third node."""
    labels = GRAPH.labels.astype(np.float64)
    labels[[0, 2]] = np.nan if form != "graph.npz" else -1
    if form == "graph.pt":
        data = pyg.to_data(GRAPH)
        data.y = torch.from_numpy(labels)
        torch.save(data, path / form)
    elif form == "graph.npz":
        np.savez(path / form, **{**npz_arrays(GRAPH), "labels": labels.astype(np.int64)})
    else:
        table = pd.read_csv(write(path / form) / "nodes.csv", dtype={"id": str})
        table.assign(label=labels).to_csv(path / form / "nodes.csv", index=False)
    return path / form


@pytest.mark.parametrize("form", ["graph.npz", "graph.pt", "csv"])
def test_nodes_without_a_label_are_in_the_graph_and_in_no_set(form: str, tmp_path: Path):
    with pytest.warns(Notice):
        graph = own_files.read(bare(form, tmp_path))
    expected = GRAPH.labels.copy()
    expected[[0, 2]] = -1
    assert graph.labels.tolist() == expected.tolist()
    assert np.array_equal(graph.edges(), GRAPH.edges())
    for method in ("random", "class_balanced"):
        split = api.split(graph, method=method, train=0.4, val=0.3, test=0.3)
        assert sorted(np.concatenate([split.train, split.val, split.test])) == [1, *range(3, 12)]
    assert len(api.partition(graph, 2, method="dirichlet").client) == 12
    with pytest.raises(DataError):
        api.Split(np.array([0]), np.array([1]), np.array([3])).checked(graph)


def test_empty_classes_and_unread_columns_are_said(tmp_path: Path):
    with pytest.warns(Notice, match=r"2 of 4 classes"):
        assert (
            own_files.read(
                save_tables(tmp_path, NODES.replace(",1,", ",3,") + "3,0,2\n4,0,1\n", EDGES)
            ).num_classes
            == 4
        )
    with pytest.warns(Notice, match="weight"):
        own_files.read(save_tables(tmp_path, NODES, "source,target,weight\n1,2,3\n"))


def save_tables(path: Path, nodes: str, edges: str) -> Path:
    (path / "nodes.csv").write_text(nodes)
    (path / "edges.csv").write_text(edges)
    return path


def test_names_are_what_they_look_like(tmp_path: Path):
    plain = save_tables(tmp_path, "id,label,x\n1,a,0\n2,b,1\n3,c,2\n", "source,target\n1,2\n3,2\n")
    expected = own_files.read(plain).fingerprint
    for ids, labels in (
        ("NA,nan,None", "NA,None,null"),
        (" 1,2 , 3 ", "a , b,c"),
        ('"1,5","2","3"', '"a,a","b","c\nd"'),
    ):
        (one, two, three), (a, b, c) = next(csv.reader([ids])), next(csv.reader([labels]))
        rows = [["id ", " label", "x"], [one, a, 0], [two, b, 1], [three, c, 2]]
        with (tmp_path / "nodes.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
        with (tmp_path / "edges.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([["source", "target"], [one, two], [three, two]])
        assert own_files.read(tmp_path).fingerprint == expected


def test_compressed_tables(tmp_path: Path):
    folder = write(tmp_path / "csv")
    expected = own_files.read(folder).fingerprint
    for name in ("nodes", "edges"):
        (folder / f"{name}.csv.gz").write_bytes(
            gzip.compress((folder / f"{name}.csv").read_bytes())
        )
        (folder / f"{name}.csv").unlink()
    assert own_files.read(folder).fingerprint == expected


def with_split(form: str, path: Path) -> Path:
    """A graph whose files say a split, in an archive and in a ``Data`` three of them, and the
    client of each node.
    """
    parts, clients = np.arange(12) % 4, np.arange(12) % 3
    masks = {
        f"{part}_mask": np.stack([parts == (k + shift) % 4 for shift in range(3)], 1)
        for k, part in enumerate(PARTS)
    }
    if form == "graph.pt":
        data = pyg.to_data(GRAPH)
        for name, mask in masks.items():
            data[name] = torch.from_numpy(mask)
        data.client = torch.from_numpy(clients)
        torch.save(data, path / form)
    elif form == "graph.npz":
        np.savez(path / form, **npz_arrays(GRAPH), **masks, client=clients.astype(np.uint8))
    else:
        table = pd.read_csv(write(path / form) / "nodes.csv", dtype={"id": str})
        names = np.array(["clinic a", "clinic b", "clinic c"])[clients]
        table.assign(split=[[*PARTS, None][part] for part in parts], client=names).to_csv(
            path / form / "nodes.csv", index=False
        )
    return path / form


@pytest.mark.parametrize("form", ["graph.npz", "graph.pt", "csv"])
def test_splits_and_partitions_in_files(form: str, tmp_path: Path):
    path = with_split(form, tmp_path)
    with pytest.warns(Notice, match="masks"):
        assert own_files.read(path).num_features == GRAPH.num_features
    split, partition = api.load_split(path), api.load_partition(path)
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [
        [k, k + 4, k + 8] for k in range(3)
    ]
    assert partition.client.tolist() == (np.arange(12) % 3).tolist()
    if form != "csv":
        assert api.load_split(path, 4).train.tolist() == [1, 5, 9]  # column 4 modulo 3
    runs = api.compare(
        ["fedavg"], str(path), seeds=2, split="masks", partition="given", setting={"rounds": 1}
    )
    assert len(runs) == 2
    for wrong in ({"clients": 4, "partition": "given"}, {"split": "masked"}):
        with pytest.raises(FeddepError):
            api.compare(["fedavg"], str(path), **wrong)


def test_splits_and_partitions_that_are_not_there(tmp_path: Path):
    path = str(write(tmp_path / "graph.npz"))
    for wrong in ({"partition": "given"}, {"split": "masks"}):
        for graph in (path, GRAPH):
            with pytest.raises(FeddepError):
                api.compare(["fedavg"], graph, **wrong)
    np.savez(
        path,
        **npz_arrays(GRAPH),
        **{f"{part}_mask": np.arange(12) < 8 for part in PARTS},
        client=np.arange(12) % 2 * 2,
    )
    # Sets that overlap, and a client without nodes.
    for load in (
        api.load_split,
        api.load_partition,
    ):
        with pytest.raises(FeddepError):
            load(path)


WIDE = np.concatenate([GRAPH.adjacency.indices[:-1], [99]]).astype(np.int32)
WRONG_ARRAYS: dict[str, dict[str, Any]] = {
    "no labels": {"labels": None},
    "labels that are NaN": {"labels": np.full(12, np.nan)},
    "one-hot labels": {"labels": np.eye(12, dtype=int)},
    "too few labels": {"labels": GRAPH.labels[1:]},
    "a negative label": {"labels": GRAPH.labels - 2},
    "complex features": {"attr_matrix": np.ones((12, 3)) * 1j},
    "a huge label": {"labels": GRAPH.labels * 10**9},
    "a label of 64 bits": {"labels": GRAPH.labels.astype(np.uint64) << np.uint64(63)},
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
    "a label between numbers": ("id,label,x\n1,0,0\n2,1.5,1\n", EDGES),
    "an empty feature": ("id,label,x\n1,0,0\n2,1,\n", EDGES),
    "an infinite feature": ("id,label,x\n1,0,0\n2,1,inf\n", EDGES),
    "a feature of text": ("id,label,x\n1,0,red\n2,1,2\n", EDGES),
    "a repeated id": ("id,label,x\n1,0,0\n1,1,1\n", EDGES),
    "a long row": ("id,label,x\n1,0,0,7\n2,1,1,7\n", EDGES),
    "an edge to nowhere": (NODES, "source,target\n1,2\n2,02\n"),
    "edges without a header": (NODES, "1,2\n"),
    "a saved index": (",id,label,x\n0,1,0,0.5\n1,2,1,1\n", EDGES),
    "a column that numbers the rows": (
        "id,label,x\n" + "".join(f"{i},{i % 2},{i + 1}\n" for i in range(12)),
        EDGES,
    ),
    "a column twice": ("id,label,x,x\n1,0,0,1\n2,1,1,1\n", EDGES),
    "ids twice": ("id,id,label,x\n1,5,0,0\n2,6,1,1\n", EDGES),
    "semicolons": (NODES.replace(",", ";"), EDGES),
    "another encoding": (NODES.replace("x", "é").encode("latin-1"), EDGES),
    "an unknown part of the split": ("id,label,x,split\n1,0,0,train\n2,1,1,valid\n", EDGES),
    "a pointer of Git LFS": (
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
        EDGES,
    ),
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
    np.savez(
        tmp_path / "graph.npz",
        **{name: array for name, array in arrays.items() if array is not None},
    )
    assert_is_refused(tmp_path / "graph.npz")


@pytest.mark.parametrize("wrong", WRONG_TABLES)
def test_tables_that_hold_no_graph(wrong: str, tmp_path: Path):
    for name, text in zip(("nodes", "edges"), WRONG_TABLES[wrong], strict=True):
        if text is not None:
            (tmp_path / f"{name}.csv").write_bytes(
                text if isinstance(text, bytes) else text.encode()
            )
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
    with zipfile.ZipFile(path.with_suffix(".npz"), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in npz_arrays(GRAPH).items():
            content = io.BytesIO()
            np.save(content, array)
            # 2^40 labels.
            archive.writestr(
                f"{name}.npy", content.getvalue().replace(b"(12,)", b"(1099511627776,)")
            )
    assert_is_refused(path.with_suffix(".npz"))
    folder = write(tmp_path / "csv")
    (folder / "edges.parquet").write_bytes(b"")  # a second table of edges
    assert_is_refused(folder)
    (folder / "edges.csv").unlink()
    assert_is_refused(folder)


@pytest.mark.parametrize(
    "held", [HeteroData(), [Data()], (Data(), None), nx.path_graph(3), {"x": torch.ones(2)}]
)
def test_other_objects_of_graphs_are_named(held: Any, tmp_path: Path):
    torch.save(held, tmp_path / "graph.pt")
    with pytest.raises(DataError, match="Data"):
        own_files.read(tmp_path / "graph.pt")


def test_checksums_are_of_the_content_alone(tmp_path: Path):
    """Keys of results on graphs of one's own rest on them."""
    path = tmp_path / "graph.npz"
    path.write_bytes(b"any")
    found = {".npz": "d6a7cd2a7371b1a15d543196979ff74fdb027023ebf187d5d329be11055c77fd"}
    assert (
        own_files.checksums(path)
        == own_files.checksums(path.rename(tmp_path / "moved.npz"))
        == found
    )
    folder = write(tmp_path / "csv")
    before = own_files.checksums(folder)
    assert list(before) == ["edges.csv", "nodes.csv"]
    (folder / "readme.txt").write_text("not read")
    assert own_files.checksums(folder) == before
    (folder / "edges.csv").write_bytes(b"")
    assert own_files.checksums(folder)["edges.csv"] != before["edges.csv"]
    with pytest.raises(DataError):
        own_files.checksums(path)
