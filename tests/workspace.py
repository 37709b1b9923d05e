"""A folder in which tests run the workflow on a made-up graph of 60 nodes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from feddep.config.loading import MEASURED

REPOSITORY = Path(__file__).resolve().parents[1]
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
CONFIG: dict[str, Any] = {
    "output": "out",
    "records": {"directory": "records", "use": True},
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}},
    "clients": [2],
    "seeds": [0],
    "partition": {"delta": 5},
    "settings": {"quick": {"rounds": 2, "hidden_channels": 8}},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["global", "fedavg"]}],
    "studies": [],
    **{key: [] for key in MEASURED},
}
FEDDEP: dict[str, Any] = {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1}
FEDAVG, GLOBAL = "mini/m2/fedavg/seed0", "mini/whole/global/seed0"


def metrics(run: str) -> str:
    """Where the result of a run is."""
    return f"out/runs/quick/{run}/metrics.json"


def restore_interrupts() -> None:
    """Let SIGINT and SIGHUP interrupt: shells without job control, and nohup, start what ignores them, and so do children."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Workspace:
    """A folder with a copy of the code, in which the workflow is run with a configuration of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.snakemake = SNAKEMAKE
        self.configure()

    @classmethod
    def new(cls, directory: Path, source: Path = REPOSITORY) -> "Workspace":
        """A workspace with the code of ``source``, before anything was made."""
        for name in ("feddep", "workflow", "config"):
            shutil.copytree(source / name, directory / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        return cls(directory)

    @property
    def output(self) -> Path:
        return self.directory / "out"

    def configure(self, **changes: Any) -> None:
        """Write the configuration with some keys changed: ``settings__quick__rounds=3``."""
        config = json.loads(json.dumps(CONFIG))
        for path, value in changes.items():
            *parents, last = path.split("__")
            place = config
            for parent in parents:
                place = place[parent]
            place[last] = value
        self.write(config)

    def write(self, config: dict[str, Any]) -> None:
        """Write a whole configuration."""
        (self.directory / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Snakemake in a process group of its own, its output in one pipe; killed if it still runs at the end."""
        command = [*self.snakemake, *arguments, "--configfile", "config.yaml"]
        environment = {**os.environ, "PYTHONPATH": str(self.directory)}
        process = subprocess.Popen(
            command,
            cwd=self.directory,
            env=environment,
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
        """Run Snakemake to the end; returns what it printed."""
        with self.started(*arguments) as process:
            printed, _ = process.communicate()
        assert (process.returncode != 0) == fails, printed
        return printed

    def jobs(self, *arguments: str) -> dict[str, int]:
        """How many jobs of each rule would run now."""
        printed = self.run("--dry-run", *arguments)
        _, found, table = printed.partition("Job stats:")
        assert found or "Nothing to be done" in printed, printed
        return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE) if rule != "total"}

    def result(self, run: str) -> dict[str, Any]:
        return json.loads((self.directory / metrics(run)).read_text())

    def tables(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.output / "tables").iterdir())}
