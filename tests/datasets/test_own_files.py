"""Graphs of one's own: equal graphs from all formats, and one sentence for every file that holds
none.
"""

import csv
import dataclasses
import io
import pickle
import warnings
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
from feddep.graph.scaling import scale
from feddep.graph.split import PARTS
from feddep.utils.errors import DataError, FeddepError, Notice
from graphs import Payload, graphs, npz_arrays, random_graph

GRAPH = random_graph(12, 30, seed=3)
FORMS = ("graph.npz", "graph.pt", "csv", "csv.gz", "parquet")


def write(
    path: Path, graph: Graph = GRAPH, x: np.ndarray | None = None, labels: Any = None
) -> Path:
    """A graph, perhaps with other features or labels, as files in the format that the path ends
    with; in a folder, that of the tables.
    """
    dense = graph.features.toarray() if x is None else x
    labels = graph.labels if labels is None else labels
    if path.suffix == ".npz":
        arrays = {**npz_arrays(graph), "labels": labels}
        np.savez(path, **arrays if x is None else {**arrays, "attr_matrix": x})
    elif path.suffix == ".pt":
        data = pyg.to_data(graph)
        data.x, data.y = torch.from_numpy(dense), torch.from_numpy(labels)
        if labels is not graph.labels:
            del data.num_classes
        torch.save(data, path)
    else:
        path.mkdir(exist_ok=True)
        # Neither numbers from 0 nor in order.
        ids = np.array([f"{7 * node % 13:03}" for node in range(graph.num_nodes)])
        nodes = pd.DataFrame(dense).add_prefix("x").assign(label=labels, id=ids)
        edges = pd.DataFrame(ids[graph.edges()[:, ::-1]], columns=["target", "source"])
        for name, table in (("nodes", nodes), ("edges", edges)):
            if path.name == "parquet":
                table.to_parquet(path / f"{name}.parquet")
            else:
                ending = "csv.gz" if path.suffix == ".gz" else "csv"
                table.to_csv(path / f"{name}.{ending}", index=False)
    return path


@given(graphs())
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, graph: Graph):
    """Of any graph of two classes or more."""
    folder = tmp_path_factory.mktemp("any")
    graph = dataclasses.replace(graph, num_classes=int(graph.labels.max()) + 1)
    for form in FORMS:
        path = write(folder / form, graph)
        if 2 <= graph.num_classes <= graph.num_nodes:
            assert own_files.read(path).fingerprint == graph.fingerprint
        else:
            with pytest.raises(DataError):
                own_files.read(path)


SECONDS = 1.7e9 + np.random.default_rng(0).permutation(12)
"""Twelve times, a second apart, of which single precision knows one."""


@pytest.mark.parametrize("form", FORMS)
def test_features_that_single_precision_does_not_tell_apart_are_said_and_scaled_before(
    form: str, tmp_path: Path
):
    x = np.column_stack([SECONDS, np.linspace(0.1, 0.7, 12) ** 2])
    with pytest.warns(Notice, match="x0" if form not in ("graph.npz", "graph.pt") else "0"):
        graph = own_files.read(write(tmp_path / form, x=x))
    expected = (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0))
    assert np.array_equal(scale(graph.features, "minmax").toarray(), expected.astype(np.float32))
    assert np.array_equal(scale(graph.features, "raw").toarray(), x.astype(np.float32))
    graph.save(tmp_path / "graph.safetensors")
    kept = Graph.load(tmp_path / "graph.safetensors")
    assert kept.fingerprint == graph.fingerprint
    assert np.array_equal(kept.features.toarray(), x)


USUAL = {
    "whole numbers": np.arange(12.0) + 94305,
    "rounding of double precision": np.where(np.arange(12) % 2, 0.1 + 0.2, 0.3),
    "a constant": np.full(12, 0.1),
    "a small range": 1 + np.arange(12) / 1e5 % 1e-4,
    "years": 1990.0 + np.arange(12) * 7 % 12,
    "times and zeros": SECONDS * (np.arange(12) % 2),
}


@pytest.mark.parametrize("column", USUAL)
def test_usual_features_stay_in_single_precision(column: str, recwarn: pytest.WarningsRecorder):
    graph = Graph.from_edges(np.zeros((0, 2)), USUAL[column][:, None], GRAPH.labels, 3)
    assert graph.features.dtype == np.float32
    assert not recwarn.list


ODD = np.ones((12, 2))
ODD[3, 1] = 2
WRONG_CONTENT: dict[str, dict[str, Any]] = {
    **{str(wrong): {"x": np.where(ODD == 2, wrong, ODD)} for wrong in (np.nan, -np.inf, 1e39)},
    "a column that numbers the nodes": {"x": np.column_stack([np.ones(12), np.arange(12) + 1])},
    "no feature": {"x": np.ones((12, 0))},
    "one class": {"labels": np.zeros(12, dtype=np.int64)},
    "no label": {"labels": np.full(12, np.nan)},
    "a label between numbers": {"labels": GRAPH.labels + 0.5},
    "a negative label": {"labels": GRAPH.labels - 2},
    "more classes than nodes": {"labels": GRAPH.labels * 9},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", WRONG_CONTENT)
def test_every_format_refuses_the_same(wrong: str, form: str, tmp_path: Path):
    assert_is_refused(write(tmp_path / form, **WRONG_CONTENT[wrong]))


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


@pytest.mark.parametrize("missing", [-1, np.nan])
@pytest.mark.parametrize("form", FORMS)
def test_nodes_without_a_label_are_in_the_graph_and_in_no_set(
    form: str, missing: float, tmp_path: Path
):
    expected = np.where(np.isin(np.arange(12), [0, 2]), -1, GRAPH.labels)
    with pytest.warns(Notice):
        graph = own_files.read(
            write(tmp_path / form, labels=np.where(expected < 0, missing, expected))
        )
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
    arrays = npz_arrays(GRAPH)
    np.savez(tmp_path / "graph.npz", **{**arrays, "adj_data": 0.5 * arrays["adj_data"]})
    with pytest.warns(Notice, match="adj_data"):
        assert own_files.read(tmp_path / "graph.npz").fingerprint == GRAPH.fingerprint
    data = pyg.to_data(GRAPH)
    data.edge_attr = torch.ones(data.num_edges, 2)
    torch.save(data, tmp_path / "graph.pt")
    with pytest.warns(Notice, match=r"data\.edge_attr"):
        assert own_files.read(tmp_path / "graph.pt").fingerprint == GRAPH.fingerprint


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1.234", "999", "12.000"], True),
        (["-1.234", "0", " 7"], True),
        (["1.234", "999.5", "12"], False),
        (["0.234", "999", "12"], False),
        (["1.234", "1000", "12"], False),
        (["1.234", "2.345", "3.456"], False),
        (["1.23", "2", "3"], False),
        (["1", "2", "3"], False),
    ],
)
def test_a_point_that_may_part_thousands_is_said(cells: list[str], said: bool, tmp_path: Path):
    rows = "".join(f"{number},{number % 2},{cell},1.5\n" for number, cell in enumerate(cells))
    save_tables(tmp_path, f"id,label,height,x\n{rows}", "source,target\n1,2\n")
    with warnings.catch_warnings(record=True) as caught:
        graph = own_files.read(tmp_path)
    assert ["height" in str(each.message) for each in caught] == [True] * said
    assert graph.features.toarray()[:, 0].tolist() == [np.float32(cell) for cell in cells]


def test_an_index_with_a_name_is_a_column(tmp_path: Path):
    expected = own_files.read(write(tmp_path / "parquet")).fingerprint
    for name, column in (("nodes", "id"), ("nodes", ["label", "id"]), ("edges", "target")):
        file = tmp_path / "parquet" / f"{name}.parquet"
        pd.read_parquet(file).set_index(column).to_parquet(file)
        assert own_files.read(tmp_path / "parquet").fingerprint == expected
        pd.read_parquet(file).reset_index().to_parquet(file)


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
    "one-hot labels": {"labels": np.eye(12, dtype=int)},
    "too few labels": {"labels": GRAPH.labels[1:]},
    "complex features": {"attr_matrix": np.ones((12, 3)) * 1j},
    "a huge label": {"labels": GRAPH.labels * 10**9},
    "a label of 64 bits": {"labels": GRAPH.labels.astype(np.uint64) << np.uint64(63)},
    "no features": {"attr_indptr": None},
    "a node that is not there": {"adj_indices": WIDE},
    "rows out of order": {"adj_indptr": GRAPH.adjacency.indptr[::-1]},
    "more nodes with edges": {"adj_shape": np.array([12, 100]), "adj_indices": WIDE},
}
NODES, EDGES = "id,label,x\n1,0,0.5\n2,1,1\n", "source,target\n1,2\n"
WRONG_TABLES = {
    "no table of edges": (NODES, None),
    "no column of labels": ("id,x\n1,2\n", EDGES),
    "an empty feature": ("id,label,x\n1,0,0\n2,1,\n", EDGES),
    "a feature of text": ("id,label,x\n1,0,red\n2,1,2\n", EDGES),
    "a repeated id": ("id,label,x\n1,0,0\n1,1,1\n", EDGES),
    "a long row": ("id,label,x\n1,0,0,7\n2,1,1,7\n", EDGES),
    "an edge to nowhere": (NODES, "source,target\n1,2\n2,02\n"),
    "edges without a header": (NODES, "1,2\n"),
    "a saved index": (",id,label,x\n0,1,0,0.5\n1,2,1,1\n", EDGES),
    "a column twice": ("id,label,x,x\n1,0,0,1\n2,1,1,1\n", EDGES),
    "ids twice": ("id,id,label,x\n1,5,0,0\n2,6,1,1\n", EDGES),
    "semicolons": (NODES.replace(",", ";"), EDGES),
    "semicolons and decimal commas": ("id;label;x;y\n1;0;0,5;1,5\n2;1;1;2\n", EDGES),
    "a decimal comma": ('id,label,x\n1,0,0\n2,1,"1,5"\n', EDGES),
    "two forms of thousands": ('id,label,x\n1,0,1.234\n2,1,"1,234"\n', EDGES),
    "a decimal comma without quotes": ("id,label,x\n1,0,0\n2,1,1,5\n", EDGES),
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
    with pytest.raises(DataError, match="memory"):
        own_files.read(path.with_suffix(".npz"))
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


NUMPY: dict[str, Any] = {
    "num_classes": np.int64(3),
    "accuracy": np.float32(0.5),
    "name": np.str_("mine"),
    "ids": np.arange(12),
}


def test_scalars_and_arrays_of_numpy_beside_the_graph(tmp_path: Path):
    data = pyg.to_data(GRAPH)
    for name, value in NUMPY.items():
        data[name] = value
    torch.save(data, tmp_path / "graph.pt")
    assert own_files.read(tmp_path / "graph.pt").fingerprint == GRAPH.fingerprint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("num_classes", value) for value in ("3", 3.5, np.float64(3), torch.ones(2))),
        *(("x", np.ones((12, 2))), ("y", list(range(12))), ("train_mask", "all")),
    ],
)
def test_an_attribute_of_another_type_is_named(name: str, value: Any, tmp_path: Path):
    data = pyg.to_data(GRAPH)
    data[name] = value
    torch.save(data, tmp_path / "graph.pt")
    with pytest.raises(DataError, match=name):
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
