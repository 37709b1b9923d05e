"""The same runs on a GPU and on one core of the CPU beside it, alone and several at a time.

    python -m benchmarks.gpu --datasets cora msacademic --output benchmarks/results/gpu

Few rounds each, 10 clients of communities that igraph finds, steps before the classifier included.
Each run is a process of its own, as a job of the workflow is, on one thread; its seconds are those
between the graph in memory and the last round, after one round that warms up.  Where several run at
a time, all share the GPU, and none waits for another.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from benchmarks.arguments import parser_of
from benchmarks.stages import CONFIG, seconds_of
from feddep.config.loading import load
from feddep.experiment import plan
from feddep.experiment.inputs import split_nodes
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.partitioners import partition
from feddep.training.summary import summary
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

CLIENTS = 10
RUNS = [
    ("feddep,rounds={rounds}", "fedavg"),
    ("feddep,rounds={rounds}", "fedgnn"),
    ("feddep,rounds={rounds}", "fedsage_plus"),
    ("feddep,rounds={rounds}", "feddep,pretraining_epochs={rounds}"),
    ("field,rounds={rounds}", "fedavg"),
]
"""Setting and method."""


def work(arguments: argparse.Namespace) -> None:
    """Do one run after a shorter one that warms up, and print its seconds and accuracy; the work of
    a process.
    """
    torch.set_num_threads(arguments.threads)
    dataset, method, device = arguments.datasets[0], arguments.method, arguments.device
    graph, config = Graph.load(arguments.graphs / f"{dataset}.safetensors"), load(CONFIG)
    divided = partition(graph, CLIENTS, 0, method="louvain", delta=20, engine="igraph")
    for rounds in (1, arguments.rounds):
        run = plan.one_run(
            config,
            method.format(rounds=rounds),
            CLIENTS,
            setting=arguments.setting.format(rounds=rounds),
            dataset=dataset,
        )
        split = split_nodes(run.specification, graph)
        seconds, result = seconds_of(run.specification, graph, divided, split, device)
        if device == "cuda":
            torch.cuda.synchronize()
    reported = summary(result)
    memory = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0.0
    found = {
        "accuracy": reported["accuracy"]["best"],
        "loss": result.curve["loss"][-1],
        "gpu_mib": memory,
    }
    print(json.dumps({"seconds": sum(seconds.values()), **found}))


def measure(
    arguments: argparse.Namespace, dataset: str, setting: str, method: str, device: str, number: int
) -> dict[str, Any]:
    """A row: the mean of so many processes at a time, and how many runs an hour they make."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu",
        "--graphs",
        str(arguments.graphs),
        "--datasets",
        dataset,
    ]
    command += [
        "--rounds",
        str(arguments.rounds),
        "--setting",
        setting,
        "--method",
        method,
        "--device",
        device,
    ]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(number)
    ]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise subprocess.CalledProcessError(1, command)
    found = pd.DataFrame([json.loads(output.splitlines()[-1]) for output in outputs])
    row = {
        "dataset": dataset,
        "setting": setting.partition(",")[0],
        "method": method.partition(",")[0],
        "device": device,
    }
    # The same loss to the last bit.
    same = {"same": bool((found["loss"] == found["loss"][0]).all())}
    speed = {"runs_an_hour": 3600 * number / found["seconds"].mean()}
    return {**row, "at_a_time": number, **found.mean().to_dict(), **same, **speed}


def main() -> None:
    """Measure, and write ``gpu.csv`` and its provenance."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--at-a-time", type=int, nargs="*", default=[4, 16], help="processes at a time, beside 1"
    )
    for hidden in ("--setting", "--method", "--device"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.method:
        work(arguments)
        return
    alone = [
        (dataset, *run, device, 1)
        for dataset in arguments.datasets
        for run in RUNS
        for device in ("cpu", "cuda")
    ]
    several = [
        (dataset, *RUNS[place], device, number)
        for number in arguments.at_a_time
        for dataset in arguments.datasets
        for place in (0, -1)
        for device in ("cuda", "cpu")
    ]
    rows = []
    for what in alone + several:
        rows.append(measure(arguments, *what))
        print(rows[-1], file=sys.stderr, flush=True)
        write_csv(Path(arguments.output) / "gpu.csv", pd.DataFrame(rows), digits=4)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    write_json(
        Path(arguments.output) / "gpu.provenance.json", environment(device, arguments.threads)
    )


if __name__ == "__main__":
    main()
