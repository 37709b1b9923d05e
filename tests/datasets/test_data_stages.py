"""The stages download and prepare, from the command line's flags to the files they write."""

import json
from pathlib import Path
from typing import Any

import pytest
from toys import Server, Toy

from feddep.__main__ import main
from feddep.datasets.public_graphs import REGISTRY
from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.utils.storage import read_result

TINY = {
    "nodes": 24,
    "classes": 2,
    "communities": 4,
    "features": 8,
    "degree_within": 3.0,
    "degree_between": 1.0,
    "words": 2,
    "signal": 0.5,
    "seed": 0,
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    monkeypatch.delenv("FEDDEP_DATA_MIRROR", raising=False)
    if "toy" in request.fixturenames:
        request.getfixturevalue("toy")  # is in the registry before the configuration names it
    write_config(tmp_path)
    return tmp_path


def write_config(root: Path, mirror: Path | str | None = None) -> None:
    public = {"toy": {"features": "raw"}} if "toy" in REGISTRY else {}
    config = {
        "data": {"mirror": mirror and str(mirror)},
        "datasets": {**public, "tiny": {"features": "raw", "synthetic": TINY}},
        **{"clients": [2], "seeds": [0], "settings": {"quick": {}}, "methods": {"fedavg": {}}},
    }
    (root / "config.json").write_text(json.dumps(config))


def download(root: Path, name: str) -> int:
    return main(["download", "--config", f"{root}/config.json", "--dataset", name, "--output", f"{root}/raw/{name}"])


def prepare(root: Path, name: str, *flags: str) -> int:
    files = ["--graph", f"{root}/graphs/{name}.safetensors", "--statistics", f"{root}/graphs/{name}.json"]
    return main(["prepare", "--config", f"{root}/config.json", "--dataset", name, *flags, *files])


def read_statistics(root: Path, name: str) -> dict[str, Any]:
    return dict(read_result(root / "graphs" / f"{name}.json")["statistics"])


@pytest.mark.parametrize("where", ["config", "environment"])
def test_a_public_graph_from_its_raw_files(root: Path, toy: Toy, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where == "config":
        write_config(root, toy.folder)
        monkeypatch.setenv("FEDDEP_DATA_MIRROR", "nowhere")  # the configuration goes first
    else:
        monkeypatch.setenv("FEDDEP_DATA_MIRROR", str(toy.folder))
    assert download(root, "toy") == 0
    assert prepare(root, "toy", "--raw", f"{root}/raw/toy") == 0
    assert Graph.load(root / "graphs" / "toy.safetensors").fingerprint == toy.dataset.fingerprint
    described = read_statistics(root, "toy")
    assert (described["name"], described["source"]) == ("toy", "mirror folder")
    assert (described["nodes"], described["edges"]) == (toy.dataset.nodes, toy.dataset.edges)
    assert described["fingerprint"] == toy.dataset.fingerprint


def test_the_mirror_may_be_a_url(root: Path, toy: Toy, server: Server) -> None:
    server.files["npz/toy.npz"] = toy.content
    write_config(root, server.url)
    assert download(root, "toy") == 0
    assert prepare(root, "toy", "--raw", f"{root}/raw/toy") == 0
    assert read_statistics(root, "toy")["source"] == "mirror URL"
    assert server.sent == ["npz/toy.npz"]


def test_a_synthetic_graph_needs_no_raw_files(root: Path) -> None:
    assert prepare(root, "tiny") == 0
    expected = planted_partition(**TINY).fingerprint
    assert Graph.load(root / "graphs" / "tiny.safetensors").fingerprint == expected
    assert read_statistics(root, "tiny")["source"] == "synthetic"


def test_the_same_bytes_again(root: Path) -> None:
    prepare(root, "tiny")
    first = {path.name: path.read_bytes() for path in (root / "graphs").iterdir()}
    prepare(root, "tiny")
    assert {path.name: path.read_bytes() for path in (root / "graphs").iterdir()} == first
    assert first.keys() == {"tiny.safetensors", "tiny.json"}


def test_what_cannot_be_done_is_one_sentence(root: Path, toy: Toy, capsys: pytest.CaptureFixture) -> None:
    assert download(root, "tiny") == 1
    assert "tiny is synthetic and has no raw files" in capsys.readouterr().err
    assert download(root, "cora") == 1
    assert "lists no dataset 'cora', only tiny, toy" in capsys.readouterr().err
    assert prepare(root, "toy") == 1
    assert "name their folder with --raw" in capsys.readouterr().err
    assert prepare(root, "toy", "--raw", f"{root}/absent") == 1
    assert "does not hold the raw files of toy" in capsys.readouterr().err
    assert not (root / "graphs").exists()
