"""Servers are tried again where that may help and given up at once where it does not; all against a server on this machine."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from toys import Server, Toy

from feddep.datasets.sources import UnavailableError, sources


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were slept between attempts; nobody sleeps here."""
    taken: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", taken.append)
    return taken


@pytest.fixture
def fetch(toy: Toy, tmp_path: Path, server: Server) -> Callable[[], bytes]:
    """Downloads the toy's file from its public URL."""
    server.files["toy.npz"] = toy.content

    def run() -> bytes:
        _, public = sources(toy.dataset, None)
        with public.open() as copy:
            copy("toy.npz", tmp_path / "copied")
        return (tmp_path / "copied").read_bytes()

    return run


def test_downloads_a_file(toy: Toy, server: Server, fetch: Callable[[], bytes]) -> None:
    assert fetch() == toy.content
    assert (server.asked, server.sent) == (["toy.npz"], ["toy.npz"])


@pytest.mark.parametrize("fault", [100, "503", "429"])
def test_a_broken_download_is_tried_again(
    toy: Toy, server: Server, fetch: Callable[[], bytes], pauses: list[float], fault: int | str
) -> None:
    server.faults = [fault, fault]
    assert fetch() == toy.content
    assert len(server.sent) == 3
    assert pauses == [1, 2]


@pytest.mark.parametrize(("fault", "reason"), [("500", "500 Server Error"), (100, "IncompleteRead")])
def test_gives_up_after_so_many_attempts(
    server: Server, fetch: Callable[[], bytes], pauses: list[float], fault: int | str, reason: str
) -> None:
    server.faults = [fault] * 9
    with pytest.raises(UnavailableError, match=f"the download of toy.npz failed .*{reason}"):
        fetch()
    assert len(server.sent) == 4
    assert len(pauses) == 3


@pytest.mark.parametrize("terminal", [True, False])
def test_a_progress_bar_on_a_terminal(
    toy: Toy, fetch: Callable[[], bytes], terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    fetch()
    size = len(toy.content)
    assert (f"| {size / 1000:.2f}k/{size / 1000:.2f}k [" in capsys.readouterr().err) == terminal


def test_a_file_that_is_not_there_is_asked_for_once(server: Server, fetch: Callable[[], bytes], pauses: list[float]) -> None:
    server.files.clear()
    with pytest.raises(UnavailableError, match=r"does not offer toy\.npz"):
        fetch()
    assert (server.asked, server.sent, pauses) == (["toy.npz"], [], [])


def test_an_unreachable_server_is_given_up_at_once(toy: Toy, pauses: list[float]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mirror = next(sources(toy.dataset, f"http://127.0.0.1:{port}"))
    start = time.perf_counter()
    with pytest.raises(UnavailableError, match=r"cannot be reached \(ConnectionError\)"), mirror.open():
        pass
    assert time.perf_counter() - start < 5
    assert pauses == []


@pytest.mark.parametrize(
    "mirror",
    [
        *(
            "http://",
            "http://[",
            "HTTP://127.0.0.1:0",
            "http://127.0.0.1:99999",
            "http://a b/",
            f"http://{'a' * 300}/",
            "http://\u202e",
        )
    ],
)
def test_a_url_that_means_nothing_is_an_unreachable_server(toy: Toy, mirror: str) -> None:
    source = next(sources(toy.dataset, mirror))
    assert source.label == "mirror URL"
    with pytest.raises(UnavailableError, match="cannot be reached"), source.open():
        pass


@pytest.mark.parametrize("mirror", ["~nobody_of_this_name/data", "a\0b", "file:///etc", "/dev/null"])
def test_a_mirror_that_is_no_folder(toy: Toy, mirror: str) -> None:
    with pytest.raises(UnavailableError, match="is not a folder"), next(sources(toy.dataset, mirror)).open():
        pass


def test_sources_in_their_order(toy: Toy, server: Server) -> None:
    assert [source.label for source in sources(toy.dataset, toy.folder)] == ["mirror folder", server.url]
    assert [source.label for source in sources(toy.dataset, "https://mirror.example/data")] == ["mirror URL", server.url]
