"""Lists of checksums: what they say of files is checked, and so are they."""

import shutil
import subprocess
from pathlib import Path

import pytest

from feddep.utils.checksum_lists import find_mismatch, write_list


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A list of two files, one of them elsewhere."""
    (tmp_path / "tables").mkdir()
    files = [tmp_path / "tables" / "a.csv", tmp_path / "b.svg"]
    for file in files:
        file.write_text(file.name)
    write_list(tmp_path / "tables" / "a.sha256", files)
    return tmp_path / "tables" / "a.sha256"


def test_what_was_written_is_right(listed: Path):
    assert find_mismatch(listed) is None
    assert listed.read_text().splitlines()[-1] == "# 2 files"


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_sha256sum_understands_it(listed: Path):
    command = ["sha256sum", "--check", "--strict", listed.name]
    done = subprocess.run(command, cwd=listed.parent, capture_output=True, text=True, check=True)
    assert done.stdout == "a.csv: OK\n../b.svg: OK\n"


def test_a_changed_or_missing_file_is_named(listed: Path):
    (listed.parent.parent / "b.svg").write_text("else")
    assert "b.svg is not what a.sha256 says" in (find_mismatch(listed) or "")
    (listed.parent / "a.csv").unlink()
    assert "names a file that is gone" in (find_mismatch(listed) or "")


def test_a_list_of_another_key_is_told(listed: Path):
    assert "something else" in (find_mismatch(listed, "ab12") or ""), "it has no key"
    write_list(listed, [listed.parent / "a.csv"], "ab12")
    assert listed.read_text().splitlines()[-1] == "# 1 files, key ab12"
    assert find_mismatch(listed) is None
    assert find_mismatch(listed, "ab12") is None
    assert "something else" in (find_mismatch(listed, "cd34") or "")


def test_no_list_that_is_cut_off_passes(listed: Path):
    content = listed.read_bytes()
    for length in range(len(content)):
        listed.write_bytes(content[:length])
        assert find_mismatch(listed), length
