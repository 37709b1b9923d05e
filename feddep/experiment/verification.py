"""A recorded run trained anew, in this process, and compared with its row in the table of runs."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from feddep.config import variants
from feddep.config.entries import Entry
from feddep.config.loading import Config
from feddep.datasets import parsing
from feddep.experiment import plan, runs
from feddep.experiment.inputs import Inputs, inputs, read_graph
from feddep.experiment.plan import Run
from feddep.experiment.tasks import build_task, choose_device
from feddep.graph.graph import Graph
from feddep.training.summary import summary
from feddep.training.task import RunResult
from feddep.utils.errors import ConfigError, DataError, nearest

MEASURED = ("test", "test_last", "validation", "validation_last", "bytes")
"""Columns of a row that a training must bring back."""


def fetch_graph(config: Config, dataset: Entry, folder: Path) -> Graph:
    """The graph of a dataset without the workflow; a public one is downloaded once, to
    ``folder``.
    """
    mirror = config["data"]["mirror"]
    return read_graph(dataset, lambda name: parsing.load(name, folder, mirror))


@dataclass
class Trainer:
    """Trains runs without the workflow, each with all its steps.

    Attributes:
        config: the configuration.
        folder: where public graphs are.
    """

    config: Config
    folder: Path
    _last: tuple[Any, Inputs] | None = None

    def inputs(self, run: Run) -> Inputs:
        """Graph, split and partition of a run; those of the last are kept, since many runs have the
        same.
        """
        same = {**run.specification, "setting": None, "method": None, "data": run.data}
        if self._last is None or self._last[0] != same:
            graph = fetch_graph(self.config, run.dataset, self.folder)
            self._last = same, inputs(run.specification, graph, run.dataset.options.get("path"))
        return self._last[1]

    def train(self, run: Run) -> RunResult:
        """Train a run."""
        method, parameters, _ = run.method.configured
        graph, split, partition = self.inputs(run)
        device = choose_device(self.config["device"])
        task = build_task(run.specification, graph, split, partition, run.path, device)
        return method.run(task, parameters)


def differences(
    recorded: pd.Series, curves: pd.DataFrame, result: dict[str, Any]
) -> dict[str, float]:
    """Differences of a result from its record, by column; of the curves the largest.

    Args:
        recorded: the row of the run.
        curves: its curves.
        result: what training it anew has measured.
    """
    bytes_sent = sum(sent["bytes"] for sent in result["communication"])
    found = {
        "bytes": bytes_sent,
        "test": result["accuracy"]["best"],
        "test_last": result["accuracy"]["last"],
        "validation": result["validation"]["best"],
        "validation_last": result["validation"]["last"],
    }
    # What neither has measured, as the accuracy on the global graph of models that stay with their
    # owners, is no difference.
    off = {
        name: abs(found[name] - recorded[name])
        for name in MEASURED
        if not pd.isna([found[name], recorded[name]]).all()
    }
    for name in runs.CURVES:
        if name in result["curve"] and curves[name].notna().all():
            same = len(curves) == len(result["curve"][name])
            off[f"curve of {name}"] = (
                float((curves[name] - result["curve"][name]).abs().max()) if same else math.inf
            )
    return {name: size for name, size in off.items() if size != 0}


def planned(config: Config, study: str | None, asked: Mapping[str, Any]) -> list[Run]:
    """The runs of a study, or for None of the main tables, that fit; arguments are those of
    :func:`draw`.

    Raises:
        ConfigError: if there is no such study.
    """
    if study is not None and study not in config["studies"]:
        raise ConfigError(
            f"studies.{study} is not in the configuration; {nearest(study, config['studies'])}"
        )
    return [
        run
        for run in (plan.runs(config) if study is None else plan.study_runs(config, study))
        if all(_fits(str(getattr(run, part)), str(value)) for part, value in asked.items())
    ]


def _fits(label: str, asked: str) -> bool:
    """Whether a part of a run has the name that is asked for, spelled in full or not."""
    return asked in (label, variants.base(label))


def draw(
    config: Config,
    study: str | None,
    asked: Mapping[str, Any],
    max_seconds: float | None,
    number: int,
    seed: int | None,
) -> list[Run]:
    """Recorded runs to verify, drawn at random among those that fit.

    Args:
        config: the configuration.
        study: the study that they are of; None for the main tables.
        asked: parts of :class:`~feddep.experiment.plan.Run` that they must have, and ``clients``;
            a name without changes, such as ``cora``, is of all its variants.
        max_seconds: most seconds that one took when it was recorded; None for any.
        number: how many.
        seed: of the draw; None for another each time.

    Raises:
        ConfigError: if none fits.
    """
    recorded = runs.published(Path(config["records"]["directory"]))
    fitting = [run for run in planned(config, study, asked) if run.key in recorded]
    if max_seconds is not None and fitting:
        took = runs.load(config, fitting)["seconds"]
        fitting = [
            run for run, seconds in zip(fitting, took, strict=True) if seconds <= max_seconds
        ]
    if not fitting:
        raise ConfigError(
            f"no recorded run has {dict(asked) or 'these options'}; `feddep verify --help` "
            "explains them"
        )
    return random.Random(seed).sample(fitting, min(number, len(fitting)))


def verify(config: Config, chosen: Sequence[Run], folder: Path, tolerance: float) -> Iterator[str]:
    """Train runs anew, and say of each on a line whether its numbers come back.

    Raises:
        DataError: at the end, if an accuracy differs by more than the tolerance, or the bytes that
            were sent differ at all.
    """
    torch.set_num_threads(config["threads"])
    recorded, curves = runs.load(config, chosen), runs.load_curves(config, chosen)
    wrong, trainer = 0, Trainer(config, folder)
    for run, (_, row) in zip(chosen, recorded.iterrows(), strict=True):
        off = differences(
            row,
            curves[curves["key"] == row["key"]].reset_index(drop=True),
            summary(trainer.train(run)),
        )
        largest = max(
            (off.get(name, 0.0) for name in ("test", "test_last", "validation", "validation_last")),
            default=0.0,
        )
        failed = largest > tolerance or "bytes" in off
        wrong += failed
        verdict = (
            "equal to the last bit"
            if not off
            else f"off by at most {largest:.4f} in accuracy ({', '.join(off)} differ)"
        )
        yield (
            f"{run.path}: recorded {row['test']:.4f}; "
            f"{'NOT REPRODUCED, ' if failed else ''}{verdict}"
        )
    if wrong:
        raise DataError(f"{wrong} of {len(chosen)} runs did not come back")
