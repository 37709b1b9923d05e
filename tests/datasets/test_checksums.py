"""Digests, and the words in which a wrong file is described."""

from pathlib import Path

import pytest

from feddep.datasets.checksums import RawFile, git_blob, objection, sha256

TEXT = b"test content\n"
SHA256 = "a1fff0ffefb9eace7230c24e50731f0a91c62f9cefdfe77121c2f607125dffae"
GIT_BLOB = "d670460b4b4aece5915caf5c68d12f560a9fe3e4"  # the example of the book "Pro Git", section 10.2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(TEXT)
    return tmp_path / "file"


def test_digests_are_those_of_other_tools(path: Path) -> None:
    assert sha256(path) == SHA256
    assert git_blob(path) == GIT_BLOB


@pytest.mark.parametrize("digest", [f"sha256:{SHA256}", f"git-blob:{GIT_BLOB}"])
def test_any_one_digest_suffices(path: Path, digest: str) -> None:
    assert objection(path, RawFile("file", (digest,))) is None
    assert objection(path, RawFile("file", ("sha256:" + "0" * 64, digest))) is None


def test_a_wrong_file_is_described(path: Path) -> None:
    problem = objection(path, RawFile("file", ("sha256:" + "0" * 64, "git-blob:" + "1" * 40)))
    assert problem is not None
    for part in ("file", "13 bytes", SHA256[:12], "sha256:0000", "git-blob:1111"):
        assert part in problem


def test_a_missing_file_is_described(tmp_path: Path) -> None:
    assert objection(tmp_path / "absent", RawFile("absent", (f"sha256:{SHA256}",))) == "absent is missing"
