"""Large graphs through the loaders of other packages: the real ones on small files, and a stand-in for ogb."""

import gzip
import io
import json
import shutil
import socket
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from toys import Server

from feddep.config.loading import validate
from feddep.datasets import cached, package_loaders
from feddep.datasets.canonical import canonical
from feddep.datasets.fetching import MANIFEST, download, origin
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import keys
from feddep.experiment.task_files import load_graph
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError

PAIRS = np.array([(3, 1), (1, 3), (0, 2), (2, 2), (4, 0), (4, 0)])
FEATURES = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
LABELS = np.array([0, 1, 2, 2, 1, 0])
GRAPH = Graph.from_edges(PAIRS, FEATURES, LABELS, 3)
CONFIG: dict[str, Any] = {
    "datasets": {"ogbn_products": {}},
    **{"clients": [2], "seeds": [0], "settings": {"quick": {}}, "methods": {"fedavg": {}}},
}


class FakeOgb:
    """What the class of ogb 1.3.6 does: it asks, prints, downloads into ``root``, and adds the other direction of each edge."""

    downloads = 0
    error: Exception | None = None

    def __init__(self, name: str, root: str) -> None:
        if input(f"This will download 1.38GB of {name}. Will you proceed? (y/N)\n").lower() != "y":
            raise SystemExit(-1)
        print("Downloading")
        type(self).downloads += 1
        assert socket.getdefaulttimeout() == 30
        (Path(root) / "products.zip").write_bytes(b"")
        if self.error is not None:
            raise self.error

    def __getitem__(self, index: int) -> tuple[dict[str, Any], np.ndarray]:
        both = np.concatenate([PAIRS, PAIRS[:, ::-1]]).T
        return {"edge_index": both, "node_feat": FEATURES, "edge_feat": None, "num_nodes": 6}, LABELS[:, None]


def small(name: str, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Give a dataset of the registry the size of the graph of these tests."""
    size = {"nodes": 6, "edges": 3, "features": 3, "classes": 3}
    monkeypatch.setitem(REGISTRY, name, replace(REGISTRY[name], **{**size, **changes}))


@pytest.fixture
def ogb(monkeypatch: pytest.MonkeyPatch) -> type[FakeOgb]:
    loader = type("NodePropPredDataset", (FakeOgb,), {})
    package, module = ModuleType("ogb"), ModuleType("ogb.nodeproppred")
    module.NodePropPredDataset = loader  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ogb", package)
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", module)
    small("ogbn_products", monkeypatch)
    return loader


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw" / "ogbn_products"


def test_what_ogb_downloads_is_kept_as_arrays(ogb: type[FakeOgb], raw: Path, capsys: pytest.CaptureFixture) -> None:
    stdin, timeout = sys.stdin, socket.getdefaulttimeout()
    download("ogbn_products", raw)
    assert (sys.stdin, socket.getdefaulttimeout()) == (stdin, timeout)
    assert capsys.readouterr().out == ""
    assert [path.name for path in raw.parent.iterdir()] == ["ogbn_products"]
    files = {path.name for path in raw.iterdir()}
    assert files == {MANIFEST, *(f"ogbn_products.{part}.npy" for part in ("edges", "features", "labels"))}
    assert json.loads((raw / MANIFEST).read_text())["sha256"].keys() == files - {MANIFEST}
    assert origin(raw) == "package ogb"
    assert np.load(raw / "ogbn_products.edges.npy").tolist() == [[0, 2], [0, 4], [1, 3]]
    download("ogbn_products", raw)
    assert ogb.downloads == 1


def test_a_large_graph_keeps_the_order_of_its_release(ogb: type[FakeOgb], raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download("ogbn_products", raw)
    monkeypatch.setattr("feddep.datasets.formats.arrays._ROWS", 4)  # the last block is a smaller one
    assert parse("ogbn_products", raw).fingerprint == GRAPH.fingerprint


def test_without_the_package_one_sentence_says_what_to_install(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogb", None)
    with pytest.raises(DataError) as caught:
        download("ogbn_products", raw)
    for part in ("ogbn_products", "package ogb", "`pip install ogb`", "mirror", "ogbn_products.edges.npy"):
        assert part in str(caught.value)
    assert list(raw.parent.iterdir()) == []


@pytest.mark.parametrize("kind", [OSError, RuntimeError, zipfile.BadZipFile])
def test_a_loader_that_fails_says_why(ogb: type[FakeOgb], raw: Path, kind: type[Exception]) -> None:
    ogb.error = kind("no network\nat all")
    with pytest.raises(DataError, match=f"its download of ogbn-products failed \\({kind.__name__}: no network at all\\)"):
        download("ogbn_products", raw)
    assert list(raw.parent.iterdir()) == []


def test_a_damaged_file_is_noticed_though_no_checksum_is_published(ogb: type[FakeOgb], raw: Path) -> None:
    download("ogbn_products", raw)
    np.save(raw / "ogbn_products.labels.npy", (LABELS + 1) % 3)
    with pytest.raises(DataError, match=r"ogbn_products\.labels\.npy is not what was downloaded"):
        parse("ogbn_products", raw)
    download("ogbn_products", raw)
    assert parse("ogbn_products", raw).fingerprint == GRAPH.fingerprint
    (raw / MANIFEST).unlink()
    with pytest.raises(DataError, match=r"MANIFEST\.json"):
        parse("ogbn_products", raw)


def test_a_mirror_may_hold_the_arrays(ogb: type[FakeOgb], raw: Path, tmp_path: Path) -> None:
    download("ogbn_products", raw)
    mirror, again = raw.rename(tmp_path / "arrays").parent, tmp_path / "again"
    partial = tmp_path / ".again.partial"
    partial.mkdir()
    (partial / "ogbn_products.edges.npy").write_bytes(b"half")  # what a crash left, which no checksum tells from the whole
    download("ogbn_products", again, mirror)
    assert (ogb.downloads, origin(again)) == (1, "mirror folder")
    assert parse("ogbn_products", again).fingerprint == GRAPH.fingerprint


def test_files_of_a_mirror_that_are_no_arrays(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small("ogbn_products", monkeypatch)
    for name in REGISTRY["ogbn_products"].release.files:
        (tmp_path / name).write_bytes(b"no array")
    download("ogbn_products", raw, tmp_path)
    with pytest.raises(DataError, match=r"raw/ogbn_products holds no arrays of a graph"):
        parse("ogbn_products", raw)


def test_size_and_a_fingerprint_that_is_known_are_checked(ogb: type[FakeOgb], raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download("ogbn_products", raw)
    small("ogbn_products", monkeypatch, edges=4)
    with pytest.raises(DataError, match=r"\(6, 3, 3, 3\) nodes, edges, features, classes where the registry has \(6, 4, 3, 3\)"):
        parse("ogbn_products", raw)
    small("ogbn_products", monkeypatch, fingerprint=GRAPH.fingerprint)
    assert parse("ogbn_products", raw).num_edges == 3
    small("ogbn_products", monkeypatch, fingerprint="0" * 64)
    with pytest.raises(DataError, match="has the fingerprint"):
        parse("ogbn_products", raw)


def test_the_api_keeps_the_graph(ogb: type[FakeOgb], tmp_path: Path) -> None:
    assert cached.load("ogbn_products", tmp_path).fingerprint == GRAPH.fingerprint
    shutil.rmtree(tmp_path / "raw")
    assert cached.load("ogbn_products", tmp_path).fingerprint == GRAPH.fingerprint
    assert ogb.downloads == 1


def test_keys_name_the_release_until_the_fingerprint_is_known(ogb: type[FakeOgb], monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> str:
        return keys.data_fingerprint(validate(CONFIG), "ogbn_products")

    first, loader = found(), REGISTRY["ogbn_products"].loader
    assert loader is not None
    assert found() == first
    small("ogbn_products", monkeypatch, loader=replace(loader, version=2))
    newer = found()
    small("ogbn_products", monkeypatch)
    monkeypatch.setattr(package_loaders, "REVISION", 2)
    assert len({first, newer, found()}) == 3
    small("ogbn_products", monkeypatch, fingerprint=GRAPH.fingerprint)
    assert found() == GRAPH.fingerprint


def test_a_prepared_graph_is_known_by_its_key(ogb: type[FakeOgb], tmp_path: Path) -> None:
    config, file = validate(CONFIG), tmp_path / "graph.safetensors"
    GRAPH.save(file, keys.graph_key(config, "ogbn_products"))
    assert load_graph(config, "ogbn_products", file).fingerprint == GRAPH.fingerprint
    GRAPH.save(file, "another key")
    with pytest.raises(DataError, match="stale"):
        load_graph(config, "ogbn_products", file)


@pytest.mark.slow
def test_reddit_by_the_loader_of_pyg(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real loader, on an archive of the published form; one that breaks off leaves nothing that the next try would take."""
    from torch_geometric.datasets import Reddit

    data, graph, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(data, feature=FEATURES.astype(np.float64), label=LABELS, node_types=np.array([1, 1, 1, 2, 3, 3]))
    sp.save_npz(graph, sp.coo_matrix((np.ones(6), tuple(PAIRS.T)), shape=(6, 6)))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("reddit_data.npz", data.getvalue())
        file.writestr("reddit_graph.npz", graph.getvalue())
    monkeypatch.setattr(Reddit, "url", f"{server.url}reddit.zip")
    small("reddit", monkeypatch)

    server.files["reddit.zip"] = archive.getvalue()
    server.faults = [200]
    with pytest.raises(DataError, match=r"its download of Reddit failed \(BadZipFile"):
        download("reddit", tmp_path / "reddit")
    download("reddit", tmp_path / "reddit")
    assert len(server.sent) == 2
    assert parse("reddit", tmp_path / "reddit").fingerprint == GRAPH.fingerprint
    assert origin(tmp_path / "reddit") == "package torch_geometric"


def npz(**arrays: np.ndarray) -> bytes:
    """An archive of arrays as bytes."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def masks(kind: str) -> dict[str, np.ndarray]:
    """Masks of a split that nobody reads, under the names of a release."""
    return {f"{part}_{kind}": np.eye(3, 6)[row] for row, part in enumerate(("train", "val", "test"))}


WORDS = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=np.float32)
"""Features of a release of words, of which no node has none."""


def geom_gcn(server: Server, name: str, words: Callable[[np.ndarray], str], edges: str = "out1_graph_edges.txt") -> None:
    """Serve the files of a graph of Geom-GCN."""
    rows = [f"{node}\t{words(row)}\t{label}" for node, (row, label) in enumerate(zip(WORDS, LABELS, strict=True))]
    pairs = [f"{first}\t{second}" for first, second in PAIRS]
    for file, head, lines in (("out1_node_feature_label.txt", "node_id\tfeature\tlabel", rows), (edges, "a\tb", pairs)):
        server.files[f"new_data/{name}/{file}"] = "".join(f"{line}\n" for line in [head, *lines]).encode()
    for number in range(10):
        server.files[f"splits/{name}_split_0.6_0.2_{number}.npz"] = npz(**masks("mask"))


def each_value(row: np.ndarray) -> str:
    return ",".join(f"{value:.0f}" for value in row)


def present(row: np.ndarray) -> str:
    return ",".join(map(str, np.flatnonzero(row)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, each in REGISTRY.items() if ":" in str(each.loader and each.loader.dataset)] + ["actor"]
)
def test_small_graphs_by_the_loaders_of_pyg(name: str, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real loaders, on files of the published form."""
    from torch_geometric import datasets

    loader = REGISTRY[name].loader
    assert loader is not None
    kind = loader.dataset.partition(":")[0]
    features = FEATURES if kind == "HeterophilousGraphDataset" else WORDS
    if kind == "HeterophilousGraphDataset":
        wanted = {
            "node_features": FEATURES,
            "node_labels": LABELS,
            "edges": PAIRS,
            **{f"{k}s": v[None] for k, v in masks("mask").items()},
        }
        server.files[f"{name}.npz"] = npz(**wanted)
    else:
        geom_gcn(server, "film" if name == "actor" else name, present if name == "actor" else each_value)
    address = "processed_url" if kind == "WikipediaNetwork" else "url"
    published = getattr(getattr(datasets, kind), address)
    assert published.startswith(REGISTRY[name].url.rstrip("/"))
    monkeypatch.setattr(getattr(datasets, kind), address, server.url.rstrip("/"))
    small(name, monkeypatch)
    download(name, tmp_path / name)
    assert parse(name, tmp_path / name).fingerprint == canonical(Graph.from_edges(PAIRS, features, LABELS, 3)).fingerprint
    assert origin(tmp_path / name) == "package torch_geometric"


def test_arxiv_by_the_loader_of_ogb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real loader, on a small folder in the raw layout that it has after the download."""
    monkeypatch.setenv("OUTDATED_IGNORE", "1")
    from ogb.nodeproppred import dataset as module

    archive = tmp_path / "arxiv.zip"
    raw: dict[str, np.ndarray] = {
        **{"edge": PAIRS, "node-feat": FEATURES, "node-label": LABELS[:, None], "node_year": 2010 + LABELS[:, None]},
        **{"num-node-list": np.array([[6]]), "num-edge-list": np.array([[len(PAIRS)]])},
    }
    with zipfile.ZipFile(archive, "w") as file:
        for folder in ("arxiv/", "arxiv/raw/", "arxiv/processed/"):
            file.writestr(folder, b"")
        file.writestr("arxiv/RELEASE_v1.txt", b"")
        for name, array in raw.items():
            text = "".join(",".join(map(str, row)) + "\n" for row in array.tolist())
            file.writestr(f"arxiv/raw/{name}.csv.gz", gzip.compress(text.encode()))

    def downloaded(url: str, folder: str) -> str:
        assert url == REGISTRY["ogbn_arxiv"].url
        return str(shutil.copy(archive, Path(folder) / "arxiv.zip"))

    monkeypatch.setattr(module, "decide_download", lambda url: True)
    monkeypatch.setattr(module, "download_url", downloaded)
    small("ogbn_arxiv", monkeypatch)
    download("ogbn_arxiv", tmp_path / "ogbn_arxiv")
    assert parse("ogbn_arxiv", tmp_path / "ogbn_arxiv").fingerprint == GRAPH.fingerprint
    assert origin(tmp_path / "ogbn_arxiv") == "package ogb"
