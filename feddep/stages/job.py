"""What the stages that compute a part of a run have in common: their flags, and the task that they read.  No stage itself."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.experiment import keys
from feddep.experiment.plan import Run
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task, choose_device
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.methods.framework import StepResult
from feddep.stages import flags
from feddep.training.task import Task
from feddep.utils.errors import DataError
from feddep.utils.storage import read_arrays, read_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which run it is and where its inputs lie."""
    flags.add_config(parser)
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
        "--step",
        action="append",
        default=[],
        metavar="STAGE=FILE",
        help="result of a step of the run, such as pretrain=FILE; a step without it is computed here",
    )
    flags.add_key(parser)


@dataclass(frozen=True)
class Job:
    """What a stage is to work on.

    Attributes:
        config: the configuration.
        run: the run.
        specification: everything that determines the run but data and revisions.
        task: the run's data and setting.
        seconds: what the steps that were read took, by stage.
    """

    config: Config
    run: Run
    specification: dict[str, Any]
    task: Task
    seconds: dict[str, float]

    def provenance(self, seconds: float, code: str | None = None) -> dict[str, Any]:
        """Of a result that took so many seconds to compute, by code of this fingerprint."""
        name = torch.cuda.get_device_name() if self.task.device == "cuda" else "cpu"
        return {
            **environment(name, self.config["threads"]),
            **({} if code is None else {"code": code}),
            "data_fingerprint": keys.data_fingerprint(self.config, self.run.dataset),
            "seconds": round(seconds, 3),
        }


def read(arguments: argparse.Namespace) -> Job:
    """Read all that the flags name, and choose the device.

    Raises:
        DataError: if the graph is not the dataset's, or a file is missing or damaged.
        ConfigError: if a GPU is asked for where there is none.
    """
    config = flags.config_of(arguments)
    run = Run(arguments.setting, arguments.dataset, arguments.clients, arguments.framework, arguments.seed)
    specification = keys.specification(config, run)
    torch.set_num_threads(config["threads"])
    device = choose_device(config["device"])
    steps = {stage: Path(file) for stage, file in (given.split("=", 1) for given in arguments.step)}
    task = build_task(
        specification,
        load_graph(config, run.dataset, arguments.graph),
        Split.load(arguments.split),
        None if arguments.partition is None else Partition.load(arguments.partition),
        run.path,
        device,
        {stage: read_step(file, device) for stage, file in steps.items()},
    )
    seconds = {stage: read_json(facts_beside(file))["provenance"]["seconds"] for stage, file in steps.items()}
    return Job(config, run, specification, task, seconds)


def load_graph(config: Config, dataset: str, file: str | Path) -> Graph:
    """Read a graph, and make sure that it is the dataset's.

    Raises:
        DataError: if it is not, or the file is missing or damaged.
    """
    graph = Graph.load(file)
    if "synthetic" not in entry(config, "datasets", dataset) and graph.fingerprint != keys.data_fingerprint(config, dataset):
        raise DataError(f"{file} is not the {variants.base(dataset)} that the registry knows; delete it and run prepare again")
    return graph


def read_step(file: Path, device: str) -> StepResult:
    """The result of a step from its two files."""
    tensors = {name: torch.from_numpy(array).to(device) for name, array in read_arrays(file).items()}
    return StepResult(tensors, read_json(facts_beside(file))["ledger"])


def facts_beside(file: Path) -> Path:
    """Where the ledger and the provenance of a step's tensors are."""
    return file.with_suffix(".json")
