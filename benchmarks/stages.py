"""Time of FedDEP's stages beside that of its classifier: does training the generators dominate?

    python -m benchmarks.stages --graphs results/graphs --output benchmarks/results

One run of FedDEP and one of its ablation without prototypes for each graph, 5 clients, in one process, with the parameters of
config/config.yaml.  What the stages read from files elsewhere is at hand here, so the times are those of the work alone.
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
from feddep import features, frameworks, plan
from feddep.config import load
from feddep.csv_files import write_csv
from feddep.graph import Graph
from feddep.partition import louvain
from feddep.problem import Problem
from feddep.provenance import environment
from feddep.settings import Setting
from feddep.splits import random_split
from feddep.steps import Made
from feddep.storage import write_json

CONFIG = Path(__file__).parent.parent / "config" / "config.yaml"
CLIENTS, SEED = 5, 0
FRAMEWORKS = ("fedavg", "feddep", "feddep_wo_proto")


def problem_of(config: dict[str, Any], run: plan.Run, graph: Graph) -> Problem:
    """The run's problem, as the stages would read it."""
    specification = plan.specification(config, run)
    return Problem(
        name=run.path,
        graph=dataclasses.replace(graph, features=features.scale(graph.features, specification["dataset"]["features"])),
        split=random_split(graph.num_nodes, specification["split"], SEED),
        partition=louvain(graph, CLIENTS, SEED, config["partition"]["delta"]),
        setting=Setting(**specification["setting"]),
        seed=SEED,
    )


def seconds_of(problem: Problem, options: dict[str, Any]) -> dict[str, float]:
    """Seconds of each stage of a run."""
    module, parameters = frameworks.configured(options)
    made: dict[str, Made] = {}
    seconds = {}
    for step in frameworks.steps(options):
        start = time.perf_counter()
        made[step.stage] = step.make(problem, parameters, made)
        seconds[step.stage] = time.perf_counter() - start
    start = time.perf_counter()
    module.run(dataclasses.replace(problem, made=made), parameters)
    return {**seconds, "classify": time.perf_counter() - start}


def measure(arguments: argparse.Namespace) -> pd.DataFrame:
    """A row a graph and framework: seconds of each stage, and the generator's share of the classifier's time."""
    config = load(CONFIG)
    setting = next(iter(config["settings"]))
    rows = []
    for dataset in arguments.datasets:
        graph = Graph.load(arguments.graphs / f"{dataset}.safetensors")
        for framework in FRAMEWORKS:
            run = plan.Run(setting, dataset, CLIENTS, framework, SEED)
            seconds = seconds_of(problem_of(config, run, graph), plan.specification(config, run)["framework"])
            ratio = seconds["generator"] / seconds["classify"] if "generator" in seconds else None
            rows.append({"dataset": dataset, "framework": framework, **seconds, "generator / classify": ratio})
    stages = ["pretrain", "prototypes", "generator", "classify"]
    return pd.DataFrame(rows)[["dataset", "framework", *stages, "generator / classify"]]


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
