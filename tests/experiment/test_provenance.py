"""What is noted beside a number: the machine, the packages, the commit."""

import os
import subprocess
from pathlib import Path

import numpy as np

from feddep.experiment.provenance import environment, git_state, processor


def test_environment():
    record = environment("cpu", 2)
    assert (record["packages"]["numpy"], record["device"], record["threads"]) == (
        np.__version__,
        "cpu",
        2,
    )
    assert record["time"].endswith("+00:00")
    assert os.uname().nodename not in str(record)


def git(directory: Path, *arguments: str) -> str:
    identity = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-c",
        "core.hooksPath=/dev/null",
    ]
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_git_state(tmp_path: Path):
    assert git_state(tmp_path) == {"commit": None, "dirty": None}
    git(tmp_path, "init", "--quiet")
    (tmp_path / "feddep").mkdir()
    (tmp_path / "feddep" / "a.py").write_text("a = 1\n")
    git(tmp_path, "add", "feddep")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table.csv").write_text("1\n")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}  # results are no code
    (tmp_path / "feddep" / "a.py").write_text("a = 2\n")
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}


def test_the_processor_is_named_where_the_system_says_it(tmp_path: Path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\n")
    assert processor(str(info)) == " (GenuineIntel 6 85)"
    info.write_text("CPU implementer\t: 0x41\n")
    assert processor(str(info)) == processor(str(tmp_path / "none")) == ""
