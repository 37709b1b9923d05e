"""A folder in which tests run the workflow on a made-up graph of 60 nodes."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from feddep.config.loading import Config, load, merged
from feddep.experiment import plan, runs
from feddep.methods import plugins

REPOSITORY = Path(__file__).resolve().parents[1]
SNAKEFILE = ["--snakefile", str(REPOSITORY / "workflow" / "Snakefile")]
SNAKEMAKE = [sys.executable, "-m", "snakemake", *SNAKEFILE]
FORKS = multiprocessing.get_context("forkserver")
"""Its processes are forks of one that has imported what Snakemake and the workflow import."""
FORKS.set_forkserver_preload(
    ["snakemake.cli", "workspace", "feddep.experiment.batches", "feddep.reporting.studies"]
)
STEPS = ("pretrain", "prototypes", "generator")
COMPUTING = ("download", "prepare", "split", "partition", *STEPS, "train", "batch")
CONFIG: dict[str, Any] = {
    "output": "out",
    "records": {"directory": "runs", "use": True},
    "device": "cpu",
    "datasets": {
        "mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}
    },
    "clients": [2],
    "seeds": [0],
    "partition": {"delta": 5},
    "settings": {"quick": {"rounds": 2, "hidden_channels": 8}},
    "methods": {"feddep": {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1}},
    "tables": [
        {"setting": "quick", "datasets": ["mini"], "methods": ["global", "fedavg", "feddep"]}
    ],
    "studies": [],
}


def restore_interrupts() -> None:
    """Let SIGINT interrupt: shells without job control, and nohup, start what ignores it, and so do
    children.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def list_gpus(folder: Path, number: int) -> str:
    """A search path whose ``nvidia-smi`` lists so many GPUs, the first one of two slices."""
    folder.mkdir()
    lines = [f"GPU {gpu}: Made-up (UUID: GPU-{gpu})" for gpu in range(number)]
    slices = [f"  MIG 1g.10gb     Device  {part}: (UUID: MIG-{part})" for part in range(2)]
    listed = "\n".join([lines[0], *slices, *lines[1:]])
    command = folder / "nvidia-smi"
    command.write_text(f"#!/bin/sh\ncat <<END\n{listed}\nEND\n")
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def snakemake(printed: Path, arguments: list[str], environment: Mapping[str, str]) -> None:
    """Be the command in the folder of the file that takes its output."""
    from snakemake import cli  # which takes its time

    os.chdir(printed.parent)
    os.environ.clear()
    os.environ.update(environment)
    with printed.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["snakemake", *arguments]  # which targets that are stages are read from
    cli.main(arguments)


class Workspace:
    """A folder in which the workflow is run with a configuration of its own."""

    def __init__(self, folder: Path, command: list[str] = SNAKEMAKE) -> None:
        self.folder, self.command = folder, command
        folder.mkdir(parents=True, exist_ok=True)
        self.configure()

    @property
    def cache(self) -> Path:
        return self.folder / "out" / ".cache"

    def configure(self, **changes: Any) -> None:
        """Write the configuration with some keys changed, merged as Snakemake does."""
        (self.folder / "config.yaml").write_text(
            yaml.safe_dump(merged(CONFIG, changes), sort_keys=False)
        )

    @property
    def config(self) -> Config:
        """The configuration with paths that hold from everywhere."""
        raw = load(REPOSITORY / "config" / "default.yaml", self.folder / "config.yaml")
        places = {
            "output": f"{self.folder}/out",
            "records": {**raw["records"], "directory": f"{self.folder}/runs"},
        }
        return Config({**raw, **places})

    @property
    def runs(self) -> dict[str, plan.Run]:
        """The runs of the main tables by method."""
        return {run.method.label: run for run in plan.runs(self.config)}

    def row(self, method: str) -> pd.Series:
        """What is recorded of a run."""
        return runs.load(self.config, [self.runs[method]]).iloc[0]

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The workflow in a process group of its own, its output in one pipe; killed if it still
        runs at the end.
        """
        process = subprocess.Popen(
            [*self.command, "--cores", "1", *arguments, "--configfile", "config.yaml"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=restore_interrupts,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Run the workflow to the end; returns what it printed."""
        if self.command == SNAKEMAKE:
            status, printed = self._run_in_fork(*arguments)
        else:
            with self.started(*arguments) as process:
                printed, _ = process.communicate()
            status = process.returncode
        assert (status != 0) == fails, printed
        return printed

    def _run_in_fork(self, *arguments: str) -> tuple[int | None, str]:
        """Status and output of Snakemake in a process that need not import it."""
        printed = self.folder / "printed.txt"
        given = [*SNAKEFILE, "--cores", "1", *arguments, "--configfile", "config.yaml"]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = FORKS.Process(target=snakemake, args=(printed, given, environment))
        process.start()
        try:
            process.join()
        finally:
            process.kill()
        return process.exitcode, printed.read_text(encoding="utf-8")

    def jobs(self, *arguments: str, **changes: Any) -> Mapping[str, int]:
        """How many jobs that compute would run, by rule, with some keys of the configuration
        changed; pages are left out.
        """
        self.configure(**changes)
        found = self.planned(*arguments)
        return {rule: count for rule, count in found.items() if rule in COMPUTING}

    def planned(self, *arguments: str) -> Mapping[str, int]:
        """How many jobs would run, by rule."""
        printed = self.run("--dry-run", *arguments)
        _, found, table = printed.partition("Job stats:")
        assert found or "Nothing to be done" in printed, printed
        jobs = re.findall(r"^(\w+) +(\d+)$", table, re.M)
        return {rule: int(count) for rule, count in jobs if rule != "total"}


def forget_plugins() -> None:
    """As in a process that has loaded none."""
    for known in (plugins._LOADED, *plugins.DECLARATIONS.values()):
        known.clear()
