"""Downloads break off, resume, and give up in time; all against a server on this machine."""

import socket
import time
from pathlib import Path

import pytest
from toys import Server

from feddep.datasets.transfer import CHUNK, TransferError, fetch

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def target(tmp_path: Path, server: Server) -> Path:
    server.files["data.bin"] = CONTENT
    return tmp_path / "cache" / "data.bin"


def test_downloads_a_file(server: Server, target: Path) -> None:
    fetch(server.url + "data.bin", target)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["data.bin"]


def test_a_broken_transfer_resumes_where_it_broke(server: Server, target: Path) -> None:
    server.faults = [6 * CHUNK, 3 * CHUNK + 1]
    fetch(server.url + "data.bin", target, backoff=0)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == [None, f"bytes={6 * CHUNK}-", f"bytes={9 * CHUNK}-"]


def test_the_next_call_resumes_what_the_last_one_left(server: Server, target: Path) -> None:
    server.faults = [6 * CHUNK]
    with pytest.raises(TransferError, match=r"data.bin broke off 1 times"):
        fetch(server.url + "data.bin", target, attempts=1)
    assert not target.exists()
    fetch(server.url + "data.bin", target)
    assert target.read_bytes() == CONTENT
    assert server.requests[-1] == ("data.bin", f"bytes={6 * CHUNK}-")


def test_starts_over_where_the_server_cannot_resume(server: Server, target: Path) -> None:
    server.ranges = False
    server.faults = [6 * CHUNK]
    fetch(server.url + "data.bin", target, backoff=0)
    assert target.read_bytes() == CONTENT


def test_starts_over_where_the_part_is_too_long(server: Server, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("data.bin.part").write_bytes(CONTENT + b"more")
    fetch(server.url + "data.bin", target, backoff=0)
    assert target.read_bytes() == CONTENT


def test_tries_again_after_a_server_error_with_growing_pauses(server: Server, target: Path) -> None:
    server.faults = ["503", "429"]
    start = time.perf_counter()
    fetch(server.url + "data.bin", target, backoff=0.05)
    assert time.perf_counter() - start >= 0.05 + 0.1
    assert target.read_bytes() == CONTENT


def test_gives_up_after_so_many_attempts(server: Server, target: Path) -> None:
    server.faults = ["500"] * 9
    with pytest.raises(TransferError, match=r"broke off 3 times .*500"):
        fetch(server.url + "data.bin", target, attempts=3, backoff=0)
    assert len(server.requests) == 3


def test_a_file_that_is_not_there_is_asked_for_once(server: Server, target: Path) -> None:
    with pytest.raises(TransferError, match=r"404 to other\.bin"):
        fetch(server.url + "other.bin", target.with_name("other.bin"))
    assert len(server.requests) == 1


def test_an_unreachable_server_is_given_up_at_once(target: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = time.perf_counter()
    with pytest.raises(TransferError, match="cannot be reached"):
        fetch(f"http://127.0.0.1:{port}/data.bin", target, backoff=60)
    assert time.perf_counter() - start < 5
