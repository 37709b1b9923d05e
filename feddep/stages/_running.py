"""What the stages that compute a part of a run have in common: their flags, and the problem that they read."""

import argparse
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from feddep import features, plan
from feddep.config import Config
from feddep.errors import ConfigError, DataError
from feddep.graph import Graph
from feddep.partition import Partition
from feddep.problem import Problem
from feddep.provenance import environment
from feddep.settings import Setting
from feddep.splits import Split
from feddep.steps import Made
from feddep.storage import read_arrays, read_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which run it is and where its inputs lie."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--dataset", required=True, help="name of the dataset, or of a variant such as cora,labelled=0.05")
    parser.add_argument("--framework", required=True, help="name of the framework, or of a variant such as feddep,prototypes=3")
    parser.add_argument("--setting", required=True, help="name of the training setting, or of a variant such as feddep,rounds=9")
    parser.add_argument("--seed", type=int, required=True, help="seed of the run")
    parser.add_argument(
        "--clients", type=int, metavar="M", help="number of clients; none for a framework that sees the whole graph"
    )
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--split", type=Path, required=True, metavar="FILE", help="split to read")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition to read; goes with --clients")
    parser.add_argument(
        "--made",
        action="append",
        default=[],
        metavar="STAGE=FILE",
        help="result of an earlier stage of the run, such as pretrain=FILE; without it that stage's work is done here",
    )


@dataclass(frozen=True)
class Job:
    """What a stage is to work on.

    Attributes:
        config: the configuration.
        run: the run.
        specification: everything that determines the run but data and code.
        problem: the run's data and setting.
        seconds: what the earlier stages of the run took, each by its name.
    """

    config: Config
    run: plan.Run
    specification: dict[str, Any]
    problem: Problem
    seconds: dict[str, float]

    def provenance(self, seconds: float) -> dict[str, Any]:
        """Of a result that took so many seconds to compute."""
        name = torch.cuda.get_device_name() if self.problem.device == "cuda" else "cpu"
        return {
            **environment(name, self.config["threads"]),
            "data_fingerprint": plan.data_fingerprint(self.config, self.run.dataset),
            "seconds": round(seconds, 3),
        }


def read(arguments: argparse.Namespace) -> Job:
    """Read all that the flags name, and choose the device.

    Raises:
        DataError: if the graph is not the dataset's, or a file is missing or damaged.
        ConfigError: if a GPU is asked for where there is none.
    """
    config = read_json(arguments.config)
    run = plan.Run(arguments.setting, arguments.dataset, arguments.clients, arguments.framework, arguments.seed)
    specification = plan.specification(config, run)
    options = specification["dataset"]
    graph = Graph.load(arguments.graph)
    if "synthetic" not in options and graph.fingerprint != plan.data_fingerprint(config, run.dataset):
        raise DataError(
            f"{arguments.graph} is not the {options['name']} that the registry knows; delete it and run prepare again"
        )
    torch.set_num_threads(config["threads"])
    device = choose_device(config["device"])
    made = {stage: Path(file) for stage, file in (given.split("=", 1) for given in arguments.made)}
    problem = Problem(
        name=run.path,
        graph=dataclasses.replace(graph, features=features.scale(graph.features, options["features"])),
        split=Split.load(arguments.split).labelled(options["labelled"], run.seed),
        partition=None if arguments.partition is None else Partition.load(arguments.partition),
        setting=Setting(**specification["setting"]),
        seed=run.seed,
        device=device,
        made={stage: read_made(file, device) for stage, file in made.items()},
    )
    seconds = {stage: read_json(facts_beside(file))["provenance"]["seconds"] for stage, file in made.items()}
    return Job(config, run, specification, problem, seconds)


def read_made(file: Path, device: str) -> Made:
    """The result of a step from its two files."""
    tensors = {name: torch.from_numpy(array).to(device) for name, array in read_arrays(file).items()}
    return Made(tensors, read_json(facts_beside(file))["ledger"])


def facts_beside(file: Path) -> Path:
    """Where the ledger and the provenance of a step's tensors are."""
    return file.with_suffix(".json")


def choose_device(wish: str) -> str:
    """``cpu`` or ``cuda``: what the configuration asks for, or for ``auto`` the GPU where there is one.

    Raises:
        ConfigError: if a GPU is asked for and there is none.
    """
    present = torch.cuda.is_available()
    if wish == "cuda" and not present:
        raise ConfigError("device is cuda, but PyTorch finds no GPU on this machine; set it to auto or cpu")
    return "cuda" if present and wish != "cpu" else "cpu"
