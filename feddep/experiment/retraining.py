"""Runs trained anew, without the workflow and without their records."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.datasets import cached, own_files
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys, plan, records
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task
from feddep.graph.graph import Graph
from feddep.graph.partition import statistics
from feddep.graph.partitioners import divide
from feddep.graph.split import random_split
from feddep.methods import registry
from feddep.methods.method import Method
from feddep.training.task import Task
from feddep.utils.storage import canonical_json, read_result, write_result

MEASURED_LATER = frozenset({"global_validation", "own", "local_before", "local_after"})
"""Parts of a result that older records do not have."""


@dataclass(frozen=True)
class Retrained:
    """What came out of training a run anew.

    Attributes:
        result: the result (:func:`feddep.training.summary.summary`).
        partition: statistics of its partition; None without one.
        seconds: time of preparing its data and of the training with all its steps.
        kept: whether an earlier call trained it.
    """

    result: dict[str, Any]
    partition: dict[str, Any] | None
    seconds: float
    kept: bool = False

    def differing(self, recorded: Mapping[str, Any]) -> list[str]:
        """The parts of the result that differ from a recorded one (:func:`differing`); specifications are not compared."""
        return differing(self.result, {name: value for name, value in recorded.items() if name != "specification"})

    def partition_equal(self, config: Config, run: plan.Run) -> bool:
        """Whether the statistics of the partition are the published ones, where there are any."""
        if run.partition is None or self.partition is None:
            return True
        published = Path(config["records"]["directory"], "partitions", f"{run.partition.path}.json")
        return not published.is_file() or canonical_json(self.partition) == canonical_json(records.read(published)["statistics"])


def differing(found: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """The parts of a result that differ in any bit from what was recorded, sorted; what older records lack is left out."""
    parts = (found.keys() | recorded.keys()) - MEASURED_LATER.difference(recorded)
    return sorted(part for part in parts if canonical_json(found.get(part)) != canonical_json(recorded.get(part)))


def fetch_graph(config: Config, dataset: str, folder: Path, mirror: str | None = None) -> Graph:
    """The graph of a dataset of the configuration without the workflow; a public one is downloaded once, to ``folder``."""
    options = entry(config, "datasets", dataset)
    if "path" in options:
        return own_files.read(options["path"])
    return planted_partition(**options["synthetic"]) if "synthetic" in options else cached.load(dataset, folder, mirror)


def prepared(config: Config, run: plan.Run, folder: Path) -> tuple[Task, Method, Any]:
    """The task of a run without the workflow, with the method and its parameters.

    Args:
        config: the configuration.
        run: the run.
        folder: where public graphs are kept.
    """
    specification, graph = keys.specification(config, run), fetch_graph(config, variants.base(run.dataset), folder)
    split = random_split(graph.num_nodes, config["split"], run.seed)
    options = keys.partition_options(config, run.dataset)
    partition = None if run.clients is None else divide(graph, run.clients, run.seed, **options)
    return build_task(specification, graph, split, partition, run.path), *registry.configured(specification["method"])


def _identity(config: Config, run: plan.Run) -> str:
    """Digest of all that a result depends on: the run's key, the code and the packages."""
    made_by = {"code": records.run_fingerprint(config, run), "packages": environment()["packages"]}
    return keys.digest({"key": keys.run_key(config, run), **made_by})


def retrain(config: Config, run: plan.Run, folder: Path, kept: Path | None = None) -> Retrained:
    """Train a run with all its steps, in this process.

    Args:
        config: the configuration.
        run: the run.
        folder: where public graphs are kept.
        kept: a folder of what earlier calls trained with the same key, code and packages, which is taken from there; what is
            trained now is put there.
    """
    from feddep.training.summary import summary

    done = kept and kept / _identity(config, run)
    if done and done.is_file():
        return Retrained(**read_result(done), kept=True)
    start = time.perf_counter()
    task, method, parameters = prepared(config, run, folder)
    result = summary(method.run(task, parameters))
    partition = None
    if run.partition and task.partition:
        partition = {"dataset": run.partition.dataset, "seed": run.seed, **statistics(task.graph, task.partition)}
    trained = Retrained(result, partition, round(time.perf_counter() - start, 1))
    if done:
        write_result(done, {"result": result, "partition": partition, "seconds": trained.seconds})
    return trained
