"""Time of FedDEP's stages beside that of its classifier: does training the generators dominate?

    python -m benchmarks.stages --graphs results/graphs --output benchmarks/results

One run of FedDEP and one of its ablation without prototypes for each graph, 5 clients, in one
process, with the parameters of config/default.yaml.  What the stages read from files elsewhere is
at hand here, so the times are those of the work alone.
"""

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from benchmarks.arguments import parser_of
from feddep.config.loading import load
from feddep.experiment import plan
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, louvain
from feddep.graph.split import Split, random_split
from feddep.methods import registry
from feddep.methods.method import StepResult
from feddep.training.task import RunResult
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

CONFIG = Path(__file__).parent.parent / "config" / "default.yaml"
CLIENTS, SEED = 5, 0
METHODS = ("fedavg", "feddep", "feddep_wo_proto")


def seconds_of(
    specification: dict[str, Any],
    graph: Graph,
    partition: Partition,
    split: Split,
    device: str = "cpu",
) -> tuple[dict[str, float], RunResult]:
    """Seconds of each stage of a run, and what came out."""
    task = build_task(specification, graph, split, partition, "", device)
    method, parameters = registry.configured(specification["method"])
    results: dict[str, StepResult] = {}
    seconds = {}
    for step in method.steps(parameters):
        start = time.perf_counter()
        results[step.stage] = step.run(task, parameters, results)
        seconds[step.stage] = time.perf_counter() - start
    start = time.perf_counter()
    result = method.run(dataclasses.replace(task, step_results=results), parameters)
    return {**seconds, "classify": time.perf_counter() - start}, result


def measure(arguments: argparse.Namespace) -> pd.DataFrame:
    """A row a graph and method: seconds of each stage, and the generator's share of the
    classifier's time.
    """
    config = load(CONFIG)
    rows = []
    for dataset in arguments.datasets:
        graph = Graph.load(arguments.graphs / f"{dataset}.safetensors")
        partition = louvain(graph, CLIENTS, SEED, config["partition"]["delta"])
        for method in METHODS:
            specification = plan.one_run(
                config, method, CLIENTS, SEED, dataset=dataset
            ).specification
            split = random_split(graph.num_nodes, specification["split"], SEED)
            seconds, _ = seconds_of(specification, graph, partition, split)
            ratio = seconds["generator"] / seconds["classify"] if "generator" in seconds else None
            rows.append(
                {"dataset": dataset, "method": method, **seconds, "generator / classify": ratio}
            )
    stages = ["pretrain", "prototypes", "generator", "classify"]
    return pd.DataFrame(rows)[["dataset", "method", *stages, "generator / classify"]]


def main() -> None:
    """Measure and write ``stages.csv`` and its provenance."""
    arguments = parser_of(__doc__).parse_args()
    torch.set_num_threads(arguments.threads)
    table = measure(arguments)
    write_csv(arguments.output / "stages.csv", table, digits=4)
    write_json(arguments.output / "stages.provenance.json", environment("cpu", arguments.threads))
    print(table.to_string(index=False), file=sys.stderr)


if __name__ == "__main__":
    main()
