"""Kill the workflow at random moments, and give the same command again until it ends: all tables
must be those of a workflow that was left alone.

    python -m benchmarks.kills --kills 30 --config 'seeds=[0]'

In turn the whole process group, Snakemake alone, whose jobs live on, and one process of a job are
killed by SIGKILL.  Where a command ends before its kill, its tables are compared and the next one
begins in a new folder.  Columns of seconds are left out.  The exit status is 1 where a table
differs or a command fails that nothing has disturbed.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from benchmarks.arguments import add_work, work_folder

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("group", "snakemake", "job")


def tables(folder: Path) -> dict[str, str]:
    """The text of every table below a folder by its path, without columns of seconds."""
    read = {path: pd.read_csv(path, dtype=str) for path in sorted(folder.glob("*/*.csv"))}
    return {
        str(path.relative_to(folder)): table.loc[
            :, ~table.columns.str.startswith("seconds")
        ].to_csv()
        for path, table in read.items()
    }


def kill(process: subprocess.Popen[bytes], kind: str, rng: np.random.Generator) -> bool:
    """Kill what ``kind`` says of a workflow; False if it ended before."""
    while kind == "job" and process.poll() is None:
        running = psutil.Process(process.pid).children(recursive=True)
        if jobs := [each for each in running if each.name() != "tee"]:
            jobs[rng.integers(len(jobs))].kill()
            return True
        time.sleep(0.05)  # until a job runs
    if process.poll() is not None:
        return False
    (os.killpg if kind == "group" else os.kill)(process.pid, signal.SIGKILL)
    return True


class Life:
    """A folder in which one command is given until it ends."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        script, snakefile = ROOT / "workflow" / "run.py", ROOT / "workflow" / "Snakefile"
        self.command = [sys.executable, str(script), "--snakefile", str(snakefile), *arguments]

    def start(self) -> subprocess.Popen[bytes]:
        """Start the command in a process group of its own; what it prints is added to a log."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def finish(self) -> dict[str, str]:
        """Run the command to its end; its tables.

        Raises:
            subprocess.CalledProcessError: if it fails.
        """
        if status := self.start().wait():
            raise subprocess.CalledProcessError(status, self.command)
        return tables(self.folder / "out")


def main() -> None:
    """Kill, compare, and say how often what was killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--configfile", type=Path, default=ROOT / "config" / "smoke.yaml")
    parser.add_argument("--config", nargs="*", default=[], help="as Snakemake's")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of moments and of what is killed")
    add_work(parser)
    given = parser.parse_args()
    changes = ["--config", "output=out", "records={use: false}", *given.config]
    files = ["--configfile", str(given.configfile.resolve()), "--cores", str(given.cores)]
    rng, done, killed, finished = np.random.default_rng(given.seed), 0, Counter[str](), 0
    with work_folder(given.work) as work:
        start = time.perf_counter()
        wanted = Life(work / "undisturbed", [*files, *changes]).finish()
        seconds = time.perf_counter() - start
        print(f"undisturbed: {seconds:.0f} s, {len(wanted)} tables", flush=True)
        while done < given.kills:
            life, ended = Life(work / f"life{finished}", [*files, *changes]), False
            while done < given.kills and not ended:
                process, kind = life.start(), KINDS[done % len(KINDS)]
                moment = rng.uniform(0, seconds)
                try:
                    if status := process.wait(moment):
                        raise subprocess.CalledProcessError(status, life.command)
                    ended = True
                except subprocess.TimeoutExpired:
                    if kill(process, kind, rng):
                        killed[kind], done = killed[kind] + 1, done + 1
                        print(f"{done}: {kind} after {moment:.1f} s in life{finished}", flush=True)
                    ended = process.wait() == 0
            if life.finish() != wanted:
                sys.exit(f"tables in {life.folder} differ from those of the undisturbed workflow")
            finished += 1
    print(f"killed: {dict(killed)}; {finished} workflows ended with equal tables")


if __name__ == "__main__":
    main()
