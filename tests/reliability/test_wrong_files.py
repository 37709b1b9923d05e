"""Every command with every wrong file: one sentence, a status other than 0, no traceback, and nothing half-written."""

import argparse
import csv
import functools
import importlib
import itertools
import json
import os
import re
import resource
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import yaml
from trials import QUICK_AND_FULL, number_of

from feddep import cli
from feddep.audit import audit_report
from feddep.cli import commands, main
from feddep.config.loading import MEASURED, load
from feddep.datasets import fetching
from feddep.datasets.public_graphs import REGISTRY
from feddep.datasets.fetching import sources
from feddep.stages import flags
from feddep.utils.checksum_lists import write_list

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG: dict[str, Any] = {
    "output": "out",
    "records": {"directory": "none"},
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}},
    "clients": [3],
    "seeds": [0],
    "partition": {"delta": 5},
    "settings": {"quick": {"rounds": 1, "hidden_channels": 8}},
    "methods": {"feddep": {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1}, "fedavg": {}},
    "tables": [{"setting": "quick", "methods": ["fedavg"]}],
    "studies": [{"name": "history", "kind": "curves", "runs": [{}]}],
    "quality": [{"methods": {"feddep": {}}}],
    **{key: [] for key in MEASURED if key != "quality"},
}
OTHER = {
    **CONFIG,
    "output": "other",
    "datasets": {"mini": {"synthetic": {**CONFIG["datasets"]["mini"]["synthetic"], "nodes": 66}}},
}
OTHER["clients"] = [2]
RECORDED = {**CONFIG, "records": {"directory": "records"}}
CELL = ["--dataset", "mini", "--seed", "0"]


def data(output: str, clients: int, config: str) -> list[list[str]]:
    """The commands that make a graph, its split and its partition."""
    graph = f"{output}/graphs/mini.safetensors"
    partition = f"{output}/partitions/mini/m{clients}/seed0"
    given = ["--config", config, *CELL]
    return [
        ["prepare", "--config", config, "--dataset", "mini", "--graph", graph, "--statistics", f"{output}/graphs/mini.json"],
        ["split", *given, "--graph", graph, "--output", f"{output}/splits/mini/seed0.safetensors"],
        [
            "partition",
            *given,
            "--clients",
            str(clients),
            "--graph",
            graph,
            "--output",
            f"{partition}.safetensors",
            "--statistics",
            f"{partition}.json",
        ],
    ]


DATA = ["--graph", "out/graphs/mini.safetensors", "--split", "out/splits/mini/seed0.safetensors"]
PARTITION = "out/partitions/mini/m3/seed0.safetensors"
RUN = ["--config", "config.yaml", *CELL, "--setting", "quick", "--clients", "3", *DATA, "--partition", PARTITION]
FEDDEP = [*RUN, "--method", "feddep"]
PRETRAIN, PROTOTYPES = ["--step", "pretrain=steps/pretrain.safetensors"], ["--step", "prototypes=steps/prototypes.safetensors"]
TRAINED = "out/runs/quick/mini/m3/fedavg/seed0"
PREPARATION = [
    *data("out", 3, "config.yaml"),
    *data("other", 2, "other.yaml"),
    ["step", *FEDDEP, "--stage", "pretrain", "--output", "steps/pretrain.safetensors"],
    ["step", *FEDDEP, "--stage", "prototypes", *PRETRAIN, "--output", "steps/prototypes.safetensors"],
    [
        "classify",
        *RUN,
        "--method",
        "fedavg",
        "--metrics",
        f"{TRAINED}/metrics.json",
        "--model",
        f"{TRAINED}/model.safetensors",
    ],
    ["study", "--config", "config.yaml", "--study", "history", "--output", "out/studies/history"],
    ["measure", *FEDDEP, *PRETRAIN, *PROTOTYPES, "--measurement", "quality", "--output", "quality.json"],
    [
        "measure",
        *RUN,
        "--method",
        "fedavg",
        "--measurement",
        "label_distributions",
        "--model",
        f"{TRAINED}/model.safetensors",
        "--output",
        "labels.json",
    ],
    *(
        ["audit", *RUN, "--method", method, "--part", part, "--output", f"findings/{part}.csv"]
        for part, method in (("membership", "fedavg"), ("reconstruction", "feddep"))
    ),
    ["publish", "--config", "recorded.yaml"],
]
"""Commands that make the files of all kinds."""


CANARIES = """\
releases,degree,runs,promised_epsilon,promised_delta,promise,low,delta,confidence,likely,unlikely,least_delta,trials,sigma,steps,most,canaries,guesses,correct,attainable
an update,3,8,1.0,1e-05,x,0.5,1e-05,0.95,0.5,0.0,0.1,4,,,,,,,
every step,0,2,4.0,1e-05,x,0.2,1e-05,0.95,,,,,2,13,6.0,20,6,3,1.7
"""
PROPERTIES = "property,leaves,clients,auc,auc_low,auc_high,model\ndensity,an update,9,0.5,0.4,0.6,m\n"
FINDINGS = [part for name in audit_report.PARTS for part in ("--findings", f"findings/{name}.csv")]
GRAPH = ["--graph", "out/graphs/mini.safetensors", "--partition", PARTITION]
SPLIT = ["--split", "out/splits/mini/seed0.safetensors"]
COMMANDS: dict[str, list[list[str]]] = {
    "audit": [
        [*FEDDEP, *PRETRAIN, *PROTOTYPES, "--part", "report", *FINDINGS, "--output", "new/audit"],
        [*FEDDEP, *PRETRAIN, *PROTOTYPES, "--part", "reconstruction", "--output", "new/reconstruction.csv"],
    ],
    "classify": [[*FEDDEP, *PRETRAIN, *PROTOTYPES, "--metrics", "new/metrics.json", "--model", "new/model.safetensors"]],
    "config": [["--check", "--folder", "config"]],
    "cut": [[*RUN, "--method", "fedavg", "--output", "new/participants"]],
    "estimate": [["--config", "config.yaml", "--study", "history"], ["--config", "recorded.yaml"]],
    "figures": [["--config", "config.yaml", "--output", "new/figures"]],
    "guarantees": [
        [
            "--config",
            "config.yaml",
            "--graph",
            "mini=out/graphs/mini.safetensors",
            "--split",
            "mini=out/splits/mini/seed0.safetensors",
            "--partition",
            f"mini/m3={PARTITION}",
            "--output",
            "new/guarantees",
        ]
    ],
    "measure": [
        [*FEDDEP, *PRETRAIN, *PROTOTYPES, "--measurement", "quality", "--output", "new/quality.json"],
        [
            *RUN,
            "--method",
            "fedavg",
            "--measurement",
            "label_distributions",
            "--model",
            f"{TRAINED}/model.safetensors",
            "--output",
            "new/labels.json",
        ],
    ],
    "measurement_table": [
        ["--config", "config.yaml", "--measurement", "quality", "--input", "quality.json", "--output", "new/pages"],
        ["--config", "config.yaml", "--measurement", "label_distributions", "--input", "labels.json", "--output", "new/pages"],
    ],
    "partition": [
        [
            "--config",
            "config.yaml",
            *CELL,
            "--clients",
            "3",
            *DATA[:2],
            "--output",
            "new/partition.safetensors",
            "--statistics",
            "new/partition.json",
        ]
    ],
    "prepare": [
        ["--config", "config.yaml", "--dataset", "mini", "--graph", "new/graph.safetensors", "--statistics", "new/graph.json"],
    ],
    "publish": [["--config", "config.yaml"]],
    "rekey": [["--config", "recorded.yaml", "--renames", "renames.yaml", "--log", "new/log.md"]],
    "report": [["--config", "config.yaml", "--output", "new/report", "--study", "history=out/studies/history"]],
    "reproduction": [["--config", "config.yaml", "--output", "new/reproduction"]],
    "split": [["--config", "config.yaml", *CELL, *DATA[:2], "--output", "new/split.safetensors"]],
    "step": [[*FEDDEP, "--stage", "prototypes", *PRETRAIN, "--output", "new/step.safetensors"]],
    "study": [["--config", "config.yaml", "--study", "history", "--output", "new/study"]],
    "tables": [["--config", "config.yaml", "--output", "new/tables"], ["--config", "recorded.yaml", "--output", "new/tables"]],
    "verify": [["--config", "recorded.yaml", "--method", "fedavg", "--work", "work"]],
    "workflow": [["--output", "new/copy"]],
}
"""Right uses of every command: what lies in new/ is written, all else is read."""
METRICS, DIVIDED, DESCRIBED = f"{TRAINED}/metrics.json", "out/partitions/mini/m3/seed0.json", "out/graphs/mini.json"
RECORDS = ["records/quick/mini/m3/fedavg/seed0.json", "records/partitions/mini/m3/seed0.json", "records/graphs/mini.json"]
READ: dict[str, list[str]] = {
    "figures": [METRICS, DIVIDED, DESCRIBED],
    "report": [METRICS, DIVIDED, DESCRIBED, "out/studies/history/study.sha256", "out/studies/history/table.md"],
    **{command: ["steps/pretrain.json"] for command in ("classify", "step", "measure")},
    "audit": ["steps/pretrain.json", "findings/membership.json", "findings/membership.sha256"],
    "config": ["config/schema.json", "config/README.md"],
    "estimate": RECORDS[:1],
    "publish": [METRICS, DIVIDED, DESCRIBED],
    "rekey": RECORDS,
    "study": [METRICS],
    "tables": [METRICS, DIVIDED, DESCRIBED, *RECORDS],
    "verify": RECORDS[:1],
}
"""What commands read beside what their flags name."""


class Workplace:
    """A folder with files of all kinds, in which commands are tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.chdir(folder)
        for name, config in (("config.yaml", CONFIG), ("other.yaml", OTHER), ("recorded.yaml", RECORDED)):
            Path(name).write_text(yaml.safe_dump(config))
        Path("renames.yaml").write_text("{}")
        for part, table in (("canaries", CANARIES), ("properties", PROPERTIES)):
            Path("findings").mkdir(exist_ok=True)
            Path(f"findings/{part}.csv").write_text(table)
            Path(f"findings/{part}.json").write_text('{"run": "a"}')
            write_list(f"findings/{part}.sha256", [f"findings/{part}.csv", f"findings/{part}.json"])
        shutil.copytree(REPOSITORY / "config", "config")
        for arguments in PREPARATION:
            assert main(arguments) == 0, arguments
        self.files = self.state()

    def state(self) -> dict[str, bytes | None]:
        """Every file with its content, and every folder."""
        found = sorted(self.folder.rglob("*"))
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() if path.is_file() else None for path in found}

    def restore(self) -> None:
        """Leave the folder as it was after the preparation."""
        for path, content in self.state().items():
            if path not in self.files or (content is None) != (self.files[path] is None):
                remove(Path(path))
        for path, content in self.files.items():
            if content is None:
                Path(path).mkdir(exist_ok=True)
            elif not Path(path).is_file() or Path(path).read_bytes() != content:
                Path(path).write_bytes(content)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def file_flags(command: str) -> set[str]:
    """The flags of a command that name files or folders."""
    parser = argparse.ArgumentParser()
    importlib.import_module({each.name: each.module for each in commands()}[command]).add_arguments(parser)
    named = [each for each in parser._actions if each.type is Path or str(each.metavar).endswith(("FILE", "DIR"))]
    return {each.option_strings[0] for each in named}


def named_files(command: str, arguments: list[str]) -> list[str]:
    """The files and folders that a command line names."""
    pairs = itertools.pairwise(arguments)
    return list(dict.fromkeys(value.rpartition("=")[2] for flag, value in pairs if flag in file_flags(command)))


def test_every_flag_of_a_file_is_tried():
    assert {command.name for command in commands()} == {*COMMANDS, "download", "federate", "privacy"}
    elsewhere = {"prepare": {"--raw"}, "rekey": {"--work", "--before"}}  # below; and where it is read after training
    for command, uses in COMMANDS.items():
        assert file_flags(command) - elsewhere.get(command, set()) <= {argument for use in uses for argument in use}, command


Wrong = Callable[[Path, bytes], None]
"""Puts something wrong in the place of a file with that content."""


def put(content: bytes | str) -> Wrong:
    return lambda path, right: void(path.write_bytes(content.encode() if isinstance(content, str) else content))


def void(value: object) -> None:
    """Nothing, whatever a function returns."""


def folder(path: Path, right: bytes) -> None:
    path.unlink()
    path.mkdir()


ANY: dict[str, Wrong] = {
    "missing": lambda path, right: path.unlink(),
    "a folder": folder,
    "empty": put(""),
    "binary": put(bytes(range(256)) * 4),
    "half of it": lambda path, right: void(path.write_bytes(right[: len(right) // 2])),
    "other text": put("nothing: [of, the, kind\n"),
}
JSONS = {text: put(text) for text in ("[]", "{}", "3", "null", '"a"', "[{}]", '{"key": 3}', "[" * 2000)}
"""JSON of another shape."""


def wrong_files(path: str, right: bytes, kinds: Mapping[str, bytes]) -> Iterator[tuple[str, Wrong]]:
    """What to put in the place of a file, with a name each."""
    yield from ANY.items()
    suffix = path.rpartition(".")[2]
    if suffix in ("json", "yaml"):
        yield from JSONS.items()
    if suffix == "csv":
        yield from ((text, put(text)) for text in ("a,b\n1,2\n", '"'))
    if suffix == "safetensors":
        yield from ((f"in place of it, {kind}", put(content)) for kind, content in kinds.items() if content != right)


def changed_files(path: str, right: bytes) -> Iterator[tuple[str, Wrong]]:
    """As :func:`wrong_files`, with one thing in the file changed; what does not read it may still go on."""
    if path.endswith(".json") and not path.startswith("findings/"):
        for place in places(json.loads(right)):
            for name, value in (("removed", None), ("of another type", {"a": []})):
                yield f"{'.'.join(map(str, place))} {name}", changed_json(place, value)
    if path.endswith(".csv"):
        rows = list(csv.reader(right.decode().splitlines()))
        for column, name in enumerate(rows[0]):
            if re.match(r"-?\d", rows[1][column]):
                yield (
                    f"column {name} of text",
                    put_rows([rows[0], *([*row[:column], "x", *row[column + 1 :]] for row in rows[1:])]),
                )
        yield "no row", put_rows(rows[:1])
    if path.endswith(".safetensors") and path.startswith("out/") and "model" not in path:
        for name in arrays_of(right):
            for change, function in CHANGES.items():
                yield f"{name} {change}", changed_array(name, function)


def put_rows(rows: list[list[str]]) -> Wrong:
    return put("".join(",".join(row) + "\n" for row in rows))


def places(value: Any, depth: int = 2) -> Iterator[tuple[str | int, ...]]:
    """The places in a JSON value, the first of every list, so many levels deep."""
    items: list[tuple[Any, Any]] = list(value.items()) if isinstance(value, dict) else []
    items += list(enumerate(value[:1])) if isinstance(value, list) else []
    for key, item in items:
        if key in ("specification", "git", "packages"):  # large, and not looked into
            continue
        yield (key,)
        if depth > 1:
            yield from ((key, *rest) for rest in places(item, depth - 1))


def changed_json(place: tuple[str | int, ...], value: Any) -> Wrong:
    def write(path: Path, right: bytes) -> None:
        content = json.loads(right)
        parent = content
        for key in place[:-1]:
            parent = parent[key]
        if value is None:
            del parent[place[-1]]
        else:
            parent[place[-1]] = value
        path.write_text(json.dumps(content))

    return write


def arrays_of(content: bytes) -> dict[str, np.ndarray]:
    return safetensors.numpy.load(content)


def changed_array(name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> Wrong:
    def write(path: Path, right: bytes) -> None:
        arrays = arrays_of(right)
        array = change(arrays.pop(name))
        path.write_bytes(safetensors.numpy.save(arrays if array is None else {**arrays, name: np.ascontiguousarray(array)}))

    return write


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray | None]] = {
    "removed": lambda array: None,
    "emptied": lambda array: array[:0],
    "cut": lambda array: array[:-1],
    "of numbers of another type": lambda array: array.astype("f8" if array.dtype.kind in "iu" else "i8"),
    "with a further axis": lambda array: array[..., None],
    "negative": lambda array: -array - 1,
    "huge": lambda array: np.full_like(array, np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.inf),
    "zero": lambda array: np.zeros_like(array),
    "reversed": lambda array: array[::-1],
}


KINDS = {"a graph": "graphs/mini", "a split": "splits/mini/seed0", "a partition": "partitions/mini/m3/seed0"}
KINDS["a model"] = "runs/quick/mini/m3/fedavg/seed0/model"
UNNOTICED = ("missing", "a folder", "{}")
"""Of records, and of what was renamed: nothing that need be there."""
RESULTS = {"publish", "study", "tables", "figures", "report"}
"""Commands that read either results or their records."""
UNWRITABLE: dict[str, Callable[[str], str]] = {
    "below a file": lambda place: f"config.yaml/{Path(place).name}",
    "where nothing can be made": lambda place: f"/proc/nothing/{Path(place).name}",
}
DETAILED: dict[str, tuple[str, ...]] = {
    "audit": ("findings/",),
    "measurement_table": ("labels.json", "quality.json"),
    "split": ("out/graphs/",),
    "step": ("out/splits/", "out/partitions/", "steps/"),
    "tables": ("out/",),
}
"""Commands that are tried with every change of the files below some folders: between them they read all kinds."""


@dataclass(frozen=True)
class Case:
    """A command with something wrong.

    Attributes:
        name: what is wrong, in words.
        arguments: the command line.
        prepare: makes it wrong.
        may_go_on: whether the command may also succeed, as it need not notice.
        full: whether the disk is full meanwhile.
    """

    name: str
    arguments: list[str]
    prepare: Callable[[], object] = lambda: None
    may_go_on: bool = False
    full: bool = False


def cases(workplace: Workplace, command: str) -> Iterator[Case]:
    """Every use of a command with every file that it names or reads wrong in turn."""
    kinds = {
        **{name: workplace.files[f"steps/{name}.safetensors"] for name in ("pretrain", "prototypes")},
        **{name: workplace.files[f"out/{place}.safetensors"] for name, place in KINDS.items()},
        "another split": workplace.files["other/splits/mini/seed0.safetensors"],
        "another partition": workplace.files["other/partitions/mini/m2/seed0.safetensors"],
    }
    tried: set[str] = set()
    for use in COMMANDS[command]:
        recorded = any(argument == "recorded.yaml" for argument in use)
        beside = list(READ.get(command, ()))
        if command in RESULTS:
            beside = [path for path in beside if path.startswith("records/") == recorded]
        if "--step" not in use:
            beside = [path for path in beside if not path.startswith("steps/")]
        if "report" not in use:
            beside = [path for path in beside if not path.startswith("findings/")]
        for path in dict.fromkeys([*named_files(command, use), *beside]):
            right = workplace.files.get(path)
            if path.startswith("new/") and command != "rekey":  # which trains for long before it writes
                yield from unwritable(command, use, path)
            if right is None or path in tried:
                continue
            tried.add(path)
            detailed = path.startswith(DETAILED.get(command, ("nothing",)))
            for name, wrong in wrong_files(path, right, kinds if detailed or not path.startswith("steps/") else {}):
                unnoticed = path.startswith("records/")
                if command == "rekey" and name in UNNOTICED:
                    continue
                yield Case(f"{path}: {name}", [command, *use], partial(wrong, Path(path), right), unnoticed)
            for name, wrong in changed_files(path, right) if detailed else ():
                yield Case(f"{path}: {name}", [command, *use], partial(wrong, Path(path), right), may_go_on=True)


def unwritable(command: str, use: list[str], path: str) -> Iterator[Case]:
    """A use with an output that cannot be written."""
    name, wrong = ("a folder", lambda: Path(path).mkdir(parents=True))
    if not Path(path).suffix:
        name, wrong = ("a file", lambda: (Path(path).parent.mkdir(exist_ok=True), Path(path).write_text("")))
    yield Case(f"{path}: {name}", [command, *use], wrong)
    for name, place in UNWRITABLE.items():
        yield Case(f"{path}: {name}", [command, *(place(path) if argument == path else argument for argument in use)])
    yield Case(f"{path}: a full disk", [command, *use], full=True)


@contextmanager
def full_disk() -> Iterator[None]:
    """A limit on the size of files stands in for a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def problem(case: Case, capsys: pytest.CaptureFixture[str]) -> str | None:
    """What is wrong with how a command takes a case; None if all is well."""
    case.prepare()
    capsys.readouterr()
    try:
        with full_disk() if case.full else nullcontext():
            status = main(case.arguments)
    except SystemExit as error:  # of argparse
        status = int(str(error.code))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{case.name}: {type(error).__name__}: {error} in {where.filename}:{where.lineno}"
    line = capsys.readouterr().err.rstrip("\n").rpartition("\r")[2].rpartition("\n")[2]
    if status == 0:
        return None if case.may_go_on else f"{case.name}: it goes on"
    half = [path.name for path in Path().rglob(".*") if path.is_file()]
    half += [path.name for path in Path("new").rglob("*") if path.is_file() and not path.stat().st_size and case.full]
    if half:
        return f"{case.name}: {half} is half-written"
    sentence = re.fullmatch(rf"feddep {case.arguments[0]}: \S.*", line) and line.isprintable() and len(line) < 2000
    return None if status in (1, 2) and sentence else f"{case.name}: status {status} and {line!r}"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    before = Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "commands", functools.cache(cli.commands))  # as it reads the source of every command
        patch.setattr(audit_report.ClaimedGuarantees, "of", lambda *arguments: "none")  # which takes seconds, and reads no file
        try:
            yield Workplace(tmp_path_factory.mktemp("workplace"))
        finally:
            os.chdir(before)


@pytest.fixture(scope="module")
def chosen(workplace: Workplace) -> dict[str, list[Case]]:
    """As many cases as are to be tried now, spread evenly over all, by command."""
    every = [case for command in COMMANDS for case in cases(workplace, command)]
    assert len(every) == QUICK_AND_FULL["wrong_files"][1]
    places = {round(place) for place in np.linspace(0, len(every) - 1, number_of("wrong_files"))}
    return {
        command: [each for k, each in enumerate(every) if k in places and each.arguments[0] == command] for command in COMMANDS
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_files_are_one_sentence(command: str, workplace: Workplace, chosen: dict[str, list[Case]], capsys: Any):
    problems = []
    for case in chosen[command]:
        problems.append(problem(case, capsys))
        workplace.restore()
    assert [each for each in problems if each] == []


def message(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence with which a command fails."""
    capsys.readouterr()
    try:
        status = main(list(arguments))
    except SystemExit as error:
        status = int(str(error.code))
    assert status in (1, 2)
    return capsys.readouterr().err.rstrip("\n").rpartition("\n")[2]


WITHOUT_CLIENTS = [*RUN[: RUN.index("--clients")], *DATA]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([*WITHOUT_CLIENTS, "--method", "fedavg", "--partition", PARTITION], "fedavg works on the subgraphs of clients"),
        ([*WITHOUT_CLIENTS, "--method", "global", "--partition", PARTITION], "--clients and --partition go together"),
        ([*WITHOUT_CLIENTS, "--method", "fedavg", "--clients", "3"], "--clients and --partition go together"),
        ([*RUN, "--method", "fedavg", "--clients", "2"], "is stale: its key is"),
        ([*RUN, "--method", "global"], "global sees the whole graph"),
        ([*RUN, "--method", "nosuch"], "methods.nosuch is not a known method"),
        ([*FEDDEP, "--step", "pretrain"], "--step is 'pretrain'; it must be NAME=FILE"),
        ([*FEDDEP, "--step", "=a"], "it must be NAME=FILE"),
        ([*FEDDEP, *PRETRAIN, *PRETRAIN], "each name once"),
        ([*FEDDEP, "--step", "nosuch=steps/pretrain.safetensors"], "--step names 'nosuch'"),
        ([*FEDDEP, "--step", "pretrain=steps/prototypes.safetensors"], "is stale: its key is"),
        ([*RUN, "--method", "fedavg", *PRETRAIN], "the method fedavg has none"),
        ([*RUN, "--method", "fedavg", "--split", "other/splits/mini/seed0.safetensors"], "is stale: its key is"),
        ([*RUN, "--method", "fedavg", "--partition", "other/partitions/mini/m2/seed0.safetensors"], "is stale: its key is"),
    ],
)
def test_flags_that_do_not_fit_are_named(arguments: list[str], part: str, workplace: Workplace, capsys: Any):
    assert part in message(capsys, "classify", *arguments, "--metrics", "new/a.json", "--model", "new/a.safetensors")
    assert not Path("new").exists()


NUMBERS = ("-1", "1" + 30 * "0", "1.5", "x", "", "nan", "1" * 5000)


@pytest.mark.parametrize("command", ["audit", "classify", "measure", "partition", "rekey", "split", "step"])
def test_wrong_numbers_are_named(command: str, workplace: Workplace, capsys: Any):
    use = COMMANDS[command][0]
    for flag in ("--seed", "--clients", "--jobs", "--repetitions"):
        if flag in use or (command, flag) in {("rekey", "--seed"), ("rekey", "--jobs"), ("audit", "--repetitions")}:
            for text in NUMBERS:
                assert f"argument {flag}: {text!r} is no integer from" in message(capsys, command, *use, f"{flag}={text}")


@pytest.mark.parametrize("command", ["dpsgd", "privacy"])
def test_wrong_numbers_of_privacy_are_named(command: str, capsys: Any):
    right = {
        "privacy": {"degree": "3", "fanout": "2", "layers": "1", "epochs": "1", "rate": "1", "delta-prime": "0"},
        "dpsgd": {
            "sigma": "2",
            "batch-size": "4",
            "nodes": "9",
            "rounds": "2",
            "roots": "3",
            "delta": "1e-5",
            "local-epochs": "1",
        },
    }[command]
    for flag in right:
        for text in ("-1", "x", "", "nan", "-inf", "1e400"):
            given = [f"--{name}={text if name == flag else value}" for name, value in right.items()]
            assert message(capsys, command, *given).startswith(f"feddep {command}: "), (flag, text)


@pytest.mark.parametrize(
    "text", ["", " ", "[]", "{", "3", "{}", '{"studies": 3}', '{"studies": {}}', '{"studies": {"a": 3}}', "[" * 9999]
)
def test_a_wrong_configuration_in_the_environment_is_named(text: str, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.setenv("FEDDEP_CONFIG", text)
    assert re.search(r"FEDDEP_CONFIG|no configuration is given", message(capsys, "publish"))


def test_the_configuration_in_the_environment_is_the_resolved_one(workplace: Workplace, monkeypatch: pytest.MonkeyPatch):
    for path in (REPOSITORY / "config/config.yaml", Path("config.yaml")):
        monkeypatch.setenv("FEDDEP_CONFIG", json.dumps(load(path)))
        assert flags.config_of(argparse.Namespace(config=None)) == load(path)


def test_wrong_raw_files_are_named(workplace: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.setattr(fetching, "sources", lambda *given: itertools.islice(sources(*given), 1))  # the mirror alone
    config = ["--config", str(REPOSITORY / "config/config.yaml"), "--dataset"]
    for dataset in ("cora", "msacademic"):
        for content in (b"", b"\x80\x04N.", b"PK\x03\x04", bytes(range(256))):
            for name in REGISTRY[dataset].release.files:
                (tmp_path / name).write_bytes(content)
            given = [*config, dataset, "--raw", str(tmp_path), "--graph", "new/a.safetensors", "--statistics", "new/a.json"]
            assert message(capsys, "prepare", *given).startswith("feddep prepare: ")
        for place in (
            tmp_path,
            tmp_path / name,
            "nowhere",
            "~nobody/there",
            "a\nb",
            "$(touch pwned)",
            "http://[",
            "http://nowhere.invalid/",
        ):
            monkeypatch.setenv("FEDDEP_DATA_MIRROR", str(place))
            said = message(capsys, "download", *config, dataset, "--output", "new/raw")
            assert re.search("no source has the published raw files|FEDDEP_DATA_MIRROR is", said)
        assert message(capsys, "download", *config, dataset, "--output", "config.yaml").startswith("feddep download: ")
    assert not Path("new/raw").exists() or not list(Path("new/raw").iterdir())
