"""Readers of published formats, on small files written here in the same formats."""

import gzip
import io
import json
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
from feddep.graph.partitioners import partition
from feddep.graph.split import draw
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
    (tmp_path / "a.cites").write_text("35\t31336\n31336 35\n35\t35\n")
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


def test_musae_numbers_classes_by_name(tmp_path: Path) -> None:
    files = {
        "edges.csv": "id_1,id_2\n0,0\n1,0\n",
        "features.json": '{"1": [2, 0], "0": []}',
        "target.csv": "id,facebook_id,page_name,page_type\n1,70,A,company\n0,5,B,tvshow\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    graph = formats.read(tmp_path, Release("musae", dict.fromkeys(files, ())))
    assert (graph.labels.tolist(), graph.num_classes, graph.edges().tolist()) == (
        [1, 0],
        2,
        [[0, 1]],
    )
    assert graph.features.toarray().tolist() == [[0, 0, 0], [1, 0, 1]]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (("female", "male"), [0, -1, 1, 1, -1]),
        (("2004", "2005"), [-1, 1, 0, -1, 1]),
    ],
)
def test_friends_without_a_class_stay_in_the_graph_and_in_no_split(
    tmp_path: Path, classes: Any, labels: list[int]
) -> None:
    """One attribute is the class; the others are features with a column for each value at any
    university, and none may be missing.
    """
    # Status, gender, major, second major, dorm, class year, high school.
    info = np.array(
        [
            [1, 1, 70, 0, 9, 2008, 500],
            [1, 0, 71, 0, 9, 2005, 500],
            [2, 2, 70, 0, 8, 2004, 501],
            [1, 2, 70, 0, 9, 0, 500],
            [1, 0, 70, 0, 9, 2005, 500],
        ],
        dtype=np.uint16,
    )
    for name, friends, own in (("A", [[0, 1], [1, 0]], info[:2]), ("B", 1 - np.eye(3), info[2:])):
        network = sp.csc_matrix(np.array(friends, dtype=np.float64))
        scipy.io.savemat(tmp_path / f"{name}.mat", {"A": network, "local_info": own})
    release = Release("facebook100", {"A.mat": (), "B.mat": ()}, classes)
    graph = formats.read(tmp_path, release, {"A": (), "B": ()})
    assert (graph.labels.tolist(), graph.num_classes) == (labels, 2)
    assert graph.edges().tolist() == [[0, 1], [2, 3], [2, 4], [3, 4]]
    varying = np.delete(info, 1 if classes[0] == "female" else 5, axis=1)
    same = (varying[:, None] == varying).sum(axis=2)
    assert (graph.features @ graph.features.T).toarray().tolist() == same.tolist()
    assert graph.num_features == sum(len(set(column)) for column in varying.T.tolist())
    owners = partition(graph, 2, 0, "given")
    assert owners.client.tolist() == [0, 0, 1, 1, 1]
    split = draw(graph, "random", {"train": 0.34, "val": 0.34, "test": 0.32}, 0, owners)
    used = np.concatenate([split.train, split.val, split.test])
    assert sorted(used.tolist()) == np.flatnonzero(graph.labels >= 0).tolist()


def test_an_airport_is_described_by_its_degree(tmp_path: Path) -> None:
    (tmp_path / "a.edgelist").write_text("10005 17\n17 10005\n17 17\n23 17\n")
    (tmp_path / "labels.txt").write_text("node label\n23 3\n10005 1\n17 0\n40 2\n")
    graph = formats.read(tmp_path, Release("airports", {"a.edgelist": (), "labels.txt": ()}))
    assert (graph.labels.tolist(), graph.edges().tolist()) == ([0, 3, 2, 1], [[0, 1], [0, 3]])
    assert (
        graph.features.toarray().argmax(axis=1).tolist() == graph.degrees.tolist() == [2, 1, 0, 1]
    )


def test_a_paper_of_two_classes_is_of_the_first(tmp_path: Path) -> None:
    group = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1]], dtype=np.uint8)
    words = np.array([[0, 2], [1, 0], [0, 0]], dtype=np.uint8)
    network = sp.csc_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0.0]]))
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


def wikics() -> bytes:
    links = [PAIRS[PAIRS[:, 0] == node, 1].tolist() for node in range(6)]
    content = {"features": FEATURES.tolist(), "labels": LABELS.tolist(), "links": links}
    return json.dumps({**content, "test_mask": [True] * 6}).encode()


@pytest.mark.parametrize("content", [heterophilous, ogb, reddit, wikics])
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
