"""Time and peak memory of the main table from nothing: every job of the workflow, by dataset and
stage.

    python -m benchmarks.main_table --clients 5 --seeds 0

All rows of the first table in config/default.yaml, for the given numbers of clients and seeds,
without any record, in one call of Snakemake.  Seconds are those that each rule's benchmark file
has, peak memory what each job says of itself; a row ``wall`` has the time of the whole call. Beside
them ``costs.csv``, the workflow's table of costs: what each method sends, and its seconds of each
stage without those of starting a process.  The clock is right only where nothing else runs.  With
``--work DIR`` the same command goes on after a crash, and ``wall`` is the time of all calls
together.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.arguments import add_work, work_folder
from benchmarks.workflow import jobs, snakemake
from feddep.config.loading import load
from feddep.experiment.provenance import environment
from feddep.utils.csv_files import write_csv
from feddep.utils.files import read_json, write_json

CONFIG = Path(__file__).parent.parent / "config" / "default.yaml"


def configuration(
    output: Path, datasets: list[str], clients: list[int], seeds: list[int]
) -> dict[str, Any]:
    """What is changed in config/default.yaml."""
    table = {**load(CONFIG)["tables"][0], "datasets": datasets}
    what = {"clients": clients, "seeds": seeds, "tables": [table], "studies": []}
    return {"output": str(output), "records": {"use": False}, **what}


def summary(done: pd.DataFrame, wall: float) -> pd.DataFrame:
    """A row a dataset, stage and method: number of jobs, their seconds together, and the peak
    memory of the largest.
    """
    groups = done.groupby(["dataset", "stage", "method"], sort=False)
    table = groups.agg(
        jobs=("seconds", "size"), seconds=("seconds", "sum"), peak_mib=("peak_mib", "max")
    ).reset_index()
    whole = {
        "dataset": "all",
        "stage": "wall",
        "method": "",
        "jobs": len(done),
        "seconds": wall,
        "peak_mib": done["peak_mib"].max(),
    }
    return pd.concat([table, pd.DataFrame([whole])], ignore_index=True)


def timed(command: list[str], clock: Path, every: float = 10.0) -> float:
    """Run a command; the seconds of it and of all its calls before, which a file has.

    The file is written every so many seconds, so that a call that is killed counts up to then.

    Raises:
        subprocess.CalledProcessError: the command failed; its seconds are in the file all the same.

    """
    before = read_json(clock)["seconds"] if clock.exists() else 0.0
    start = time.perf_counter()
    with subprocess.Popen(command) as process:
        while process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=every)
            seconds = before + time.perf_counter() - start
            write_json(clock, {"seconds": seconds})
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds


def main() -> None:
    """Measure, and write ``main_table.csv``, ``costs.csv`` and their provenance."""
    config = load(CONFIG)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument("--datasets", nargs="+", default=config["tables"][0]["datasets"])
    parser.add_argument(
        "--clients", type=int, nargs="+", default=config["clients"], help="numbers of clients"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=config["seeds"])
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="jobs at a time")
    add_work(parser)
    arguments = parser.parse_args()
    with work_folder(arguments.work) as work:
        output, changes = work / "results", work / "config.json"
        write_json(
            changes, configuration(output, arguments.datasets, arguments.clients, arguments.seeds)
        )
        wall = timed(
            snakemake(output / "main/accuracy.csv", changes, arguments.cores), work / "clock.json"
        )
        table = summary(jobs(output), wall)
        arguments.output.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(output / "main/costs.csv", arguments.output / "costs.csv")
    write_csv(arguments.output / "main_table.csv", table, digits=4)
    asked = {"clients": arguments.clients, "seeds": arguments.seeds, "cores": arguments.cores}
    write_json(arguments.output / "main_table.provenance.json", {**environment("cpu", 1), **asked})
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
