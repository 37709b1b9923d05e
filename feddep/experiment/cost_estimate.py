"""How long runs will take, from the seconds in the provenance of records and results of runs like them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.experiment import plan, records
from feddep.experiment.plan import Run
from feddep.experiment.step_jobs import StepJob, step_jobs
from feddep.utils.errors import FeddepError

CLASSIFIER = "classifier"
"""Stage of a run that is no step: training the classifier."""


@dataclass(frozen=True)
class Estimate:
    """What a set of runs asks for.

    Attributes:
        runs: number of runs.
        to_train: number of those that have to be trained.
        steps: number of steps that have to be computed for them, each once.
        recorded: number of runs that a published record stands in for.
        core_seconds: seconds times threads that training takes, and the steps; of what is known.
        unknown: number of classifiers and steps to compute of which no record of the same method tells how long they take.
    """

    runs: int
    to_train: int
    steps: int
    recorded: int
    core_seconds: float
    unknown: int

    def __str__(self) -> str:
        """One sentence, such as ``564 runs: 12 to train (about 0.40 core-hours), 552 from records``."""
        steps = f", with {_many(self.steps, 'step')}" if self.steps else ""
        time = f" ({self.time}{steps})" if self.to_train or self.steps else ""
        finished = self.runs - self.to_train - self.recorded
        before = f", {finished} finished before" if finished else ""
        return f"{_many(self.runs, 'run')}: {self.to_train} to train{time}, {self.recorded} from records{before}"

    @property
    def time(self) -> str:
        """The core-hours in words."""
        if self.unknown and not self.core_seconds:
            return "no record tells how long that takes"
        known = f"about {hours(self.core_seconds)} core-hours"
        return f"{known}, and {_many(self.unknown, 'job')} of which no record tells" if self.unknown else known


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def hours(seconds: float) -> str:
    """Seconds in hours, with as many digits as an estimate deserves."""
    return f"{seconds / 3600:,.0f}" if seconds > 36_000 else f"{seconds / 3600:.2f}" if seconds > 36 else f"{seconds / 3600:.4f}"


class Durations:
    """Seconds times threads that published records, and results that are there, have taken.

    Args:
        config: names the folders of both.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        published = Path(config["records"]["directory"]).glob("*/*/*/*/seed*.json")
        results = Path(config["output"], "runs").glob("*/*/*/*/seed*/metrics.json")
        self._files: dict[str, list[tuple[tuple[str, ...], Path]]] = {}
        for depth, paths in ((1, published), (2, results)):
            for path in paths:
                cell = path.parts[-depth - 4 : -depth]
                self._files.setdefault(variants.base(cell[3]), []).append((cell, path))
        self._read: dict[Path, dict[str, float]] = {}
        self._known: dict[tuple[str, ...], dict[str, float]] = {}

    def of(self, run: Run) -> dict[str, float]:
        """Core-seconds of a run by stage: its steps, and ``classifier``.

        They are the median over the seeds of the same method, dataset, number of clients and setting, or else over the
        nearest to it: the same method, with as much of dataset, clients, setting and options, in this order, the same as
        can be. Seconds of the classifier are in proportion to rounds and local epochs; nothing else is corrected for.

        Returns:
            No stage where no record of the method is there.
        """
        cell = (run.setting, run.dataset, run.scope, run.method)
        if cell not in self._known:
            candidates = self._files.get(variants.base(run.method), [])
            distances = {path: _distance(cell, other) for other, path in candidates}
            nearest = min(distances.values(), default=None)
            found = [self._of_file(path) for path, distance in distances.items() if distance == nearest]
            known: dict[str, list[float]] = {}
            for stage, seconds in (pair for each in found for pair in each.items()):
                known.setdefault(stage, []).append(seconds)
            self._known[cell] = {stage: median(values) for stage, values in known.items()}
        scaled = dict(self._known[cell])
        if CLASSIFIER in scaled:
            scaled[CLASSIFIER] *= _epochs(entry(self._config, "settings", run.setting))
        return scaled

    def _of_file(self, path: Path) -> dict[str, float]:
        """What a record tells, its classifier's seconds for one local epoch of one round; nothing where it cannot be read."""
        if path not in self._read:
            try:
                content = records.read(path)
                provenance, setting = content["provenance"], content["result"]["specification"]["setting"]
                seconds = {**provenance.get("seconds_before", {}), CLASSIFIER: provenance["seconds"] / _epochs(setting)}
                self._read[path] = {stage: value * provenance.get("threads", 1) for stage, value in seconds.items()}
            except (FeddepError, OSError, LookupError, TypeError, ZeroDivisionError):
                self._read[path] = {}  # whoever needs it says what is wrong with it
        return self._read[path]


def _epochs(setting: Any) -> int:
    """Local epochs of the classifier over all rounds."""
    return setting["rounds"] * setting["local_epochs"]


def _distance(cell: tuple[str, ...], other: tuple[str, ...]) -> tuple[bool, ...]:
    """What differs between two cells of setting, dataset, scope and method: what weighs most comes first."""
    names = [ours != theirs for ours, theirs in zip(map(variants.base, cell), map(variants.base, other), strict=True)]
    setting, dataset, scope, _ = names
    options = [ours != theirs for ours, theirs in zip(cell, other, strict=True)]
    return (dataset, scope, setting, options[3], options[1], options[0])


def of_runs(config: Config, runs: Iterable[Run], durations: Durations) -> Estimate:
    """What runs ask for, given the records and the results that are there.

    Raises:
        DataError: if a record of a run is damaged.
    """
    asked = list(dict.fromkeys(runs))
    artifacts = {run: records.of_run(config, run) for run in asked}
    missing = [run for run, artifact in artifacts.items() if artifact.source == artifact.result]
    to_train = [run for run in missing if not _finished(artifacts[run])]
    steps = {job.file: job for run in to_train for job in step_jobs(config, run)}
    to_compute = [job for job in steps.values() if not Path(config["output"], job.file).is_file()]
    return of_jobs(to_train, to_compute, len(asked), len(asked) - len(missing), durations)


def of_jobs(to_train: Sequence[Run], steps: Sequence[StepJob], runs: int, recorded: int, durations: Durations) -> Estimate:
    """What classifiers and steps that have to be computed take, among so many runs of which so many come from records."""
    stages = [(run, CLASSIFIER) for run in to_train] + [(job.run, job.step.stage) for job in steps]
    seconds = [durations.of(run).get(stage) for run, stage in stages]
    known = [each for each in seconds if each is not None]
    return Estimate(runs, len(to_train), len(steps), recorded, sum(known), len(seconds) - len(known))


def _finished(artifact: records.Artifact) -> bool:
    """Whether the result is there, undamaged and with its key."""
    try:
        return bool(records.read(artifact.result, artifact.key))
    except FeddepError:
        return False


def parts(config: Config) -> Iterator[tuple[str, list[Run]]]:
    """The main tables and every study, each with its runs."""
    yield "tables", plan.runs(config)
    for study in config["studies"]:
        yield study, plan.study_runs(config, study)
