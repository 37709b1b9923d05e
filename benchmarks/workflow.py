"""Calls of Snakemake that benchmarks time, and what its jobs took."""

import re
import sys
from pathlib import Path

import pandas as pd

from feddep.utils.files import read_json

STAGES = ["prepare", "split", "partition", "pretrain", "prototypes", "generator", "train"]
"""Those that Snakemake measures, in the order of the DAG."""

PEAK = re.compile(r"peak memory (\d+) MiB")
"""What a job writes into its log at its end."""


def snakemake(target: Path | str, config: Path, cores: int = 1) -> list[str]:
    """A call of Snakemake that makes a file, with a configuration over that of the project.

    It takes no lock, which a killed call would leave behind: what it makes is in a folder of its
    own.
    """
    files = [str(target), "--configfile", str(config), "--nolock"]
    return [sys.executable, "-m", "snakemake", *files, "--cores", str(cores), "--quiet", "all"]


def jobs(output: Path) -> pd.DataFrame:
    """A row a finished job: dataset, stage, seconds, cpu_seconds, peak memory in MiB, and the
    method of one training.

    Rows are in the order of :data:`STAGES`.  Several runs in one process are a row of the stage
    ``train`` without a method.
    """
    rows = []
    for path in sorted((output / ".cache" / "benchmarks").rglob("*.tsv")):
        (log,) = (output / ".cache" / "logs").rglob(f"{path.parent.name}/{path.stem}.log")
        measured, stage = pd.read_csv(path, sep="\t").iloc[0], path.parent.name
        trained = (
            read_json(output / ".cache" / "runs" / f"{path.stem}.json")["row"]
            if stage == "train"
            else {}
        )
        rows.append(
            {
                "dataset": trained.get("dataset") or path.stem.partition("-")[0],
                "stage": "train" if stage == "batches" else stage,
                "method": trained.get("method", ""),
                "seconds": float(measured["s"]),
                "cpu_seconds": float(measured["cpu_time"]),
                "peak_mib": float(PEAK.findall(log.read_text())[-1]),
            }
        )
    return pd.DataFrame(rows).sort_values(
        "stage", key=lambda stage: stage.map(STAGES.index), kind="stable"
    )
