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

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.datasets import own_files
from feddep.datasets.fetching import download as fetch
from feddep.datasets.fetching import origin
from feddep.datasets.graph_statistics import statistics as graph_statistics
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import REGISTRY
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys, runs
from feddep.experiment.plan import PartitionSpec, Run
from feddep.experiment.provenance import environment
from feddep.experiment.steps import step_jobs
from feddep.experiment.tasks import build_task, choose_device, split_nodes
from feddep.graph import partitioners
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, statistics
from feddep.graph.split import Split
from feddep.methods import plugins
from feddep.methods.method import StepResult
from feddep.training.summary import summary
from feddep.training.task import RunResult, Task
from feddep.utils.errors import DataError, FeddepError, out_of_memory, plain_notices
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
    plain_notices()
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
    options, source = entry(config, "datasets", dataset), "synthetic"
    if "synthetic" in options:
        graph = planted_partition(**options["synthetic"])
    elif "path" in options:
        graph, source = own_files.read(options["path"]), "own files"
    else:
        assert raw is not None  # the rule downloads it
        graph, source = parse(dataset, raw), origin(raw)
    graph.save(output, keys.graph_key(config, dataset))
    write_json(facts, {"name": dataset, "source": source, **graph_statistics(graph)})


def split(config: Config, dataset: str, seed: int, graph: Path, output: Path) -> None:
    """Draw training, validation and test nodes of a graph, or take those of its masks."""
    options = entry(config, "datasets", dataset)
    shares = keys.split_shares(config, dataset)
    found = split_nodes(Graph.load(graph), options["split"], shares, seed, options.get("path"))
    found.save(output, keys.split_key(config, dataset, seed))


def partition(config: Config, spec: PartitionSpec, graph: Path, output: Path, facts: Path) -> None:
    """Divide a graph among clients, and describe the division."""
    loaded = Graph.load(graph)
    found = partitioners.partition(
        loaded, spec.clients, spec.seed, **keys.partition_options(config, spec.dataset)
    )
    found.save(output, keys.partition_key(config, spec))
    write_json(facts, {"dataset": spec.dataset, "seed": spec.seed, **statistics(loaded, found)})


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
    graph = load_graph(config, run.dataset, files["graph"])
    owners = (
        None
        if run.partition is None
        else Partition.load(files["partition"], keys.partition_key(config, run.partition))
    )
    if "split" in files:
        found = Split.load(files["split"], keys.split_key(config, run.dataset, run.seed))
    else:
        found = split_nodes(
            graph,
            "within_clients",
            keys.split_shares(config, run.dataset),
            run.seed,
            partition=owners,
        )
    device, steps, seconds = choose_device(config["device"]), {}, {}
    for stage, key in ((each.step.stage, each.key) for each in step_jobs(config, run)):
        if stage in files:
            arrays, facts = (
                read_arrays(files[stage], key, "pt"),
                read_json(Path(files[stage]).with_suffix(".json")),
            )
            tensors = {name: array.to(device) for name, array in arrays.items()}
            steps[stage], seconds[stage] = (
                StepResult(tensors, facts["communication"]),
                facts["seconds"],
            )
    task = build_task(
        keys.specification(config, run), graph, found, owners, run.path, device, steps
    )
    return task, {"data_fingerprint": graph.fingerprint, "seconds_before": seconds}


@lru_cache(maxsize=1)  # of the runs of a batch
def load_graph(config: Config, dataset: str, file: str | Path) -> Graph:
    """The prepared graph of a dataset.

    Raises:
        DataError: if it is another, or the file is missing or damaged.
    """
    graph = Graph.load(file, keys.graph_key(config, dataset))
    public = REGISTRY.get(variants.base(dataset))
    if public and public.fingerprint not in (None, graph.fingerprint):
        raise DataError(
            f"{file} is not the {variants.base(dataset)} that the registry knows; delete it and "
            "run `snakemake`"
        )
    return graph


def step(config: Config, run: Run, stage: str, files: Mapping[str, Any], output: Path) -> None:
    """Compute one step of a run; what it sent and how long it took go beside its tensors."""
    (planned,) = (each for each in step_jobs(config, run) if each.step.stage == stage)
    task, _ = read_task(
        config,
        run,
        {
            name: file
            for name, file in files.items()
            if name in ("graph", "split", "partition", *planned.needs)
        },
    )
    _, parameters, _ = keys.configured(config, run.method, variants.base(run.dataset))
    start = time.perf_counter()
    result = planned.step.run(task, parameters, task.step_results)
    seconds = round(time.perf_counter() - start, 3)
    write_arrays(
        output,
        {name: tensor.detach().cpu().numpy() for name, tensor in result.tensors.items()},
        planned.key,
    )
    write_json(
        output.with_suffix(".json"), {"communication": result.communication, "seconds": seconds}
    )


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
    method, parameters, _ = keys.configured(config, run.method, variants.base(run.dataset))
    start = time.perf_counter()
    result = method.run(task, parameters)
    seconds = time.perf_counter() - start
    write_arrays(
        model,
        {name: tensor.numpy() for name, tensor in result.weights().items()},
        keys.run_key(config, run),
    )
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
    runs.write_cached(config, run, summary(result), provenance, output)
