"""What a job that trains takes before its first step: without PyTorch's compiler beside with it.

    python -m benchmarks.startup --output benchmarks/results

A process loads the classifier stage's modules, makes an optimiser and takes one step of one weight.  The two alternate.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from benchmarks.memory import growth
from feddep.experiment.provenance import environment
from feddep.utils.csv_files import write_csv
from feddep.utils.storage import write_json

JOBS = ("without", "with")
TURNS = 5


def first_step(without: bool) -> None:
    """All that a job does until its first step is taken, but for reading its files."""
    import torch

    import feddep.stages.classify  # noqa: F401
    from feddep.training.learner import OPTIMIZERS

    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = OPTIMIZERS["sgd"]([weight], lr=0.1) if without else torch.optim.SGD([weight], lr=0.1, fused=True)
    weight.sum().backward()
    optimizer.step()


def measured(job: str) -> dict[str, float]:
    """Seconds of a whole process, and by how many MiB its peak memory grew in the first step and all before."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.startup", "--job", job]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"seconds": time.perf_counter() - start, "mib": float(json.loads(output))}


def main() -> None:
    """Measure and write ``startup.csv`` and its provenance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="folder to write to")
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(growth(lambda: first_step(arguments.job == "without"))))
        return
    turns = [{job: measured(job) for job in JOBS} for _ in range(TURNS + 1)][1:]  # the first warms up
    rows = []
    for job in JOBS:
        medians = {what: statistics.median(turn[job][what] for turn in turns) for what in ("seconds", "mib")}
        rows.append({"compiler": job, **medians})
    write_csv(arguments.output / "startup.csv", pd.DataFrame(rows), digits=4)
    write_json(arguments.output / "startup.provenance.json", environment("cpu", 1))
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
