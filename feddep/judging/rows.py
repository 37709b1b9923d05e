# ruff: noqa: UP013
# Keys of a file need not be names in Python, as class is none.
"""Rows of the leaderboard that others submit: a folder a method, with ``row.yaml``, the files of
predictions that it names and, to be trained anew, a plugin.

What is in a folder is data of strangers: it is read, compared and never executed, but for a plugin
where that is asked for.
"""

import dataclasses
import hashlib
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import pandas as pd
from pydantic import Field, ValidationError
from typing_extensions import TypedDict  # of which Pydantic needs this before Python 3.12

from feddep import judging
from feddep.config import entries, loading, variants
from feddep.config.loading import Config
from feddep.config.sentences import show
from feddep.experiment import plan, runs
from feddep.experiment.plan import Run
from feddep.experiment.verification import Trainer
from feddep.judging import judge, predictions
from feddep.methods import plugins
from feddep.reporting import load
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.parameters import Parameters, Share

TOLERANCE = 1e-4
"""Most that a claim may be off."""
RETRAINED = 0.01
"""Most that an accuracy of a run that is trained anew may be off."""
ROW = "row.yaml"
_Text = Annotated[str, Field(min_length=1, max_length=500)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z]\w*$", max_length=40)]
_File = Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=80)]


_Url = Annotated[str, Field(pattern=r"^https://\S+$", max_length=200)]
_Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Kind = Literal["shared", "personalised"]
Method = TypedDict(
    "Method",
    {
        "name": _Name,
        "title": NotRequired[_Text],
        "class": _Kind,
        "paper": _Text,
        "license": _Text,
    },
)
Code = TypedDict("Code", {"url": _Url, "commit": _Commit, "command": _Text})
Submitter = TypedDict("Submitter", {"name": _Text, "contact": _Text})
Uses = TypedDict(
    "Uses",
    {
        "cross_client_edges": bool,
        "whole_graph": bool,
        "external_data": bool,
        "validation_labels": Literal["selection", "none"],
    },
)
Protocol = TypedDict("Protocol", {"study": _Text, "revision": int})
Search = TypedDict(
    "Search",
    {
        "trials": int | dict[_Name, int],
        "seeds": list[int],
        "space": NotRequired[dict[_Name, _Text]],
        "chosen": dict[_Name, _Text],
    },
)
File = TypedDict("File", {"path": _File, "sha256": _Sha256, "graph": _Text})
Claim = TypedDict("Claim", {"test": Share, "validation": Share})
Plugin = TypedDict("Plugin", {"path": _File, "sha256": _Sha256})
RunOf = TypedDict(
    "RunOf",
    {
        "seed": int,
        "key": Annotated[str, Field(pattern="^[0-9a-f]{16}$")],
        "test": Share,
        "validation": Share,
        "worst_client": Share | None,
        "macro_f1": Share | None,
        "bytes": int,
        "unfinished": bool,
        "stalled": bool,
    },
)
Verdict = TypedDict(
    "Verdict",
    {
        "graphs": NotRequired[int],
        "mean_difference": float | None,
        "low": float | None,
        "high": float | None,
        "verdict": _Text | None,
    },
)


class Row(Parameters):
    """The content of ``row.yaml``.  Its grade is none of it: whoever checks it finds that.

    ``search.chosen`` has hyperparameters by graph; with a plugin, the setting and the method as
    this package spells them, with a space between.  ``runs`` are those of a plugin, in place of
    files of predictions; ``verdicts`` are those of :func:`feddep.judging.judge.verdicts`.
    """

    format: Literal[1]
    method: Method
    code: Code
    submitter: Submitter
    uses: Uses
    protocol: Protocol
    feddep: _Text
    search: Search
    files: dict[_Name, File]
    claims: Annotated[dict[_Name, Claim], Field(min_length=1)]
    runs: dict[_Name, list[RunOf]] = Field(default_factory=dict)
    verdicts: dict[_Name, Verdict] = Field(default_factory=dict)
    plugin: Plugin | None = None
    machine: list[_Text] = Field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The files of its folder."""
        others = [self.plugin] if self.plugin else []
        return {ROW, *(each["path"] for each in [*self.files.values(), *others])}

    @property
    def shown(self) -> list[str]:
        """The graphs of its files and runs."""
        return [*dict.fromkeys([*self.files, *self.runs])]

    @property
    def uses_beyond(self) -> list[str]:
        """What it uses of :data:`feddep.judging.judge.USES`."""
        return [each for each in judge.USES if dict(self.uses)[each]]

    def scored(
        self, folder: Path, graph: str, planned: Sequence[Run], trainer: Trainer
    ) -> pd.DataFrame:
        """What its file of predictions is worth, or else what it says of its runs.

        Raises:
            DataError: as :func:`feddep.judging.judge.score_seeds`.
        """
        if graph in self.files:
            return judge.score_seeds(folder / self.files[graph]["path"], planned, trainer)
        return judge.of_runs(self.runs[graph], planned)


def read(file: Path) -> Row:
    """A row.

    Raises:
        ConfigError: if a key is missing, unknown, there twice or of another type.
    """
    try:
        return Row.model_validate(loading.read(file))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{file}: {where} is {show(first['input'])}: {first['msg']}") from None


def grades(config: Config, folder: Path, trainer: Trainer) -> dict[str, str]:
    """The grade of a row on each graph that it claims: ``judged`` where a file of predictions has
    the accuracies, else ``claimed``.

    Raises:
        ConfigError: as :func:`read`, or if a graph is none of the study.
        DataError: if the folder is not named after the method or has other files than the row
            names, the row is of another revision, or a file is another one, is refused or does not
            have the accuracies, or these do not have the verdicts.
    """
    row, there = read(folder / ROW), list(folder.rglob("*"))
    names = {str(each.relative_to(folder)) for each in there if not each.is_symlink()}
    if len(there) != len(names) or names != row.names or row.method["name"] != folder.name:
        raise DataError(
            f"{folder} has {', '.join(sorted(each.name for each in there))}; a folder "
            f"{row.method['name']} with the plain files {', '.join(sorted(row.names))} is needed"
        )
    if row.protocol["revision"] != judging.REVISION:
        raise DataError(f"{folder}: protocol.revision is not {judging.REVISION}, which is judged")
    planned = plan.compared_runs(config, row.protocol["study"])
    if unknown := ({*row.claims} - {*planned}) | ({*row.shown} - {*row.claims}):
        raise ConfigError(
            f"{folder}: {min(unknown)} is none of the graphs {', '.join(planned)}, or has no claim"
        )
    for each in [*row.files.values(), *([row.plugin] if row.plugin else [])]:
        file = folder / each["path"]
        known = predictions.identity(file) if "graph" in each else plugin(file)
        if known != each:
            raise DataError(f"{file} has {known}, other than {ROW} says")
    scored = {graph: row.scored(folder, graph, planned[graph], trainer) for graph in row.shown}
    for graph, of in scored.items():
        means = {part: float(of[part].mean()) for part in ("test", "validation")}
        _check(f"{folder}: claims.{graph}", dict(row.claims[graph]), means)
    known_verdicts = _verdicts(config, row, planned, scored) if scored else {}
    if {*known_verdicts} != {*row.verdicts}:
        raise DataError(f"{folder}: verdicts are needed of {', '.join(known_verdicts)} alone")
    for name, verdict in known_verdicts.items():
        _check(f"{folder}: verdicts.{name}", dict(row.verdicts[name]), verdict)
    return {graph: "judged" if graph in row.files else "claimed" for graph in row.claims}


def _verdicts(
    config: Config,
    row: Row,
    planned: Mapping[str, Sequence[Run]],
    scored: Mapping[str, pd.DataFrame],
) -> dict[str, dict[str, Any]]:
    name, every = row.method["name"], pd.concat(scored.values(), ignore_index=True)
    beside = [run for graph in scored for run in planned[graph]]
    found = load.assemble(config, row.protocol["study"], beside, runs.load(config, beside))
    with judge.named(name, row.uses_beyond):
        return judge.verdicts(judge.compare(found, name, every), every)


def _check(where: str, claimed: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Make sure that numbers are nearly those that are known, and all else is the same."""
    for key, value in known.items():
        near = isinstance(value, float) and isinstance(claimed.get(key), float)
        if abs(value - claimed[key]) > TOLERANCE if near else value != claimed.get(key):
            raise DataError(f"{where}.{key} is {claimed.get(key)}; it is {value}")


def plugin(file: Path) -> dict[str, str]:
    """What a row says of a plugin."""
    return {"path": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def changed(base: Path, head: Path) -> list[str]:
    """The method whose folder differs between two folders of submissions.

    Raises:
        DataError: if several differ, a row is removed, or a row loses a graph.
    """
    before, after = (
        {file.relative_to(of): file.read_bytes() for file in of.glob("*/**/*") if file.is_file()}
        for of in (base, head)
    )
    differing = [file for file in {*before, *after} if before.get(file) != after.get(file)]
    names = sorted({file.parts[0] for file in differing})
    if len(names) > 1:
        raise DataError(f"{head} changes {', '.join(names)}; one method may be changed at a time")
    for name in names:
        if Path(name, ROW) in before:
            lost = {*read(base / name / ROW).claims} - {*read(head / name / ROW).claims}
            if lost:
                raise DataError(f"{head / name} lacks {', '.join(sorted(lost))}, which it had")
    return names


def retrain(config: Config, folder: Path, trainer: Trainer) -> Iterator[str]:
    """Execute the plugin of a row, train a tenth of its runs, drawn at random, and say what each
    has, for the grade ``retrained``.

    Raises:
        ConfigError: if there is no plugin, or no such hyperparameters.
        DataError: if an accuracy is off by more than :data:`RETRAINED`.
    """
    row = read(folder / ROW)
    if row.plugin is None:
        raise ConfigError(f"{folder} has no plugin, which would be trained")
    file = folder / row.plugin["path"]
    plugins.use([str(file)])
    planned = plan.compared_runs(config, row.protocol["study"])
    every = [run for graph in row.shown for run in judge.one_a_seed(planned[graph]).values()]
    for run in random.sample(every, -(-len(every) // 10)):
        graph = run.dataset.name
        setting, _, method = row.search["chosen"].get(graph, "").partition(" ")
        if variants.base(method) not in plugins.declared_in(file):
            raise DataError(f"{folder}: search.chosen.{graph} is of no method of {file.name}")
        anew = dataclasses.replace(
            run,
            setting=entries.one(config, "settings", setting),
            method=entries.one(config, "methods", method, run.dataset),
        )
        scored = row.scored(folder, graph, planned[graph], trainer).set_index("seed")
        if "key" in scored and scored["key"][run.seed] != anew.key:
            raise DataError(f"{anew.path}: {ROW} has another key, so that it is of another run")
        found = load.tidy(runs.load(trainer.record(anew), [anew]))["test"].item()
        claimed = scored["test"][run.seed]
        if abs(found - claimed) > RETRAINED:
            raise DataError(f"{anew.path}: trained anew it has {found:.4f}, not {claimed:.4f}")
        yield f"{anew.path}: retrained, {found:.4f}, submitted {claimed:.4f}"


def prepare(judged: Path, submissions: Path) -> Path:
    """Copy a row that is filled in, and the files that it names, to a folder of its own.

    Raises:
        ConfigError: as :func:`read`.
    """
    row = read(judged / ROW)
    target = submissions / row.method["name"]
    target.mkdir(parents=True, exist_ok=True)
    for name in row.names:
        shutil.copyfile(judged / name, target / name)
    return target
