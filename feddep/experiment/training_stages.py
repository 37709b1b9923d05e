"""The stages of the workflow that train, with PyTorch."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from feddep.config.loading import Config
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import runs
from feddep.experiment.inputs import split_nodes
from feddep.experiment.plan import Run
from feddep.experiment.provenance import environment
from feddep.experiment.steps import StepJob, step_jobs
from feddep.experiment.tasks import build_task, choose_device, device_name
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.methods.method import StepResult
from feddep.training.summary import DIVERGED, summary
from feddep.training.task import Task
from feddep.utils.errors import DataError, DivergenceError, FeddepError
from feddep.utils.files import read_arrays, read_json, write_arrays, write_json


def read_task(config: Config, run: Run, files: Mapping[str, Any]) -> tuple[Task, dict[str, Any]]:
    """The task of a run, and what is known of its inputs: the graph's ``data_fingerprint`` and
    ``seconds_before`` by stage.

    Args:
        config: the configuration.
        run: the run.
        files: ``graph``, ``split`` unless it is drawn within clients, ``partition`` for a run with
            clients, and steps that are at hand by stage.

    Raises:
        DataError: if a file is missing, damaged, or not the one that the configuration asks for.
        ConfigError: if a GPU is asked for where there is none.
    """
    graph, owners = load_graph(run.dataset.name, run.graph_key, files["graph"]), None
    if run.clients is not None:
        owners = Partition.load(files["partition"], run.partition_key)
    if "split" in files:
        found = Split.load(files["split"], run.split_key)
    else:
        found = split_nodes(run.specification, graph, partition=owners)
    device, steps, seconds = choose_device(config["device"]), {}, {}
    for stage, key in ((each.step.stage, each.key) for each in step_jobs(run)):
        if stage in files:
            arrays = read_arrays(files[stage], key, "pt")
            facts = read_json(Path(files[stage]).with_suffix(".json"), key)
            tensors = {name: array.to(device) for name, array in arrays.items()}
            steps[stage] = StepResult(tensors, facts["communication"])
            seconds[stage] = facts["seconds"]
    task = build_task(run.specification, graph, found, owners, run.path, device, steps)
    return task, {"data_fingerprint": graph.fingerprint, "seconds_before": seconds}


@lru_cache(maxsize=1)  # of the runs of a batch
def load_graph(dataset: str, key: str, file: str | Path) -> Graph:
    """The prepared graph of a dataset, whose content key is known.

    Raises:
        DataError: if it is another, or the file is missing or damaged.
    """
    graph = Graph.load(file, key)
    public = REGISTRY.get(dataset)
    if public and public.fingerprint not in (None, graph.fingerprint):
        raise DataError(
            f"{file} is not the {dataset} that the registry knows; delete it and run `snakemake`"
        )
    return graph


def step(config: Config, planned: StepJob, files: Mapping[str, Any], output: Path) -> None:
    """Compute one step of a run; what it sent and how long it took go beside its tensors."""
    read = {"graph", "split", "partition", *planned.step.needs} & files.keys()
    task, _ = read_task(config, planned.run, {name: files[name] for name in read})
    _, parameters, _ = planned.run.method.configured
    start = time.perf_counter()
    result = planned.step.run(task, parameters, task.step_results)
    facts = {
        "communication": result.communication,
        "seconds": round(time.perf_counter() - start, 3),
    }
    # First, so that where the tensors are, all is.
    write_json(output.with_suffix(".json"), facts, planned.key)
    write_arrays(
        output,
        {name: tensor.detach().cpu().numpy() for name, tensor in result.tensors.items()},
        planned.key,
    )


def with_steps(config: Config, run: Run, files: Mapping[str, Any]) -> dict[str, Any]:
    """The files of a run that are there after all of its steps that are not have been computed, up
    to one that diverges: the run itself does then.
    """
    with suppress(DivergenceError):
        for planned in step_jobs(run):
            if not (file := Path(files[planned.step.stage])).exists():
                step(config, planned, files, file)
    return {name: file for name, file in files.items() if Path(file).exists()}


def batch(config: Config, members: Sequence[tuple[Run, Mapping[str, Any], Path, Path]]) -> None:
    """Train runs one after the other, each with its steps; what is there already is not computed
    again.

    Args:
        config: the configuration.
        members: of each run the run, its files, and where its result and model go, as :func:`train`
            takes them.

    Raises:
        FeddepError: of the first run that failed, after all others have been trained.
    """
    failed: list[FeddepError] = []
    for run, files, output, model in members:
        if not output.exists():
            try:
                train(config, run, with_steps(config, run, files), output, model)
            except FeddepError as error:
                print(f"feddep: {error}", file=sys.stderr)
                failed.append(error)
    if failed:
        raise failed[0]


def train(config: Config, run: Run, files: Mapping[str, Any], output: Path, model: Path) -> None:
    """Train and test one method: its row and curves, and the weights at the best round; of a trial
    of a search that diverges, that it did.
    """
    task, known = read_task(config, run, files)
    method, parameters, _ = run.method.configured
    start = time.perf_counter()
    try:
        result = method.run(task, parameters)
        measured, weights = summary(result), result.weights()
    except DivergenceError as error:
        if not run.trial:
            raise
        print(f"feddep: {error}", file=sys.stderr)
        measured, weights = DIVERGED, {}
    seconds = time.perf_counter() - start
    write_arrays(model, {name: tensor.numpy() for name, tensor in weights.items()}, run.key)
    provenance = {
        **environment(device_name(config["device"]), torch.get_num_threads()),
        **known,
        "seconds": round(seconds, 3),
    }
    runs.write_cached(run, measured, provenance, output)
