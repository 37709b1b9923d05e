# ruff: noqa: UP013
# Keys of a file need not be names in Python, as class is none.
"""Rows of the leaderboard that others submit: a folder a method, with ``row.yaml``, the files of
predictions that it names and, to be trained anew, a plugin.

What is in a folder is data of strangers: it is read, compared and never executed, but for a plugin
where that is asked for.
"""

import dataclasses
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from typing_extensions import TypedDict  # of which Pydantic needs this before Python 3.12

from feddep import judging
from feddep.config import entries, loading
from feddep.config.loading import Config
from feddep.config.sentences import show
from feddep.experiment import plan, runs
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
Method = TypedDict("Method", {"name": _Name, "class": _Kind, "paper": _Text, "license": _Text})
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
Search = TypedDict("Search", {"trials": int, "seeds": list[int], "chosen": dict[_Name, _Text]})
File = TypedDict("File", {"path": _File, "sha256": _Sha256, "graph": _Text})
Claim = TypedDict("Claim", {"test": Share, "validation": Share})


class Row(Parameters):
    """The content of ``row.yaml``.  Its grade is none of it: whoever checks it finds that.

    ``search.chosen`` has hyperparameters by graph; with a plugin, the setting and the method as
    this package spells them, with a space between.
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
    plugin: _File | None = None

    @property
    def names(self) -> set[str]:
        """The files of its folder."""
        others = {self.plugin} if self.plugin else set()
        return {ROW, *(each["path"] for each in self.files.values()), *others}


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
            have the accuracies.
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
    if unknown := ({*row.claims} - {*planned}) | ({*row.files} - {*row.claims}):
        raise ConfigError(
            f"{folder}: {min(unknown)} is none of the graphs {', '.join(planned)}, or has no claim"
        )
    claims: dict[str, Any] = dict(row.claims)
    for graph, given in row.files.items():
        file = folder / given["path"]
        scored = judge.score_seeds(file, planned[graph], trainer)
        if (known := predictions.identity(file)) != given:
            raise DataError(f"{file} has {known}, other than {ROW} says")
        means = scored[["test", "validation"]].mean().round(6).to_dict()
        if any(abs(means[part] - claimed) > TOLERANCE for part, claimed in claims[graph].items()):
            raise DataError(f"{folder}: claims.{graph} is {claims[graph]}; it is {means}")
    return {graph: "judged" if graph in row.files else "claimed" for graph in row.claims}


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
    plugins.use([str(folder / row.plugin)])
    planned = plan.compared_runs(config, row.protocol["study"])
    every = [run for graph in row.files for run in judge.one_a_seed(planned[graph]).values()]
    for run in random.sample(every, -(-len(every) // 10)):
        graph = run.dataset.name
        setting, _, method = row.search["chosen"].get(graph, "").partition(" ")
        anew = dataclasses.replace(
            run,
            setting=entries.one(config, "settings", setting),
            method=entries.one(config, "methods", method, run.dataset),
        )
        file = folder / row.files[graph]["path"]
        scored = judge.score_seeds(file, planned[graph], trainer).set_index("seed")["test"]
        found = load.tidy(runs.load(trainer.record(anew), [anew]))["test"].item()
        if abs(found - scored[run.seed]) > RETRAINED:
            raise DataError(
                f"{anew.path}: trained anew it has {found:.4f}, by its file {scored[run.seed]:.4f}"
            )
        yield f"{anew.path}: retrained, {found:.4f}, by its file {scored[run.seed]:.4f}"


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
