"""Readers of published formats, on small files written here in the same formats."""

import gzip
import io
import pickle
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from feddep.datasets import formats
from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError
from graphs import Payload

PARTS = ("allx", "ally", "tx", "ty", "graph", "test.index")
PLANETOID = Release("planetoid", {f"ind.small.{part}": () for part in PARTS})


def write_pickle(path: Path, value: Any) -> None:
    """Pickle with the module names of the Planetoid files, which old versions wrote."""
    text = pickle.dumps(value, protocol=3)
    for old in (b"numpy.core", b"scipy.sparse.csr"):
        text = text.replace(old.replace(b".c", b"._c"), old)
    path.write_bytes(text.replace(b"cbuiltins", b"c__builtin__"))


@pytest.fixture
def planetoid_files(tmp_path: Path) -> Path:
    """Nodes 0 to 2 with labels, then a test range 3 to 6 out of order, in which node 4 is missing
    as in CiteSeer.
    """
    write_pickle(
        tmp_path / "ind.small.allx",
        sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)),
    )
    write_pickle(tmp_path / "ind.small.ally", np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    write_pickle(
        tmp_path / "ind.small.tx",
        sp.csr_matrix(np.array([[5, 0], [0, 3], [6, 6]], dtype=np.float32)),
    )
    write_pickle(tmp_path / "ind.small.ty", np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0]]))
    write_pickle(
        tmp_path / "ind.small.graph",
        defaultdict(list, {0: [1, 1, 0], 1: [0], 2: [5], 5: [2, 3], 4: []}),
    )
    (tmp_path / "ind.small.test.index").write_text("5\n3\n6\n")
    return tmp_path


def test_planetoid_puts_test_rows_where_the_index_says(planetoid_files: Path) -> None:
    graph = formats.read(planetoid_files, PLANETOID)
    assert graph.features.toarray().tolist() == [
        [1, 0],
        [0, 1],
        [1, 1],
        [0, 3],
        [0, 0],
        [5, 0],
        [6, 6],
    ]
    assert graph.labels.tolist() == [0, 1, 2, 1, 0, 2, 1]
    assert graph.edges().tolist() == [[0, 1], [2, 5], [3, 5]]
    assert graph.num_classes == 3


def test_a_pickle_that_would_run_code_is_refused(planetoid_files: Path) -> None:
    payload = Payload(planetoid_files / "victim")
    (planetoid_files / "ind.small.graph").write_bytes(pickle.dumps(payload))
    with pytest.raises(DataError):
        formats.read(planetoid_files, PLANETOID)
    assert not payload.victim.exists()


def test_content_numbers_classes_as_the_release_does(tmp_path: Path) -> None:
    release = Release(
        "content", {"a.content": (), "a.cites": ()}, class_names=("Theory", "Case_Based")
    )
    (tmp_path / "a.content").write_text(
        "31336\t0\t1\t0\tCase_Based\n1061127\t1\t1\t0\tTheory\n35\t0\t0\t0\tCase_Based\n"
    )
    (tmp_path / "a.cites").write_text("35\t31336\n31336\t35\n35\t35\n")
    graph = formats.read(tmp_path, release)
    assert graph.features.toarray().tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert graph.labels.tolist() == [1, 0, 1]
    assert graph.edges().tolist() == [[0, 2]]


def test_twitch_lists_the_features_of_a_node(tmp_path: Path) -> None:
    """Nodes come in any order and some twice, and so do the features of a node."""
    files = {
        "a_edges.csv": "from,to\n0,2\n2,1\n",
        "a_features.json": '{"2": [3, 0, 3], "0": [1], "1": []}',
        "a_target.csv": "id,days,mature,views,partner,new_id\n"
        "9,1,False,2,True,1\n8,1,True,2,True,2\n7,1,True,2,True,0\n"
        "8,1,True,2,True,2\n",
        "b_edges.csv": "from,to\n1,0\n",
        "b_features.json": '{"0": [4], "1": [0]}',
        "b_target.csv": "id,days,mature,views,partner,new_id\n"
        "1,1,False,2,True,0\n2,1,True,2,True,1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    one = formats.read(tmp_path, Release("twitch", dict.fromkeys(list(files)[:3], ())))
    assert one.features.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]]
    assert (one.labels.tolist(), one.edges().tolist(), one.num_classes) == (
        [1, 0, 1],
        [[0, 2], [1, 2]],
        2,
    )
    both = formats.read(tmp_path, Release("twitch", dict.fromkeys(files, ())), {"a": (), "b": ()})
    assert (one.client, both.client.tolist()) == (None, [0, 0, 0, 1, 1])
    assert both.features.toarray()[:, 4].tolist() == [0, 0, 0, 1, 0]
    assert (both.labels.tolist(), both.edges().tolist()) == (
        [1, 0, 1, 0, 1],
        [[0, 2], [1, 2], [3, 4]],
    )
    named = formats.read(
        tmp_path,
        Release("twitch", dict.fromkeys(files, ())),
        {"a": ("no", "yes"), "b": ("yes", "no")},
    )
    assert named.labels.tolist() == [1, 0, 1, 1, 0]


def test_a_paper_of_two_classes_is_of_the_first(tmp_path: Path) -> None:
    group = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1]], dtype=np.uint8)
    words, network = (
        np.array([[0, 2], [1, 0], [0, 0]], dtype=np.uint8),
        sp.csc_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0.0]])),
    )
    scipy.io.savemat(tmp_path / "a.mat", {"attrb": words, "group": group, "network": network})
    graph = formats.read(tmp_path, Release("citation_sources", {"a.mat": ()}))
    assert (graph.labels.tolist(), graph.num_classes) == ([1, 0, 2], 3)
    assert (graph.features.toarray().tolist(), graph.edges().tolist()) == (words.tolist(), [[0, 1]])


PAIRS = np.array([(3, 1), (1, 3), (0, 2), (2, 2), (4, 0), (4, 0)])
FEATURES = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
LABELS = np.array([0, 1, 2, 2, 1, 0])
GRAPH = Graph.from_edges(PAIRS, FEATURES, LABELS, 3)


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def heterophilous() -> bytes:
    return npz(
        node_features=FEATURES,
        node_labels=LABELS,
        edges=PAIRS,
        train_masks=np.ones((10, 6), dtype=bool),
    )


def ogb() -> bytes:
    tables = {
        "edge": PAIRS,
        "node-feat": FEATURES,
        "node-label": LABELS[:, None],
        "node_year": 2010 + LABELS[:, None],
    }
    rows = {
        name: "".join(",".join(map(str, row)) + "\n" for row in table.tolist())
        for name, table in tables.items()
    }
    return archive(
        {f"arxiv/raw/{name}.csv.gz": gzip.compress(text.encode()) for name, text in rows.items()}
    )


def reddit() -> bytes:
    graph, both = io.BytesIO(), np.unique(np.concatenate([PAIRS, PAIRS[:, ::-1]]), axis=0)
    sp.save_npz(graph, sp.coo_matrix((np.ones(len(both)), tuple(both.T)), shape=(6, 6)))
    data = npz(
        feature=FEATURES.astype(np.float64), label=LABELS, node_types=np.array([1, 1, 1, 2, 3, 3])
    )
    return archive({"reddit_graph.npz": graph.getvalue(), "reddit_data.npz": data})


@pytest.mark.parametrize("content", [heterophilous, ogb, reddit])
def test_archives_of_one_file(
    content: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_ROWS", 4)  # the last block of features is a smaller one
    path, release = tmp_path / "file", Release(content.__name__, {"file": ()})
    path.write_bytes(content())
    assert formats.read(tmp_path, release).fingerprint == GRAPH.fingerprint
    for damaged in (
        path.read_bytes()[:-200],
        b"",
        b"nothing of the kind",
        npz(other=LABELS),
        archive({"other": b""}),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError):
            formats.read(tmp_path, release)
