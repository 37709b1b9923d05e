"""A workflow that is stopped in whatever way goes on when the same command is given again, and makes the same bytes."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from trials import number_of

from feddep.utils.workflow_lock import ENDED
from workspace import CONFIG, FEDAVG, SNAKEMAKE, Workspace, metrics, restore_interrupts

pytestmark = [pytest.mark.dag, pytest.mark.slow, pytest.mark.timeout(2400)]

CHANGES: dict[str, Any] = {
    "methods": {"fedsage_plus": {}},  # which has a step
    "tables": [{**CONFIG["tables"][0], "methods": ["fedsage_plus"]}],
}
UNLIKE = ["tables/provenance.json", "tables/costs.md", "tables/tables.sha256"]  # hold seconds and dates, or digests of them
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]
CLEARED = "feddep: the workflow that locked this folder was killed; its lock is removed and its work goes on"
LOCKED = "Directory cannot be locked"


class Started:
    """Snakemake in a process group of its own, its output in a file, which may outlive it."""

    def __init__(self, workspace: Workspace, *arguments: str) -> None:
        self.file = workspace.directory / "printed.txt"
        with self.file.open("w") as output:
            self.process = subprocess.Popen(
                [*SNAKEMAKE, *arguments, "--cores", "1", "--configfile", "config.yaml"],
                cwd=workspace.directory,
                env={**os.environ, "PYTHONPATH": str(workspace.directory)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=restore_interrupts,
            )

    @property
    def printed(self) -> str:
        return self.file.read_text(errors="replace")

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, condition: Any, seconds: float = 120) -> None:
        """Until the condition holds or the process has ended."""
        end = time.monotonic() + seconds
        while self.lives and not condition():
            assert time.monotonic() < end, self.printed
            time.sleep(0.01)

    def end(self) -> int:
        """Wait for the end; returns the exit status."""
        try:
            return self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still runs after two minutes:\n{self.printed}")

    def kill(self) -> None:
        """Kill all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def started(workspace: Workspace, *arguments: str) -> Iterator[Started]:
    snakemake = Started(workspace, *arguments)
    try:
        yield snakemake
    finally:
        snakemake.kill()


def finish(workspace: Workspace, *arguments: str) -> str:
    """Run the command to its end; returns what it printed."""
    with started(workspace, *arguments) as snakemake:
        assert snakemake.end() == 0, snakemake.printed
        return snakemake.printed


def results(workspace: Workspace) -> dict[str, Any]:
    """Every file that was made, but for logs, and for the seconds and dates in what is compared."""
    found: dict[str, Any] = {}
    for path in sorted(workspace.output.rglob("*")):
        name = path.relative_to(workspace.output).as_posix()
        if path.is_dir() or name.startswith(("logs/", "benchmarks/")) or name in UNLIKE:
            continue
        if name == "tables/costs.csv":
            table = pd.read_csv(path)
            found[name] = table.drop(columns=[column for column in table if column.startswith("seconds")]).to_csv()
        elif path.suffix == ".json":
            content = json.loads(path.read_text())
            found[name] = {key: value for key, value in content.items() if key not in ("provenance", "digest")}
        else:
            found[name] = path.read_bytes()
    return found


def begin_anew(workspace: Workspace) -> None:
    shutil.rmtree(workspace.output)
    shutil.rmtree(workspace.directory / ".snakemake")


def placed(output: Path) -> set[tuple[Path, int]]:
    """The results that are in place, with the time of their writing."""
    found = set()
    for path in output.glob("*/**/*.json"):
        with suppress(FileNotFoundError):
            found.add((path, path.stat().st_mtime_ns))
    return found


def wait_for_a_random_moment(snakemake: Started, output: Path, random: np.random.Generator) -> str:
    """Of the start, of a job, or just after a file was put in place; returns what Snakemake has been doing then."""
    before, jobs = placed(output), random.integers(1, 3)
    condition, seconds = {
        "start": (lambda: True, random.uniform(0.2, 2.5)),
        "job": (lambda: snakemake.printed.count("\nJob ") >= jobs, random.uniform(0, 1.5)),
        "file": (lambda: placed(output) - before, random.choice([0, 0.003, 0.03, 0.1])),
    }[random.choice(["start", "job", "job", "file"])]
    snakemake.wait_for(condition)
    with suppress(subprocess.TimeoutExpired):
        snakemake.process.wait(timeout=seconds)
    printed = snakemake.printed
    if "Building DAG" not in printed:
        return "starting"
    jobs_so_far = re.findall(r"^(?:Job \d+: (\w+).*|Finished jobid.*)$", printed, re.MULTILINE)
    return (jobs_so_far[-1] or "between jobs") if jobs_so_far else "planning"


def test_the_same_command_goes_on(tmp_path: Path):
    """After any signal to all processes or the scheduler alone; kills add up until all is made, then it is current_round anew."""
    workspace = Workspace.new(tmp_path)
    workspace.configure(**CHANGES)
    finish(workspace, "tables")
    expected = results(workspace)
    begin_anew(workspace)

    random = np.random.default_rng(0)
    kills = random.permutation([(number, group) for number in SIGNALS for group in (1, 0)] * number_of("kills")).tolist()
    hits: Counter[str] = Counter()
    current_round = []
    try:
        while kills:
            snakemake = Started(workspace, "tables")
            current_round.append(snakemake)
            doing = wait_for_a_random_moment(snakemake, workspace.output, random)
            killed = snakemake.lives
            if killed:
                number, group = kills.pop()
                (os.killpg if group else os.kill)(snakemake.process.pid, number)
                hits[f"{signal.Signals(number).name} to {'the group' if group else 'the scheduler'}, {doing}"] += 1
            status = snakemake.end()
            assert killed or status == 0, snakemake.printed
            if status == 0:
                assert results(workspace) == expected
                begin_anew(workspace)
        printed = finish(workspace, "tables")
    finally:
        for snakemake in current_round:
            snakemake.kill()
    assert results(workspace) == expected, printed
    assert not [path for path in workspace.output.rglob("*") if path.name.startswith(".")]  # no scratch file is left
    print("\n".join(f"{count} {what}" for what, count in sorted(hits.items())))


FOREVER = 1_000_000
"""Rounds that do not end while a test runs."""


@contextmanager
def in_training(workspace: Workspace) -> Iterator[Started]:
    """A workflow with one job, which trains without an end."""
    log = workspace.output / "logs" / "classify" / "quick" / f"{FEDAVG}.log"
    workspace.configure(settings__quick__rounds=FOREVER)
    with started(workspace, metrics(FEDAVG)) as snakemake:
        snakemake.wait_for(lambda: log.exists() and f"/{FOREVER}" in log.read_text())
        assert snakemake.lives, snakemake.printed
        yield snakemake


def locks(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in (workspace.directory / ".snakemake" / "locks").iterdir())


def test_a_lock_holds_as_long_as_its_workflow_lives(tmp_path: Path):
    """And no job outlives it; a dry run leaves the lock alone."""
    workspace = Workspace.new(tmp_path)
    with in_training(workspace) as snakemake:
        held = locks(workspace)
        assert held
        printed = workspace.run(metrics(FEDAVG), fails=True)
        assert LOCKED in printed
        assert CLEARED not in printed
        assert snakemake.lives
        before = placed(workspace.output)

        snakemake.process.kill()
        snakemake.process.wait()
        end = time.monotonic() + 60
        while ENDED not in snakemake.printed:
            assert time.monotonic() < end, snakemake.printed
            time.sleep(0.05)
    assert placed(workspace.output) == before
    assert not list(workspace.output.rglob("metrics.json"))
    assert not [path for path in workspace.output.rglob("*") if path.name.startswith(".")]

    assert CLEARED not in workspace.run("--dry-run", metrics(FEDAVG))
    assert locks(workspace) == held
    workspace.configure()
    printed = workspace.run(metrics(FEDAVG))
    assert printed.count(CLEARED) == 1
    assert len(workspace.result(FEDAVG)["result"]["curve"]["round"]) == 2


def test_metadata_that_a_power_loss_damaged_is_no_reason_to_keep_a_result(tmp_path: Path):
    """Snakemake ignores it, and would not see that the configuration has changed."""
    workspace = Workspace.new(tmp_path)
    split = "out/splits/mini/seed0.safetensors"
    workspace.run(split)
    (record,) = (workspace.directory / ".snakemake" / "metadata").glob(base64.urlsafe_b64encode(split.encode()).decode())
    record.write_bytes(b"")
    assert workspace.jobs(split) == {"split": 1}


TERMINATED_AT_A_JOBS_END = """
import os, signal, sys
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

finish_jobs = JobScheduler._finish_jobs

def finish_and_terminate(self):
    if self._tofinish:
        os.kill(os.getpid(), signal.SIGTERM)
    finish_jobs(self)

JobScheduler._finish_jobs = finish_and_terminate
main(sys.argv[1:])
"""


def test_sigterm_while_a_job_is_finished_does_not_hang(tmp_path: Path):
    """The scheduler then holds a lock that Snakemake's handler of the signal takes as well."""
    workspace = Workspace.new(tmp_path)
    command = [sys.executable, "-c", TERMINATED_AT_A_JOBS_END, "out/splits/mini/seed0.safetensors", "--configfile", "config.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(workspace.directory)}
    done = subprocess.run(command, cwd=workspace.directory, env=environment, timeout=120, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Will exit after finishing currently running jobs" in done.stderr
