"""Raw files are opened after they are verified, and the graph is the one that the registry describes."""

from dataclasses import replace
from pathlib import Path

import pytest
from toys import Toy

from feddep.datasets.canonical import canonical
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import REGISTRY
from feddep.utils.errors import ConfigError, DataError


def test_gives_the_graph_in_canonical_order(toy: Toy) -> None:
    """The archive also holds pickled names, as the public ones do: nobody opens them."""
    graph = parse("toy", toy.folder / "npz")
    assert graph.fingerprint == canonical(toy.graph).fingerprint != toy.graph.fingerprint


def test_a_damaged_file_is_not_opened(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    (toy.folder / "npz" / "toy.npz").write_bytes(toy.content[:-1] + b"!")
    monkeypatch.setattr("numpy.load", lambda *_, **__: pytest.fail("opened a file that was not verified"))
    with pytest.raises(DataError, match=r"toy\.npz .*is not the published file.*run the stage download"):
        parse("toy", toy.folder / "npz")


def test_a_missing_file_is_named(toy: Toy, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"does not hold the raw files of toy \(toy\.npz\); run the stage download"):
        parse("toy", tmp_path)


def test_another_graph_is_refused(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, fingerprint="f" * 64))
    with pytest.raises(DataError, match=r"toy has the fingerprint .* where the registry has ffff"):
        parse("toy", toy.folder / "npz")
    monkeypatch.setitem(REGISTRY, "toy", replace(toy.dataset, edges=7))
    with pytest.raises(DataError, match=r"where the registry has \(60, 7, 30, 3\)"):
        parse("toy", toy.folder / "npz")


def test_an_unknown_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'corra'"):
        parse("corra", tmp_path)
