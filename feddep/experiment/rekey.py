"""Moving records to new keys: after a change that renames options or code but not numbers.

A random sample of the runs whose key or code is another than their record's is trained anew, every method, dataset and setting
among these at least once.  If each gives the result of its record, all records are written under the keys, specifications and
code fingerprints of today.  A record of another machine may differ in the last bits; its run is then compared with what the code
before the change gives on this machine.
"""

import math
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import keys, plan, records, retraining
from feddep.experiment.migration import migrated
from feddep.experiment.provenance import environment
from feddep.methods import plugins
from feddep.utils.errors import DataError
from feddep.utils.progress import track
from feddep.utils.storage import read_json, write_result, write_text


@dataclass(frozen=True)
class Verified:
    """A run that was trained anew.

    Attributes:
        run: the run.
        old_key: key of its record before.
        key: its key now.
        equal: whether the result is that of the record, to the last bit.
        equal_before: whether the result is, where the record's is not, what the code before the change gives on this machine.
        partition_equal: whether the statistics of its partition are; True without one.
        seconds: time of preparing its data and of the training with all its steps.
    """

    run: plan.Run
    old_key: str
    key: str
    equal: bool
    partition_equal: bool
    seconds: float
    equal_before: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing but the machine changed the numbers."""
        return self.partition_equal and (self.equal or self.equal_before)


def find_records(config: Config, renames: Mapping[str, Any]) -> dict[plan.Run, dict[str, Any]]:
    """The record of every planned run, found by its specification under the names of today.

    Args:
        config: the configuration.
        renames: as for :func:`feddep.experiment.migration.migrated`.

    Raises:
        DataError: if a run has no record.
    """
    directory = Path(config["records"]["directory"])
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in sorted(directory.rglob("*.json")):
        content = records.read(path)
        if "result" in content:
            specification = migrated(content["result"]["specification"], renames)
            found.setdefault(keys.digest(specification), {})[path.relative_to(directory).as_posix()] = content
    matched = {}
    for run in plan.all_runs(config):
        candidates = found.get(keys.digest(keys.specification(config, run)), {})
        if not candidates:
            raise DataError(f"no record in {directory} has the specification of {run.path}; train it, or name what was renamed")
        matched[run] = candidates.get(f"{run.path}.json") or next(iter(candidates.values()))
    return matched


def outdated(config: Config, matched: Mapping[plan.Run, dict[str, Any]]) -> list[plan.Run]:
    """The runs whose record has another key than theirs of today, or was made by other code."""
    return [
        run
        for run, record in matched.items()
        if (record["key"], record["provenance"]["code"]) != (keys.run_key(config, run), records.run_fingerprint(config, run))
    ]


def draw_sample(runs: Sequence[plan.Run], share: float, seed: int) -> list[plan.Run]:
    """Runs drawn at random, at least ``share`` of all, with every method, dataset and setting among them.

    Args:
        runs: all runs.
        share: from 0 to 1.
        seed: seed of the draw.
    """
    order = [runs[i] for i in np.random.default_rng(seed).permutation(len(runs))]
    covered: set[tuple[str, str]] = set()
    chosen = []
    for run in order:
        kinds = {(part, variants.base(getattr(run, part))) for part in ("method", "dataset", "setting")}
        if not kinds <= covered:
            covered |= kinds
            chosen.append(run)
    others = [run for run in order if run not in set(chosen)]
    return [*chosen, *others[: max(0, math.ceil(share * len(runs)) - len(chosen))]]


def verify(
    config: Config,
    sample: Mapping[plan.Run, dict[str, Any]],
    folder: Path,
    mirror: str | None,
    jobs: int,
    before: Path | None = None,
) -> list[Verified]:
    """Train the runs of a sample and compare them with their records.

    Args:
        config: the configuration.
        sample: the runs with their records.
        folder: where raw files are downloaded to, and where what is trained is kept, so that an interrupted call goes on.
        mirror: a folder or URL of raw files.
        jobs: number of processes.
        before: a results folder with the runs that the code before the change made on this machine.
    """
    for dataset in {variants.base(run.dataset) for run in sample}:
        retraining.fetch_graph(config, dataset, folder, mirror)
    work = [(config, run, record, folder, before) for run, record in sample.items()]
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=4) as pool:
        return list(track(pool.imap_unordered(_verify_one, work), "runs trained anew", total=len(work)))


def _verify_one(work: tuple[Config, plan.Run, dict[str, Any], Path, Path | None]) -> Verified:
    import torch

    config, run, record, folder, before = work
    config = Config(config)
    plugins.use(config.get("plugins", ()))  # this is another process than the one that read the configuration
    torch.set_num_threads(1)
    found = retraining.retrain(config, run, folder, folder / "trained")
    former = before and before / "runs" / run.path / "metrics.json"
    return Verified(
        run,
        old_key=record["key"],
        key=keys.run_key(config, run),
        equal=not found.differing(record["result"]),
        partition_equal=found.partition_equal(config, run),
        seconds=found.seconds,
        equal_before=bool(former and former.is_file() and not found.differing(read_json(former)["result"])),
    )


def move(config: Config, matched: Mapping[plan.Run, dict[str, Any]]) -> None:
    """Write every record under today's key, specification, fingerprint and path; remove those that no run has any more."""
    directory = Path(config["records"]["directory"])
    written = set()
    for run, record in matched.items():
        result = {**record["result"], "specification": keys.specification(config, run)}
        provenance = {**record["provenance"], "code": records.run_fingerprint(config, run)}
        path = directory / f"{run.path}.json"
        write_result(path, {"key": keys.run_key(config, run), "result": result, "provenance": provenance})
        written.add(path)
    for artifact in (
        *(records.of_partition(config, spec) for spec in plan.partitions(config)),
        *(records.of_graph(config, dataset) for dataset in plan.datasets(config)),
    ):
        if artifact.record.is_file():
            write_result(artifact.record, {**records.read(artifact.record), "key": artifact.key})
            written.add(artifact.record)
    for path in set(directory.rglob("*.json")) - written:
        path.unlink()
    for folder in sorted((path for path in directory.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def write_log(path: Path, runs: int, verified: Sequence[Verified], seed: int) -> None:
    """Write what was verified, of how many outdated runs; Markdown, a line a run."""
    made = environment()
    before = sum(each.equal_before and not each.equal for each in verified)
    commit = f"{made['git']['commit']}{' with changes' if made['git']['dirty'] else ''}"
    lines = [
        "# Records moved to new keys\n",
        f"{len(verified)} of the {runs} runs whose key or code had changed, drawn at random with seed {seed}, were trained anew "
        f"at commit {commit}, {made['time']}, {made['platform']}, Python {made['python']}, PyTorch {made['packages']['torch']}: "
        f"{sum(each.equal for each in verified)} gave the result of their record to the last bit, "
        f"{before} that of the code before the change on this machine, and "
        f"{sum(each.partition_equal for each in verified)} their partition's statistics.\n",
        "| run | old key | new key | result equal | partition equal | s |",
        "| --- | --- | --- | --- | --- | ---: |",
    ]
    for each in sorted(verified, key=lambda each: each.run.path):
        result = "yes" if each.equal else "on this machine" if each.equal_before else "NO"
        answers = [result, "yes" if each.partition_equal else "NO"]
        cells = [each.run.path, each.old_key[:12], each.key[:12], *answers, f"{each.seconds:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    write_text(path, "\n".join(lines) + "\n")
