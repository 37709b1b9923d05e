"""What a workflow that lives, or was killed, looks like to the next one and to its own jobs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from feddep.utils import workflow_lock
from feddep.utils.errors import WorkflowEndedError
from feddep.utils.storage import write_text

HOLD = """
import os, sys
from pathlib import Path
from feddep.utils import workflow_lock

print(workflow_lock.hold(Path(sys.argv[1])), os.environ.get(workflow_lock.ENVIRONMENT), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the locks that a workflow of Snakemake has, or has left."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "0.output.lock").write_text("results/a.json\n")
    return tmp_path


@contextmanager
def workflow(folder: Path) -> Iterator[tuple[subprocess.Popen[str], bool, str]]:
    """A process that holds a folder, whether it was alone, and what it tells its jobs."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        alone, _, told = process.stdout.readline().strip().partition(" ")
        try:
            yield process, alone == "True", told
        finally:
            process.kill()


def is_locked(folder: Path) -> bool:
    return bool(list((folder / "locks").iterdir()))


def test_locks_of_a_killed_workflow_are_cleared_with_a_line(folder: Path):
    with workflow(folder) as (process, alone, _):
        process.kill()
        _, printed = process.communicate()
    assert alone
    assert not is_locked(folder)
    assert printed == "feddep: the workflow that locked this folder was killed; its lock is removed and its work goes on\n"


def test_locks_of_a_living_workflow_stay(folder: Path):
    with workflow(folder) as (_, first, _):
        (folder / "locks" / "0.output.lock").write_text("results/a.json\n")
        with workflow(folder) as (process, second, _):
            assert (first, second) == (True, False)
            assert is_locked(folder)
            process.kill()
            assert process.communicate()[1] == ""
    with workflow(folder) as (_, alone, _):
        assert alone
        assert not is_locked(folder)


@pytest.mark.parametrize(
    ("machine", "cleared"),
    [
        ("elsewhere 0-0-0", False),
        (workflow_lock._machine().split()[0] + " 0-0-0", True),  # started anew, after a power loss
        ("container " + workflow_lock._machine().split()[-1], True),
    ],
)
def test_locks_of_another_machine_stay(folder: Path, machine: str, cleared: bool):
    (folder / "workflows.lock").write_text(f"{machine}\n")
    for _ in range(2):
        with workflow(folder) as (_, alone, _):
            assert alone
            assert is_locked(folder) != cleared
    (folder / "locks" / "0.output.lock").unlink(missing_ok=True)  # as `snakemake --unlock` does
    with workflow(folder):
        (folder / "locks" / "0.output.lock").write_text("results/a.json\n")
    with workflow(folder):
        assert not is_locked(folder)


def test_a_stage_of_a_workflow_that_has_ended_writes_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "results" / "a.json"
    with workflow(folder) as (process, _, told), workflow(folder):
        monkeypatch.setenv(workflow_lock.ENVIRONMENT, told)
        write_text(target, "while it lives")
        process.kill()
        process.communicate()  # another lives in its folder
        with pytest.raises(WorkflowEndedError, match="has ended"):
            write_text(target, "late")
    assert target.read_text() == "while it lives"
    assert os.listdir(target.parent) == ["a.json"]
    monkeypatch.setenv(workflow_lock.ENVIRONMENT, json.dumps({**json.loads(told), "machine": "elsewhere 0-0-0"}))
    write_text(target, "as a cluster's job on another machine")
    monkeypatch.delenv(workflow_lock.ENVIRONMENT)
    write_text(target, "by hand")


def test_a_killed_workflow_is_gone_before_it_is_reaped(folder: Path, monkeypatch: pytest.MonkeyPatch):
    with workflow(folder) as (process, _, told):
        monkeypatch.setenv(workflow_lock.ENVIRONMENT, told)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert workflow_lock.ended()
