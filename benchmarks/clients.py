"""Time and memory of a round over the number of clients, from 10 to 1,000.

    python -m benchmarks.clients --graphs results/graphs --datasets pubmed coauthor_physics

METIS parts, in the setting of the field's comparison.  A round's time is the median after the first
ones, the set-up's that from the graph in memory to the first round, both in seconds of the
processor; peak memory is by how much the resident set grows above what it is with the graph alone,
in a process for each number.
"""

import dataclasses
import itertools
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from benchmarks import memory, rounds
from benchmarks.arguments import parser_of
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.partitioners import partition
from feddep.utils.files import write_json, write_text

ROUNDS = 6
CLIENTS = (10, 50, 100, 500, 1000)
MOST = {"fedavg": 1000, "fedgta": 100}
"""Up to how many clients a method is measured: FedGTA's server makes as many means of as many."""


def measured(file: Path, name: str, clients: int, threads: int) -> dict[str, Any]:
    """The row of a method and a number of clients on the graph in a file."""
    torch.set_num_threads(threads)
    graph = Graph.load(file)
    owners = partition(graph, clients, 0, "metis")
    begun, ends = time.process_time(), []

    def train() -> None:
        task = rounds.task_of(graph, name, owners)
        task = dataclasses.replace(task, setting=task.setting.replace(rounds=ROUNDS))
        rounds.run(task, True, lambda _: ends.append(time.process_time()))

    grown = memory.growth(train)
    each = [end - start for start, end in itertools.pairwise(ends)]
    a_round = statistics.median(each[rounds.WARM :])
    return {
        "clients": clients,
        "method": name,
        "round_s": round(a_round, 3),
        "setup_s": round(ends[0] - begun - a_round, 2),
        "peak_mib": round(grown),
    }


def main() -> None:
    """Measure the graphs and write ``clients.csv``."""
    parser = parser_of(__doc__)
    parser.add_argument("--clients", nargs="+", type=int, default=list(CLIENTS))
    arguments = parser.parse_args()
    rows = []
    apart = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)
    for dataset, clients, name in itertools.product(arguments.datasets, arguments.clients, MOST):
        if clients > MOST[name]:
            continue
        file = arguments.graphs / f"{dataset}.safetensors"
        row = apart.submit(measured, file, name, clients, arguments.threads).result()
        rows.append({"dataset": dataset, **row})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    write_text(arguments.output / "clients.csv", table.to_csv(index=False))
    provenance = environment("cpu", arguments.threads)
    write_json(arguments.output / "clients.provenance.json", provenance)


if __name__ == "__main__":
    main()
