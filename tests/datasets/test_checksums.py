"""Checksums, and the words in which a wrong file is described."""

from pathlib import Path

import pytest

from feddep.datasets.checksums import mismatch

TEXT = b"test content\n"
SHA256 = "a1fff0ffefb9eace7230c24e50731f0a91c62f9cefdfe77121c2f607125dffae"
GIT_BLOB = "d670460b4b4aece5915caf5c68d12f560a9fe3e4"  # the example of the book "Pro Git", section 10.2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(TEXT)
    return tmp_path / "file"


@pytest.mark.parametrize("checksum", [f"sha256:{SHA256}", f"git-blob:{GIT_BLOB}"])
def test_any_one_checksum_suffices(path: Path, checksum: str) -> None:
    assert mismatch(path, [checksum]) is None
    assert mismatch(path, ["sha256:" + "0" * 64, checksum]) is None
    path.write_bytes(TEXT + b"!")
    assert mismatch(path, [checksum]) is not None


def test_a_wrong_file_is_described(path: Path) -> None:
    problem = mismatch(path, ["sha256:" + "0" * 64, "git-blob:" + "1" * 40])
    assert problem is not None
    for part in ("file", "13 bytes", SHA256[:12], "sha256:0000", "git-blob:1111"):
        assert part in problem


def test_without_a_checksum_any_file_is_right(path: Path) -> None:
    assert mismatch(path, []) is None
    assert mismatch(path.with_name("absent"), []) == "absent is missing"


def test_a_missing_file_is_described(tmp_path: Path) -> None:
    assert mismatch(tmp_path / "absent", [f"sha256:{SHA256}"]) == "absent is missing"
