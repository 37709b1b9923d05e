"""A recorded run trained anew, in this process, and compared with its row in the table of runs."""

import math
from pathlib import Path
from typing import Any

import pandas as pd

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.datasets import cached, own_files
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys, runs
from feddep.experiment.plan import Run
from feddep.experiment.tasks import build_task, choose_device
from feddep.graph.graph import Graph
from feddep.graph.partitioners import divide
from feddep.graph.split import random_split
from feddep.training.summary import summary

MEASURED = ("test", "test_last", "validation", "validation_last", "bytes")
"""Columns of a row that a training must bring back."""


def fetch_graph(config: Config, dataset: str, folder: Path) -> Graph:
    """The graph of a dataset without the workflow; a public one is downloaded once, to ``folder``."""
    options = entry(config, "datasets", variants.base(dataset))
    if "path" in options:
        return own_files.read(options["path"])
    if "synthetic" in options:
        return planted_partition(**options["synthetic"])
    return cached.load(variants.base(dataset), folder, config["data"]["mirror"])


def retrain(config: Config, run: Run, folder: Path) -> dict[str, Any]:
    """Train a run with all its steps; returns its result (:func:`feddep.training.summary.summary`)."""
    graph = fetch_graph(config, run.dataset, folder)
    split = random_split(graph.num_nodes, config["split"], run.seed)
    options = keys.partition_options(config, run.dataset)
    partition = None if run.clients is None else divide(graph, run.clients, run.seed, **options)
    specification, device = keys.specification(config, run), choose_device(config["device"])
    method, parameters, _ = keys.configured(config, run.method, variants.base(run.dataset))
    return summary(method.run(build_task(specification, graph, split, partition, run.path, device), parameters))


def differences(recorded: pd.Series, curves: pd.DataFrame, result: dict[str, Any]) -> dict[str, float]:
    """What of a result is not as recorded, by column: how far it is off; of the curves the largest difference.

    Args:
        recorded: the row of the run.
        curves: its curves.
        result: what training it anew has measured.
    """
    bytes_sent = sum(sent["bytes"] for sent in result["communication"])
    found = {"bytes": bytes_sent, "test": result["accuracy"]["best"], "test_last": result["accuracy"]["last"]}
    found |= {"validation": result["validation"]["best"], "validation_last": result["validation"]["last"]}
    off = {name: abs(found[name] - recorded[name]) for name in MEASURED}
    for name in runs.CURVES:
        if name in result["curve"] and curves[name].notna().all():
            same = len(curves) == len(result["curve"][name])
            off[f"curve of {name}"] = float((curves[name] - result["curve"][name]).abs().max()) if same else math.inf
    return {name: size for name, size in off.items() if size != 0}
