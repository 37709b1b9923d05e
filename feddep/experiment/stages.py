"""The stages of the workflow as functions: each reads the files it is given, computes one thing and
writes it.

A rule's script calls one of them inside :func:`job`, which gives it the configuration that the
workflow was planned with.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from feddep.config import entries
from feddep.config.loading import Config
from feddep.datasets.fetching import download as fetch
from feddep.datasets.fetching import origin
from feddep.datasets.graph_statistics import statistics as graph_statistics
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import keys, runs
from feddep.experiment.inputs import divide, read_graph, split_nodes
from feddep.experiment.plan import Run
from feddep.experiment.provenance import environment
from feddep.experiment.steps import step_jobs
from feddep.experiment.tasks import build_task, choose_device
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, statistics
from feddep.graph.split import Split
from feddep.methods import plugins
from feddep.methods.method import StepResult
from feddep.training.summary import summary
from feddep.training.task import RunResult, Task
from feddep.utils.errors import DataError, FeddepError, out_of_memory, plain_output
from feddep.utils.files import read_arrays, read_json, write_arrays, write_json
from feddep.utils.gpus import assigned


@contextmanager
def job(snakemake: Any) -> Iterator[Config]:
    """The configuration of a job of the workflow.

    What the job prints is shown and kept in its log, with its peak memory at the end; an error of
    the user's is one sentence. A job that asks for a GPU sees one alone.

    Args:
        snakemake: the object that Snakemake gives to a script.
    """
    if snakemake.log:
        copy = subprocess.Popen(
            ["tee", str(snakemake.log[0])], stdin=subprocess.PIPE, stdout=sys.stderr
        )
        assert copy.stdin is not None
        for stream in (1, 2):
            os.dup2(copy.stdin.fileno(), stream)
    torch.set_num_threads(snakemake.threads)
    plain_output()
    on_gpu = bool(snakemake.resources.get("gpu"))
    places = Path(snakemake.config["output"], ".cache", "gpus")
    trainings = snakemake.config["trainings_per_gpu"]
    with (
        threadpool_limits(snakemake.threads),
        assigned(places, trainings) if on_gpu else nullcontext() as gpu,
    ):
        if gpu is not None:
            print(f"on GPU {gpu}", file=sys.stderr)
        try:
            plugins.use(snakemake.config["plugins"])
            yield Config(snakemake.config)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
                2**20 if sys.platform == "darwin" else 2**10
            )
            # Snakemake's own measurement looks only now and then.
            print(f"peak memory {peak:.0f} MiB", file=sys.stderr)
        except (FeddepError, OSError) as error:
            sys.exit(f"feddep: {error}")
        except (MemoryError, RuntimeError) as error:
            if (sentence := out_of_memory(error)) is None:
                raise
            sys.exit(f"feddep: {sentence}")


def download(config: Config, dataset: str, folder: Path) -> None:
    """Fetch and verify the raw files of a public dataset."""
    fetch(dataset, folder, config["data"]["mirror"])


def prepare(config: Config, dataset: str, raw: Path | None, output: Path, facts: Path) -> None:
    """Turn raw files, one's own files or a formula into a graph, and describe it."""
    entry = entries.one(config, "datasets", dataset)
    # The rule downloads a public one.
    graph = read_graph(entry, lambda name: parse(name, raw or Path()))
    made = "synthetic" if "synthetic" in entry.options else "own files"
    source = made if raw is None else origin(raw)
    key = keys.graph_key(keys.data_fingerprint(config, entry))
    graph.save(output, key)
    write_json(facts, {"name": dataset, "source": source, **graph_statistics(graph)}, key)


def split(run: Run, graph: Path, output: Path) -> None:
    """Draw training, validation and test nodes of a graph, or take those of its masks."""
    path = run.dataset.options.get("path")
    split_nodes(run.specification, Graph.load(graph), path).save(output, run.split_key)


def partition(run: Run, graph: Path, output: Path, facts: Path) -> None:
    """Divide a graph among clients, and describe the division."""
    loaded = Graph.load(graph)
    found = divide(run.specification, loaded)
    assert found is not None  # the rule is for runs with clients
    found.save(output, run.partition_key)
    described = {"dataset": run.dataset.name, "seed": run.seed, **statistics(loaded, found)}
    write_json(facts, described, run.partition_key)


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
            arrays, facts = (
                read_arrays(files[stage], key, "pt"),
                read_json(Path(files[stage]).with_suffix(".json"), key),
            )
            tensors = {name: array.to(device) for name, array in arrays.items()}
            steps[stage], seconds[stage] = (
                StepResult(tensors, facts["communication"]),
                facts["seconds"],
            )
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


def step(config: Config, run: Run, stage: str, files: Mapping[str, Any], output: Path) -> None:
    """Compute one step of a run; what it sent and how long it took go beside its tensors."""
    (planned,) = (each for each in step_jobs(run) if each.step.stage == stage)
    task, _ = read_task(
        config,
        run,
        {
            name: file
            for name, file in files.items()
            if name in ("graph", "split", "partition", *planned.needs)
        },
    )
    _, parameters, _ = run.method.configured
    start = time.perf_counter()
    result = planned.step.run(task, parameters, task.step_results)
    seconds = round(time.perf_counter() - start, 3)
    write_arrays(
        output,
        {name: tensor.detach().cpu().numpy() for name, tensor in result.tensors.items()},
        planned.key,
    )
    facts = {"communication": result.communication, "seconds": seconds}
    write_json(output.with_suffix(".json"), facts, planned.key)


def batch(
    config: Config, members: Sequence[tuple[Run, Mapping[str, Any], Path, Path]], receipt: Path
) -> None:
    """Train runs one after the other; one whose result is there already is not trained again.

    Args:
        config: the configuration.
        members: of each run the run, its files, and where its result and model go, as :func:`train`
            takes them.
        receipt: written when all are trained.

    Raises:
        FeddepError: of the first run that failed, after all others have been trained.
    """
    failed: list[FeddepError] = []
    for run, files, output, model in members:
        if not output.exists():
            try:
                train(config, run, files, output, model)
            except FeddepError as error:
                print(f"feddep: {error}", file=sys.stderr)
                failed.append(error)
    if failed:
        raise failed[0]
    write_json(receipt, {"runs": [run.path for run, *_ in members]})


def train(config: Config, run: Run, files: Mapping[str, Any], output: Path, model: Path) -> None:
    """Train and test one method: its row and curves, and the weights at the best round."""
    task, known = read_task(config, run, files)
    method, parameters, _ = run.method.configured
    start = time.perf_counter()
    result = method.run(task, parameters)
    seconds = time.perf_counter() - start
    weights = {name: tensor.numpy() for name, tensor in result.weights().items()}
    write_arrays(model, weights, run.key)
    record(config, run, result, known, seconds, output)


def record(
    config: Config,
    run: Run,
    result: RunResult,
    known: Mapping[str, Any],
    seconds: float,
    output: Path,
) -> None:
    """Write the row and the curves of a run that took so many seconds; ``known`` is what
    :func:`read_task` says of its inputs.
    """
    device = torch.cuda.get_device_name() if choose_device(config["device"]) == "cuda" else "cpu"
    provenance = {
        **environment(device, torch.get_num_threads()),
        **known,
        "seconds": round(seconds, 3),
    }
    runs.write_cached(run, summary(result), provenance, output)
