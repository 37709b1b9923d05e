"""What the stages that compute a part of a run have in common: their flags, and the task that they read.  No stage itself."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from feddep.config.loading import Config
from feddep.experiment import keys
from feddep.experiment.plan import Run, check
from feddep.experiment.provenance import environment
from feddep.experiment.step_jobs import step_jobs
from feddep.experiment.task_files import load_graph, load_partition, load_split
from feddep.experiment.tasks import build_task, choose_device
from feddep.methods.method import StepResult
from feddep.stages import flags
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from feddep.utils.storage import read_arrays, read_result
from feddep.utils.torch_startup import leave_out_compiler


def add_arguments(parser: argparse.ArgumentParser, steps: bool = True) -> None:
    """Add the flags that say which run it is and where its inputs lie, results of its ``steps`` among them."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset, or of a variant such as cora,labelled=0.05")
    parser.add_argument("--method", required=True, help="name of the method, or of a variant such as feddep,prototypes=3")
    parser.add_argument("--setting", required=True, help="name of the training setting, or of a variant such as feddep,rounds=9")
    parser.add_argument("--seed", type=flags.seed, required=True, help="seed of the run")
    parser.add_argument(
        "--clients", type=flags.count, metavar="M", help="number of clients; none for a method that sees the whole graph"
    )
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--split", type=Path, required=True, metavar="FILE", help="split to read")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition to read; goes with --clients")
    parser.set_defaults(step=[])
    if steps:
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
        data_fingerprint: of the graph, before its features are scaled.
        seconds: what the steps that were read took, by stage.
    """

    config: Config
    run: Run
    specification: dict[str, Any]
    task: Task
    data_fingerprint: str
    seconds: dict[str, float]

    def provenance(self, seconds: float, code: str | None = None) -> dict[str, Any]:
        """Of a result that took so many seconds to compute, by code of this fingerprint."""
        name = torch.cuda.get_device_name() if self.task.device == "cuda" else "cpu"
        return {
            **environment(name, self.config["threads"]),
            **({} if code is None else {"code": code}),
            "data_fingerprint": self.data_fingerprint,
            "seconds": round(seconds, 3),
        }


def read(arguments: argparse.Namespace) -> Job:
    """Read all that the flags name, and choose the device.

    Raises:
        DataError: if a file is missing, damaged, or not what the configuration asks for.
        ConfigError: if a GPU is asked for where there is none, or a step is named that the run has not.
    """
    config = flags.config_of(arguments)
    run = Run(arguments.setting, arguments.dataset, arguments.clients, arguments.method, arguments.seed)
    check(run)
    if (run.clients is None) != (arguments.partition is None):
        raise ConfigError("--clients and --partition go together, and one is given without the other")
    specification = keys.specification(config, run)
    torch.set_num_threads(config["threads"])
    leave_out_compiler()
    device = choose_device(config["device"])
    steps = _read_steps(config, run, flags.named_files("step", arguments.step), device)
    graph = load_graph(config, run.dataset, arguments.graph)
    task = build_task(
        specification,
        graph,
        load_split(config, run.dataset, run.seed, arguments.split),
        None if run.partition is None else load_partition(config, run.partition, arguments.partition),
        run.path,
        device,
        {stage: result for stage, (result, _) in steps.items()},
    )
    return Job(config, run, specification, task, graph.fingerprint, {stage: seconds for stage, (_, seconds) in steps.items()})


def _read_steps(config: Config, run: Run, files: Mapping[str, Path], device: str) -> dict[str, tuple[StepResult, float]]:
    """The result of each step of a run that is named, and how many seconds it took, by stage."""
    planned = {job.step.stage: job.key for job in step_jobs(config, run)}
    results = {}
    for stage, file in files.items():
        if stage not in planned:
            raise ConfigError(f"--step names {stage!r}; the method {run.method} has {', '.join(planned) or 'none'}")
        arrays, facts = read_arrays(file, planned[stage]), read_result(facts_beside(file), planned[stage])
        tensors = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
        results[stage] = StepResult(tensors, facts["communication"]), facts["provenance"]["seconds"]
    return results


def facts_beside(file: Path) -> Path:
    """Where the communication and the provenance of a step's tensors are."""
    return file.with_suffix(".json")
