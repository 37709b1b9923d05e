"""A workflow that is stopped in whatever way goes on when the same command is given again, and ends
with the same numbers.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from feddep.experiment import verification
from workspace import CONFIG, REPOSITORY, SNAKEFILE, Workspace

pytestmark = [pytest.mark.dag, pytest.mark.timeout(900)]
MAKE = [sys.executable, str(REPOSITORY / "workflow" / "run.py"), *SNAKEFILE]
"""What the targets of make call."""
ROUNDS = 150


def wait_for_training(workspace: Workspace, process: subprocess.Popen[str]) -> None:
    """Until the progress bar is there."""
    while not any(
        f"0/{ROUNDS}" in log.read_text() for log in workspace.cache.glob("logs/batches/*.log")
    ):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)


def test_the_same_command_goes_on(tmp_path: Path):
    """After Ctrl-C, and after SIGKILL to Snakemake alone, whose job lives on for a while."""
    workspace = Workspace(tmp_path / "killed", MAKE)
    table = {**CONFIG["tables"][0], "methods": ["fedavg", "local"]}
    changes: dict[str, Any] = {"settings": {"quick": {"rounds": ROUNDS}}, "tables": [table]}
    workspace.configure(**changes)
    prepared = None
    for stop, number in ((os.killpg, signal.SIGINT), (os.kill, signal.SIGKILL)):
        for log in workspace.cache.glob("logs/batches/*.log"):
            log.unlink()
        with workspace.started() as process:
            wait_for_training(workspace, process)
            if number == signal.SIGINT:  # while one works, another is refused
                refused = workspace.run(fails=True)
                assert refused.startswith("feddep: ")
                assert process.poll() is None
            stop(process.pid, number)
            process.wait()
        assert process.returncode != 0
        (graph,) = workspace.cache.glob("graphs/*.safetensors")
        assert prepared in (None, graph.stat().st_ino)
        prepared = graph.stat().st_ino
    workspace.run()
    assert graph.stat().st_ino == prepared  # what was done is not done again
    assert (
        len(list(workspace.cache.glob("runs/*")))
        == len(list(workspace.cache.glob("models/*")))
        == 2
    )
    for method in ("fedavg", "local"):
        run = workspace.runs[method]
        anew = verification.Trainer(workspace.config, tmp_path / "anew").record(run)
        assert verification.differences(workspace.config, anew, run) == {}
    assert workspace.jobs(**changes) == {}
