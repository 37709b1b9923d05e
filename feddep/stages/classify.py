"""Stage ``classify``: one run of one framework, from a graph to accuracies, training curve and bytes sent."""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from feddep import features, frameworks, plan
from feddep.errors import ConfigError, DataError
from feddep.graph import Graph
from feddep.partition import Partition
from feddep.problem import Outcome, Problem
from feddep.provenance import environment
from feddep.settings import Setting
from feddep.splits import Split
from feddep.storage import read_json, write_arrays, write_json

HELP = "train and test one framework on one dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--dataset", required=True, help="name of the dataset")
    parser.add_argument("--framework", required=True, help="name of the framework")
    parser.add_argument("--setting", required=True, help="name of the training setting")
    parser.add_argument("--seed", type=int, required=True, help="seed of the run")
    parser.add_argument(
        "--clients", type=int, metavar="M", help="number of clients; none for a framework that sees the whole graph"
    )
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--split", type=Path, required=True, metavar="FILE", help="split to read")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition to read; goes with --clients")
    parser.add_argument("--metrics", type=Path, required=True, metavar="FILE", help="results to write, JSON")
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="weights to write, safetensors")


def main(arguments: argparse.Namespace) -> None:
    """Train, then write the results and the weights at the best round."""
    config = read_json(arguments.config)
    run = plan.Run(arguments.setting, arguments.dataset, arguments.clients, arguments.framework, arguments.seed)
    specification = plan.specification(config, run)
    graph = Graph.load(arguments.graph)
    if "synthetic" not in specification["dataset"] and graph.fingerprint != plan.data_fingerprint(config, run.dataset):
        raise DataError(f"{arguments.graph} is not the {run.dataset} that the registry knows; delete it and run prepare again")
    device = choose_device(config["device"])
    torch.set_num_threads(config["threads"])

    module = frameworks.load(run.framework)
    problem = Problem(
        name=run.path,
        graph=dataclasses.replace(graph, features=features.scale(graph.features, specification["dataset"]["features"])),
        split=Split.load(arguments.split),
        partition=None if arguments.partition is None else Partition.load(arguments.partition),
        setting=Setting(**specification["setting"]),
        seed=run.seed,
        device=device,
    )
    start = time.perf_counter()
    outcome = module.run(problem, module.Parameters(**config["frameworks"][run.framework]))
    seconds = time.perf_counter() - start

    write_arrays(arguments.model, {name: tensor.numpy() for name, tensor in outcome.weights().items()})
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    provenance = {
        **environment(name, config["threads"]),
        "data_fingerprint": graph.fingerprint,
        "seconds": round(seconds, 3),
    }
    result = {"specification": specification, **summary(outcome)}
    write_json(arguments.metrics, {"key": plan.key(config, run), "result": result, "provenance": provenance})


def choose_device(wish: str) -> str:
    """``cpu`` or ``cuda``: what the configuration asks for, or for ``auto`` the GPU where there is one.

    Raises:
        ConfigError: if a GPU is asked for and there is none.
    """
    present = torch.cuda.is_available()
    if wish == "cuda" and not present:
        raise ConfigError("device is cuda, but PyTorch finds no GPU on this machine; set it to auto or cpu")
    return "cuda" if present and wish != "cpu" else "cpu"


def summary(outcome: Outcome) -> dict[str, Any]:
    """The deterministic part of a run's results, ready for JSON; several models are averaged, round by round."""
    histories = outcome.histories

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    def course(of: str) -> list[float]:
        return [mean(values) for values in zip(*(getattr(history, of) for history in histories), strict=True)]

    best_rounds = [history.best_round for history in histories]
    return {
        "accuracy": {"best": mean([h.best_test for h in histories]), "last": mean([h.test[-1] for h in histories])},
        "validation": {"best": mean([max(h.validation) for h in histories]), "last": mean([h.validation[-1] for h in histories])},
        "best_round": best_rounds[0] if len(histories) == 1 else best_rounds,
        "clients": [
            {**facts, "accuracy": {"best": history.best_test, "last": history.test[-1]}}
            for facts, history in zip(outcome.clients, histories, strict=False)
        ],
        "curve": {
            "round": list(range(1, len(histories[0].loss) + 1)),
            "loss": course("loss"),
            "validation": course("validation"),
            "test": course("test"),
        },
        "ledger": outcome.ledger,
    }
