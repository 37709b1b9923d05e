"""Graphs of one's own: equal graphs from all formats, and one sentence for every file that holds none."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from feddep import api
from feddep.config.loading import Config, validate
from feddep.datasets import own_files, pyg
from feddep.experiment import keys
from feddep.experiment.plan import Run
from feddep.graph.graph import Graph
from feddep.stages import flags, prepare
from feddep.utils.errors import ConfigError, DataError
from graphs import graphs, npz_arrays, random_graph

GRAPH = random_graph(12, 30, seed=3)


def tables_of(graph: Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of nodes and edges; the ids are neither numbers from 0 nor in order."""
    ids = np.array([f"{7 * node % 13:03}" for node in range(graph.num_nodes)])
    nodes = pd.DataFrame(graph.features.toarray()).add_prefix("x")
    nodes.insert(1, "label", graph.labels)
    nodes.insert(3, "id", ids)
    edges = pd.DataFrame(ids[graph.edges()], columns=["source", "target"])
    return nodes, edges[["target", "source"]]


def write(path: Path, graph: Graph = GRAPH) -> Path:
    """A graph as files in the format that the path ends with; in a folder, that of the tables."""
    if path.suffix == ".npz":
        np.savez(path, **npz_arrays(graph))
    elif path.suffix == ".pt":
        torch.save(pyg.to_data(graph), path)
    else:
        path.mkdir(exist_ok=True)
        for name, table in zip(("nodes", "edges"), tables_of(graph), strict=True):
            if path.name == "parquet":
                table.to_parquet(path / f"{name}.parquet")
            else:
                table.to_csv(path / f"{name}.csv", index=False)
    return path


FORMATS = ["graph.npz", "graph.pt", "csv", "parquet"]


def config_of(path: Path | str, name: str = "mine") -> Config:
    methods: dict[str, Any] = {"fedavg": {}, "feddep": {}}
    cells = {"clients": [2], "seeds": [0], "settings": {"quick": {}}}
    return validate({"datasets": {name: {"path": str(path)}}, **cells, "methods": methods})


def run_prepare(folder: Path, path: Path) -> int:
    """The stage, which writes ``out/graph.safetensors`` and ``out/graph.json``."""
    from feddep.__main__ import main

    (folder / "config.json").write_text(json.dumps(dict(config_of(path)) | {"studies": []}))
    outputs = ["--graph", f"{folder}/out/graph.safetensors", "--statistics", f"{folder}/out/graph.json"]
    return main(["prepare", "--config", f"{folder}/config.json", "--dataset", "mine", *outputs])


@pytest.mark.parametrize("form", FORMATS)
def test_equal_graphs_from_all_formats_are_prepared_equally(form: str, tmp_path: Path):
    graph = Graph.from_edges(GRAPH.edges(), GRAPH.features, GRAPH.labels, int(GRAPH.labels.max()) + 1)
    path = write(tmp_path / form)
    assert api.load_graph(path).fingerprint == graph.fingerprint
    assert run_prepare(tmp_path, path) == 0
    key = keys.graph_key(config_of(path), "mine")
    assert Graph.load(tmp_path / "out" / "graph.safetensors", key).fingerprint == graph.fingerprint
    described = json.loads((tmp_path / "out" / "graph.json").read_text())["statistics"]
    assert (described["nodes"], described["classes"], described["source"]) == (12, 3, "own files")


@given(graphs())
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, graph: Graph):
    """Of any graph of two classes or more."""
    folder = tmp_path_factory.mktemp("any")
    enough = 2 <= graph.labels.max() + 1 <= graph.num_nodes
    expected = Graph.from_edges(graph.edges(), graph.features, graph.labels, max(graph.labels) + 1).fingerprint
    for form in ("graph.npz", "csv"):
        path = write(folder / form, graph)
        if enough:
            assert own_files.read(path).fingerprint == expected
        else:
            with pytest.raises(DataError, match="2 classes to as many as there are nodes"):
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


def npz(**changes: Any) -> Callable[[Path], Path]:
    """An archive with some arrays changed, or left out where they are None."""

    def make(folder: Path) -> Path:
        arrays = {name: array for name, array in {**npz_arrays(GRAPH), **changes}.items() if array is not None}
        np.savez(folder / "graph.npz", **arrays)
        return folder / "graph.npz"

    return make


def content(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def half(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        data = write(folder / name).read_bytes()
        return content(name, data[: len(data) // 2])(folder)

    return make


def saved(value: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        torch.save(value(folder) if isinstance(value, FunctionType) else value, folder / "graph.pt")
        return folder / "graph.pt"

    return make


def data(**changes: Any) -> Data:
    values = {"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([0, 1, 1])}
    return Data(**{key: value for key, value in {**values, **changes}.items() if value is not None})


def tables(nodes: str = "id,label,x\n1,0,0.5\n2,1,1\n", edges: str = "source,target\n1,2\n") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        folder = folder / "tables"
        folder.mkdir()
        for name, text in (("nodes", nodes), ("edges", edges)):
            if text:
                (folder / f"{name}.csv").write_text(text)
        return folder

    return make


class Payload:
    """Makes the file ``victim`` when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.victim}",)


WIDE = np.concatenate([GRAPH.adjacency.indices[:-1], [99]]).astype(np.int32)
PAYLOADS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "pickled labels": (
        lambda folder: npz(labels=np.array([Payload(folder / "victim")] * 12, dtype=object))(folder),
        r"graph\.npz: labels is no array of numbers \(Object arrays cannot be loaded",
    ),
    "a pickle for an archive": (
        lambda folder: content("graph.npz", pickle.dumps(Payload(folder / "victim")))(folder),
        r"graph\.npz is damaged or of another format",
    ),
    "a pickle for a Data": (
        lambda folder: content("graph.pt", pickle.dumps(Payload(folder / "victim")))(folder),
        r"graph\.pt: it holds (something else|posix\.system); a torch_geometric\.data\.Data of tensors",
    ),
    "a Data with more": (
        saved(lambda folder: data(more=Payload(folder / "victim"))),
        r"graph\.pt: it holds posix\.system; a torch_geometric\.data\.Data of tensors, written by torch\.save, is allowed",
    ),
}
WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    **PAYLOADS,
    "nothing": (lambda folder: folder / "graph.npz", r"graph\.npz: there is no such file or folder; a relative path begins"),
    "another ending": (
        content("graph.txt", b"1 2\n"),
        r"graph\.txt: this is no graph; allowed are a file that ends with",
    ),
    "an endless name": (lambda folder: folder / ("a" * 300), r"a cannot be read: File name too long"),
    "an empty archive": (content("graph.npz", b""), r"graph\.npz is damaged or of another format"),
    "half an archive": (half("graph.npz"), r"graph\.npz is damaged or of another format"),
    "text": (content("graph.npz", b"nothing of the kind"), r"graph\.npz is damaged or of another format"),
    "no labels": (npz(labels=None), r"graph\.npz: labels is missing; there are adj_data, adj_indices"),
    "no adjacency": (npz(adj_data=None), r"graph\.npz: adj_data is missing; there are"),
    "no features": (npz(attr_indptr=None), r"graph\.npz: attr_indptr is missing; there are"),
    "labels that are NaN": (
        npz(labels=np.full(12, np.nan)),
        r"labels has type float64 and shape \(12,\); it must be integers",
    ),
    "one-hot labels": (npz(labels=np.eye(12, dtype=int)), r"labels has type int64 and shape \(12, 12\)"),
    "too few labels": (npz(labels=GRAPH.labels[1:]), r"the shape of labels is \(11,\) .*, where 12 nodes have features"),
    "a negative label": (npz(labels=GRAPH.labels - 1), "labels run from -1 to 1"),
    "a huge label": (
        npz(labels=GRAPH.labels * 10**9),
        "there are 2000000001 classes for 12 nodes; allowed are",
    ),
    "one class": (npz(labels=GRAPH.labels * 0), "there are 1 classes for 12 nodes"),
    "features that are NaN": (
        npz(attr_data=GRAPH.features.data * np.nan),
        "a feature is not a finite number",
    ),
    "huge features": (npz(attr_data=np.full(GRAPH.features.nnz, 1e300)), "a feature is not a finite number"),
    "features of text": (npz(attr_data=np.full(GRAPH.features.nnz, "a")), "attr_data has type <U1"),
    "a node that is not there": (npz(adj_indices=WIDE), r"adj_data, adj_indices, adj_indptr and adj_shape are no CSR matrix"),
    "a negative node": (npz(adj_indices=-1 - GRAPH.adjacency.indices), "are no CSR matrix"),
    "rows out of order": (npz(adj_indptr=GRAPH.adjacency.indptr[::-1]), "are no CSR matrix"),
    "another shape": (npz(adj_shape=np.array([12])), "are no CSR matrix"),
    "more nodes with edges": (
        npz(adj_shape=np.array([12, 100]), adj_indices=WIDE),
        r"adjacency matrix \(12, 100\), where 12",
    ),
    "no nodes": (npz(attr_matrix=np.ones((0, 2))), "where 0 nodes have features"),
    "no feature": (npz(attr_matrix=np.ones((12, 0))), "there are no features; a node needs at least one"),
    "an empty Data": (content("graph.pt", b""), r"graph\.pt"),
    "half a Data": (half("graph.pt"), r"graph\.pt is damaged or of another format"),
    "a dictionary": (saved({"x": torch.ones(3, 2)}), r"graph\.pt: it holds a dict; a torch_geometric\.data\.Data is allowed"),
    "a Data without labels": (saved(data(y=None)), r"graph\.pt: data\.y is missing"),
    "Data with labels NaN": (
        saved(data(y=torch.full((3,), torch.nan))),
        r"data\.y has .* type torch\.float32",
    ),
    "Data with features NaN": (
        saved(data(x=torch.full((3, 2), torch.nan))),
        r"data\.x has values that are not finite",
    ),
    "a Data with one row of features": (saved(data(x=torch.ones(3))), r"data\.x has shape \(3,\)"),
    "Data with edges in rows": (
        saved(data(edge_index=torch.zeros(5, 3, dtype=torch.int64))),
        r"data\.edge_index has shape \(5, 3\)",
    ),
    "Data with edges of floats": (
        saved(data(edge_index=torch.zeros(2, 3))),
        r"type torch\.float32; it must",
    ),
    "no table of edges": (tables(edges=""), r"tables: the folder has neither of edges\.csv and edges\.parquet; it must have one"),
    "an empty table": (tables(nodes=" "), r"nodes\.csv"),
    "no column of labels": (tables(nodes="id,x\n1,2\n"), r"nodes\.csv: the column label is missing; there are id, x"),
    "an empty label": (tables(nodes="id,label,x\n1,0,0\n2,,1\n"), r"nodes\.csv: label is missing in row 2; every row needs one"),
    "a label that is NaN": (tables(nodes="id,label,x\n1,nan,0\n2,1,1\n"), r"nodes\.csv: label is missing in row 1"),
    "a label between numbers": (
        tables(nodes="id,label,x\n1,0,0\n2,1.5,1\n"),
        r"nodes\.csv: a label is 1\.5; the number",
    ),
    "an empty feature": (tables(nodes="id,label,x\n1,0,0\n2,1,\n"), r"nodes\.csv: the column x has no number in row 2"),
    "an infinite feature": (tables(nodes="id,label,x\n1,0,0\n2,1,inf\n"), r"nodes\.csv: a feature is not a finite number"),
    "a feature of text": (
        tables(nodes="id,label,x\n1,0,red\n2,1,2\n"),
        r"nodes\.csv: the column x has type \w+; a feature",
    ),
    "a repeated id": (tables(nodes="id,label,x\n1,0,0\n1,1,1\n"), r"nodes\.csv: the id 1 occurs twice"),
    "a short row": (tables(nodes="id,label,x\n1,0\n2,1,1\n"), r"nodes\.csv: the column x has no number in row 1"),
    "a long row": (tables(nodes="id,label,x\n1,0,0,7\n2,1,1,7\n"), r"nodes\.csv is damaged or of another format \(ParserWarning"),
    "one longer row": (tables(nodes="id,label,x\n1,0,0\n2,1,1,7\n"), r"nodes\.csv is damaged or of another format \(ParserError"),
    "an edge to nowhere": (
        tables(edges="source,target\n1,2\n2,02\n"),
        r"edges\.csv: target is 02 in row 2, which",
    ),
    "half an edge": (tables(edges="source,target\n1,\n"), r"edges\.csv: target is missing in row 1"),
    "an edge with a weight": (
        tables(edges="source,target,w\n1,2,3\n"),
        r"edges\.csv: there is a column w; allowed",
    ),
    "edges without a header": (tables(edges="1,2\n"), r"edges\.csv: the column source is missing; there are 1, 2"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_graph_is_one_sentence(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    make, sentence = WRONG[wrong]
    path = make(tmp_path)
    with pytest.raises(DataError, match=sentence):
        api.load_graph(path)
    before = sorted(tmp_path.iterdir())
    assert run_prepare(tmp_path, path) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert printed.rstrip("\n").isprintable()
    assert len(printed) < 800 + len(str(path))
    assert sorted(tmp_path.iterdir()) == sorted({*before, tmp_path / "config.json"})  # nothing half-written, nothing executed


def test_what_pytorch_may_load_is_as_before(tmp_path: Path):
    before = set(torch.serialization.get_safe_globals())
    assert Data in before
    own_files.read(write(tmp_path / "graph.pt"))
    assert set(torch.serialization.get_safe_globals()) == before


def test_two_tables_of_one_kind_are_refused(tmp_path: Path):
    folder = write(tmp_path / "csv")
    (folder / "edges.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"the folder has both of edges\.csv and edges\.parquet; it must have one of them"):
        own_files.read(folder)


def test_parquet_that_nothing_reads_or_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write(tmp_path / "csv")
    (folder / "nodes.csv").unlink()
    (folder / "nodes.parquet").write_bytes(b"PAR1 nothing of the kind PAR1")
    with pytest.raises(DataError, match=r"nodes\.parquet(: pyarrow is not installed| is damaged or of another format)"):
        own_files.read(folder)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"nodes\.parquet: pyarrow is not installed; install it with `pip install pyarrow`"):
        own_files.read(folder)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "graph.npz")

    def refuse(*arguments: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"graph\.npz cannot be read: Permission denied$"):
        keys.own_fingerprint(str(path))


def test_the_key_is_the_content_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def key(path: Path | str, name: str = "mine") -> str:
        return keys.run_key(config_of(path, name), Run("quick", name, 2, "fedavg", 0))

    first = write(tmp_path / "graph.npz")
    (tmp_path / "there").mkdir()
    moved = tmp_path / "there" / "other.npz"
    moved.write_bytes(first.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert key(first) == key(moved) == key("graph.npz") == key("there/../graph.npz")
    assert key(first) != key(first, "yours")
    moved.write_bytes(moved.read_bytes() + b" ")
    assert key(first) != key(moved)
    folder = write(tmp_path / "csv")
    before = key(folder)
    (folder / "readme.txt").write_text("not read")
    assert key(folder) == before
    nodes, edges = (folder / f"{name}.csv" for name in ("nodes", "edges"))
    for file in (nodes, edges):
        was = file.read_bytes()
        file.write_bytes(was + b"\n")
        assert key(folder) != before
        file.write_bytes(was)
    assert key(folder) == before
    monkeypatch.setattr(own_files, "REVISION", own_files.REVISION + 1)
    assert key(folder) != before
    run = Run("quick", "mine,labelled=0.1", 2, "fedavg", 0)
    assert keys.specification(config_of(folder), run)["dataset"] == {"name": "mine", "features": "raw", "labelled": 0.1}


def test_a_file_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "graph.npz")
    read = own_files.read

    def read_and_change(place: str) -> Graph:
        graph = read(place)
        path.write_bytes(path.read_bytes() + b" ")
        return graph

    monkeypatch.setattr(prepare.own_files, "read", read_and_change)
    assert run_prepare(tmp_path, path) == 1
    assert "graph.npz was changed while it was read; run the workflow again" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_workflow_hands_the_path_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "graph.npz")
    monkeypatch.setenv(flags.ENVIRONMENT, json.dumps(config_of(path)))
    handed = flags.config_of(type("Arguments", (), {"config": None}))  # type: ignore[arg-type]
    assert keys.graph_key(handed, "mine") == keys.graph_key(config_of(path), "mine")


def test_there_is_nothing_to_download(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from feddep.__main__ import main

    (tmp_path / "config.json").write_text(json.dumps(dict(config_of("graph.npz")) | {"studies": []}))
    assert main(["download", "--config", f"{tmp_path}/config.json", "--dataset", "mine", "--output", f"{tmp_path}/raw"]) == 1
    assert "mine is in files of your own, which are not copied: go on with the stage prepare" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("cora", {"path": "a.npz"}, "datasets.cora.path is given, but cora is a real dataset; choose another name"),
        ("mine", {"path": "a.npz", "synthetic": {}}, "datasets.mine has path and synthetic; one of them says what graph it is"),
        ("mine", {}, "datasets.mine is not a known dataset and has neither path nor synthetic; known: cora"),
        ("default", {"path": "a.npz"}, "datasets.default is no name of a dataset"),
        ("mine", {"path": ""}, 'datasets.mine.path is "": the path of a file or folder is needed'),
        ("mine", {"path": 3}, "datasets.mine.path is 3; it must be text or null"),
        ("mine", {"path": "a" * 1001}, "text has one line of printable characters, at most 1000"),
    ],
)
def test_a_wrong_entry_is_named(name: str, options: dict[str, Any], sentence: str):
    raw = {"datasets": {name: options}, "clients": [2], "seeds": [0], "settings": {"quick": {}}, "methods": {"fedavg": {}}}
    with pytest.raises(ConfigError) as error:
        validate(raw)
    assert sentence in str(error.value)


def test_a_variant_is_of_the_same_graph(tmp_path: Path):
    config = config_of(write(tmp_path / "graph.npz"))
    for variant in ("mine,path=other.npz", "mine,path=null", "mine,synthetic=null"):
        with pytest.raises(ConfigError, match=r"datasets\.mine\.\w+ makes another graph, not a variant; give it an entry"):
            keys.run_key(config, Run("quick", variant, 2, "fedavg", 0))
