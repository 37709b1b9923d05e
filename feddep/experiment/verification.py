"""A recorded run trained anew, in this process, and compared with its row in the table of runs."""

import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from feddep.config import variants
from feddep.config.entries import Entry
from feddep.config.loading import Config
from feddep.datasets import parsing
from feddep.experiment import plan, runs
from feddep.experiment.inputs import Inputs, inputs, read_graph
from feddep.experiment.plan import Run
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task, choose_device, device_name
from feddep.graph.graph import Graph
from feddep.training.summary import summary
from feddep.training.task import RunResult
from feddep.utils.errors import ConfigError, DataError, nearest
from feddep.utils.torch_state import default_state

CIRCUMSTANCES = ("seconds", "seconds_before", "commit", "machine", "time")
"""Columns of a row that a training need not bring back."""
_LATER = ("local_", "global_validation")
"""What early records have not measured, none of which has a curve ``local_before``."""


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

    def record(self, run: Run) -> Config:
        """Train a run and write what it measured to the cache of ``folder``; returns the
        configuration that reads it there.
        """
        records = {**self.config["records"], "use": False}
        config = Config({**self.config, "output": str(self.folder), "records": records})
        start, result = time.perf_counter(), self.train(run)
        self.write(config, run, summary(result), time.perf_counter() - start)
        return config

    def write(self, config: Config, run: Run, measured: Mapping[str, Any], seconds: float) -> None:
        """Write what :meth:`train` measured to the cache of a configuration, with the time that it
        took.
        """
        graph, *_ = self.inputs(run)
        provenance = {
            **environment(device_name(self.config["device"]), self.config["threads"]),
            "data_fingerprint": graph.fingerprint,
            "seconds": round(seconds, 3),
            "seconds_before": {},
        }
        runs.write_cached(run, measured, provenance, runs.cached(config, run.key))

    def train(self, run: Run) -> RunResult:
        """Train a run, with the threads of the configuration."""
        method, parameters, _ = run.method.configured
        with default_state(self.config["threads"]):
            graph, split, partition = self.inputs(run)
            device = choose_device(self.config["device"])
            task = build_task(run.specification, graph, split, partition, run.path, device)
            return method.run(task, parameters)


def differences(config: Config, anew: Config, run: Run) -> dict[str, float]:
    """Differences of two records of a run, by column of the row and by curve.

    Args:
        config: the configuration that reads the record.
        anew: the configuration that reads what was measured now.
        run: the run.

    Returns:
        The largest difference where a column has accuracies, or a curve; infinity where one of both
        has a number and the other has none, or anything else is not the same.
    """
    recorded, found = (runs.load(each, [run]).iloc[0] for each in (config, anew))
    curve, found_curve = (runs.load_curves(each, [run]) for each in (config, anew))
    early = curve["local_before"].isna().all()
    off = {
        f"curve of {name}": _distance(curve[name], found_curve[name])
        for name in runs.CURVES
        if not (early and name.startswith(_LATER))
    }
    rounding = max(off.values())
    for name, kind in runs.COLUMNS.items():
        one, other = recorded[name], found[name]
        unknown = name.startswith("macro_f1") or (early and name.startswith(_LATER))
        if name in CIRCUMSTANCES or (unknown and pd.isna(one)):
            continue
        if kind == "float64":
            off[name] = _distance(one, other)
        elif name == "client_accuracies" and not pd.isna([one, other]).any():
            off[name] = _distance(json.loads(one), json.loads(other))
        elif str(one) != str(other):
            # Where curves are off by rounding, another round may be best.
            off[name] = rounding if name == "best_round" and rounding else math.inf
    return {name: size for name, size in off.items() if size}


def _distance(one: Any, other: Any) -> float:
    """The largest difference of two arrays; infinite if only one has a number somewhere."""
    first, second = np.asarray(one, float), np.asarray(other, float)
    if first.shape != second.shape or (np.isnan(first) != np.isnan(second)).any():
        return math.inf
    return float(np.abs(np.nan_to_num(first - second)).max(initial=0))


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
        hint = "`feddep verify --help` explains them"
        for part, value in asked.items():
            known = {variants.base(str(getattr(run, part))) for run in planned(config, study, {})}
            if variants.base(str(value)) not in known:
                hint = f"for {part} {nearest(str(value), sorted(known))}"
        raise ConfigError(f"no recorded run has {dict(asked) or 'these options'}; {hint}")
    return random.Random(seed).sample(fitting, min(number, len(fitting)))


def verify(config: Config, chosen: Sequence[Run], folder: Path, tolerance: float) -> Iterator[str]:
    """Train runs anew, and say of each on a line whether its numbers come back.

    Raises:
        DataError: at the end, if a column of accuracies or a curve differs by more than the
            tolerance, or another column of what is measured differs at all.
    """
    wrong, trainer = 0, Trainer(config, folder)
    for run in chosen:
        off = differences(config, trainer.record(run), run)
        failed = [name for name, size in off.items() if size > tolerance]
        wrong += bool(failed)
        if failed:
            verdict = f"NOT REPRODUCED, {', '.join(failed)} differ by more than {tolerance:g}"
        elif off:
            verdict = f"off by at most {max(off.values()):.2g} ({', '.join(off)} differ)"
        else:
            verdict = "equal to the last bit"
        yield f"{run.path}: {verdict}"
    if wrong:
        raise DataError(f"{wrong} of {len(chosen)} runs did not come back")
