"""What the stages that compute a part of a run have in common: their flags, and the task that they read.  No stage itself."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.experiment import keys
from feddep.experiment.file_schemas import StepFacts
from feddep.experiment.plan import Run, check
from feddep.experiment.provenance import environment
from feddep.experiment.records import check_key
from feddep.experiment.step_jobs import step_jobs
from feddep.experiment.tasks import build_task, choose_device
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.methods.framework import StepResult
from feddep.stages import flags
from feddep.training.task import Task
from feddep.utils import schemas
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.storage import read_arrays, read_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which run it is and where its inputs lie."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset, or of a variant such as cora,labelled=0.05")
    parser.add_argument("--framework", required=True, help="name of the framework, or of a variant such as feddep,prototypes=3")
    parser.add_argument("--setting", required=True, help="name of the training setting, or of a variant such as feddep,rounds=9")
    parser.add_argument("--seed", type=flags.seed, required=True, help="seed of the run")
    parser.add_argument(
        "--clients", type=flags.count, metavar="M", help="number of clients; none for a framework that sees the whole graph"
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
    check(run)
    if (run.clients is None) != (arguments.partition is None):
        raise ConfigError("--clients and --partition go together, and one is given without the other")
    specification = keys.specification(config, run)
    torch.set_num_threads(config["threads"])
    device = choose_device(config["device"])
    steps = flags.named_files("step", arguments.step)
    facts = _step_facts(config, run, steps)
    graph = load_graph(config, run.dataset, arguments.graph)
    task = build_task(
        specification,
        graph,
        Split.load(arguments.split, graph.num_nodes),
        None if run.clients is None else Partition.load(arguments.partition, graph.num_nodes, run.clients),
        run.path,
        device,
        {stage: StepResult(_tensors(file, device), facts[stage]["ledger"]) for stage, file in steps.items()},
    )
    return Job(config, run, specification, task, {stage: facts[stage]["provenance"]["seconds"] for stage in steps})


def load_graph(config: Config, dataset: str, file: str | Path) -> Graph:
    """Read a graph, and make sure that it is the dataset's.

    Raises:
        DataError: if it is not, or the file is missing or damaged.
    """
    graph = Graph.load(file)
    if "synthetic" not in entry(config, "datasets", dataset) and graph.fingerprint != keys.data_fingerprint(config, dataset):
        raise DataError(f"{file} is not the {variants.base(dataset)} that the registry knows; delete it and run prepare again")
    return graph


def _tensors(file: Path, device: str) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array).to(device) for name, array in read_arrays(file).items()}


def _step_facts(config: Config, run: Run, steps: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """What lies beside the tensors of steps, by stage.

    Raises:
        ConfigError: if the run has no such step.
        DataError: if a file is damaged, or of another step than the run's.
    """
    planned = {job.step.stage: job.key for job in step_jobs(config, run)}
    found = {}
    for stage, file in steps.items():
        if stage not in planned:
            known = ", ".join(planned) or "none"
            raise ConfigError(f"--step names {stage!r}; the framework {run.framework} has {known}")
        facts = read_json(facts_beside(file))
        schemas.check(facts_beside(file), "facts of a step", StepFacts, facts)
        check_key(facts, planned[stage], facts_beside(file))
        found[stage] = facts
    return found


def facts_beside(file: Path) -> Path:
    """Where the ledger and the provenance of a step's tensors are."""
    return file.with_suffix(".json")
