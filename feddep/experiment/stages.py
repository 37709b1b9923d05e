"""The stages of the workflow as functions: each reads the files it is given, computes one thing and
writes it.

A rule's script calls one of them inside :func:`job`, which gives it the configuration that the
workflow was planned with.  Those that train are in :mod:`feddep.experiment.training_stages`: the
others need no PyTorch, which takes longer to import than they take.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from feddep.config import entries
from feddep.config.loading import Config
from feddep.datasets.fetching import download as fetch
from feddep.datasets.fetching import origin
from feddep.datasets.graph_statistics import statistics as graph_statistics
from feddep.datasets.parsing import parse
from feddep.experiment import keys
from feddep.experiment.inputs import divide, read_graph, split_nodes
from feddep.experiment.plan import Run
from feddep.graph.graph import Graph
from feddep.graph.partition import statistics
from feddep.methods import plugins
from feddep.utils.errors import FeddepError, out_of_memory, plain_output
from feddep.utils.files import write_json
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
            if torch := sys.modules.get("torch"):
                torch.set_num_threads(snakemake.threads)
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
