"""Numbers of published tables, computed again: runs are trained anew and compared with their records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feddep.config.loading import Config
from feddep.experiment import plan, records, retraining
from feddep.utils.errors import ConfigError, DataError

CELL = ("setting", "dataset", "method", "clients")
"""What tells one cell of a table from another; its runs differ in their seeds alone."""


@dataclass(frozen=True)
class Comparison:
    """A run that was trained anew, and its record.

    Attributes:
        run: the run.
        recorded, found: test accuracy at the round that is best on validation, of the record and now.
        difference: the larger of the two differences of accuracy, at that round and after the last.
        differing: parts of the result that differ in any bit, such as ``curve``.
        seconds: time of preparing its data and of the training with all its steps.
        kept: whether an earlier call trained it.
    """

    run: plan.Run
    recorded: float
    found: float
    difference: float
    differing: tuple[str, ...]
    seconds: float
    kept: bool

    def passed(self, tolerance: float) -> bool:
        """Whether nothing but rounding can have changed the numbers.

        Rounding shows in the training curve first, and never in the bytes that were sent.  So a record whose accuracy differs
        while its curve does not, or whose communication or partition differs, was not made by this code.
        """
        rounding = "curve" in self.differing and not {"communication", "partition"} & set(self.differing)
        return not self.differing or (rounding and self.difference <= tolerance)


def draw(
    config: Config,
    runs: Iterable[plan.Run],
    wanted: Mapping[str, Any],
    seed: int,
    max_seconds: float = float("inf"),
) -> dict[plan.Run, dict[str, Any]]:
    """One cell of a table, drawn uniformly at random: its runs, each with its record.

    Args:
        config: the configuration.
        runs: those of the table.
        wanted: values of some of :data:`CELL` that the cell must have.
        seed: seed of the draw.
        max_seconds: the most that the runs of the cell may have taken together when their records were made.

    Raises:
        ConfigError: if the table has no such cell.
        DataError: if no such cell has a record with today's key for each of its runs, or all took longer, or a record is damaged.
    """
    cells: dict[tuple[Any, ...], list[plan.Run]] = {}
    for run in runs:
        cells.setdefault(tuple(getattr(run, name) for name in CELL), []).append(run)
    for number, name in enumerate(CELL):
        if name in wanted and wanted[name] not in (there := {cell[number] for cell in cells}):
            known = ", ".join(sorted(str(each) for each in there if each is not None))
            raise ConfigError(f"--{name} is {wanted[name]}, of which there is no run; there are {known or 'none'}")
    chosen = [cell for cell in cells if all(cell[CELL.index(name)] == value for name, value in wanted.items())]
    if not chosen:
        asked = ", ".join(f"{name} {value}" for name, value in wanted.items())
        raise ConfigError(f"no cell has {asked} together; leave one of them out to draw among the others")
    unpublished, quickest = "", float("inf")
    for place in np.random.default_rng(seed).permutation(len(chosen)):
        cell = cells[chosen[place]]
        found = [records.of_run(config, run) for run in cell]
        if missing := next((run for run, each in zip(cell, found, strict=True) if not each.matches), None):
            unpublished = missing.path
            continue
        contents = [records.read(each.record, each.key) for each in found]
        seconds = sum(_seconds(content) for content in contents)
        if seconds <= max_seconds:
            return dict(zip(cell, contents, strict=True))
        quickest = min(quickest, seconds)
    if quickest < float("inf"):
        raise DataError(f"--max-seconds is {max_seconds:g}, and the quickest of these cells took {quickest:.0f} s")
    where = config["records"]["directory"]
    raise DataError(f"no cell of these has its records in {where}: that of {unpublished} is missing or has another key")


def _seconds(record: Mapping[str, Any]) -> float:
    made = record["provenance"]
    return float(made.get("seconds", 0)) + sum(made.get("seconds_before", {}).values())


def compare(config: Config, run: plan.Run, record: Mapping[str, Any], folder: Path, kept: Path | None = None) -> Comparison:
    """Train a run with all its steps in this process, and compare the result with its record.

    Args:
        config: the configuration.
        run: the run.
        record: its record.
        folder: where public graphs are kept.
        kept: where what is trained is kept, as for :func:`feddep.experiment.retraining.retrain`.

    Raises:
        DataError: if the record holds no result of a run, or no source has the raw files of the graph.
    """
    trained = retraining.retrain(config, run, folder, kept)
    differing = (*trained.differing(record["result"]), *(() if trained.partition_equal(config, run) else ("partition",)))
    before, now = (_accuracies(run, each) for each in (record["result"], trained.result))
    difference = max(abs(before[which] - now[which]) for which in now)
    return Comparison(run, before["best"], now["best"], difference, differing, trained.seconds, trained.kept)


def _accuracies(run: plan.Run, result: Mapping[str, Any]) -> dict[str, float]:
    try:
        return {which: float(result["accuracy"][which]) for which in ("best", "last")}
    except (KeyError, TypeError, ValueError):
        raise DataError(f"the record of {run.path} has no accuracy; delete it, and publish the run again") from None
