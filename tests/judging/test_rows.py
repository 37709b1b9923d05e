"""Rows that others submit: good ones pass, and what is forged does not."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from feddep.judging import rows
from feddep.utils.errors import ConfigError, DataError
from small_board import Board, right
from workspace import REPOSITORY, forget_plugins

PLUGIN = """\
from feddep.methods.basic import fedavg
from feddep.methods.method import ANY_ENCODER, Method
from feddep.utils.parameters import Parameters


def run(task, parameters, steps):
    return fedavg.train_on(task, task.subgraphs())


TRAINS = {"encoders": ANY_ENCODER, "full_batch": True}
METHODS = (Method("fedx", "FedX", Parameters, f"{__name__}:run", **TRAINS),)
"""
FILLED: dict[str, Any] = {
    "method": {"name": "FedX", "class": "shared", "paper": "arXiv:2401.00001", "license": "MIT"},
    "code": {"url": "https://example.org/x", "commit": "0" * 40, "command": "python x.py"},
    "submitter": {"name": "Somebody", "contact": "somebody@example.org"},
    "search": {"trials": 1, "seeds": [20], "chosen": {"mini": "field fedx"}},
}
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def judged(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the judge writes of a method."""
    folder = tmp_path_factory.mktemp("judged")
    file = board.predict(folder, right(0.8))
    given = ["--name", "FedX", "--study", "mine", "--output", folder]
    assert board.command("judge", file, *given) == 0
    return folder


@pytest.fixture
def row(judged: Path, tmp_path: Path) -> Path:
    """A row that is filled in, in a folder of submissions."""
    shutil.copytree(judged, tmp_path / "judged")
    edit(tmp_path / "judged", lambda row: row.update(FILLED))
    return rows.prepare(tmp_path / "judged", tmp_path / "submissions")


def edit(folder: Path, change: Change) -> None:
    given = yaml.safe_load((folder / rows.ROW).read_text())
    change(given)
    (folder / rows.ROW).write_text(yaml.safe_dump(given))


def test_a_row_is_prepared_and_judged(row: Path, board: Board, judged: Path):
    assert row.name == "FedX"
    assert {file.name for file in row.iterdir()} == {rows.ROW, "mini.npz"}
    assert rows.grades(board.config, row, board.trainer) == {"mini": "judged"}
    with pytest.raises(ConfigError):  # what is empty is to be filled in
        rows.prepare(judged, row.parent)


def test_a_claim_without_a_file(row: Path, board: Board):
    edit(row, lambda row: row.update(files={}, verdicts={}))
    (row / "mini.npz").unlink()
    assert rows.grades(board.config, row, board.trainer) == {"mini": "claimed"}


WRONG: dict[str, Change] = {
    "unknown key": lambda row: row.update(status="retrained"),
    "unknown inner key": lambda row: row["code"].update(branch="main"),
    "missing key": lambda row: row.pop("uses"),
    "text for a number": lambda row: row["search"].update(trials="16"),
    "number for a truth value": lambda row: row["uses"].update(whole_graph=1),
    "empty text": lambda row: row["code"].update(url=""),
    "no commit": lambda row: row["code"].update(commit="main"),
    "path to elsewhere": lambda row: row["files"]["mini"].update(path="../mini.npz"),
    "no claim": lambda row: row.update(claims={}),
    "file without a claim": lambda row: row.update(claims={"cora": row["claims"]["mini"]}),
    "claim above 1": lambda row: row["claims"]["mini"].update(test=1.5),
    "no number": lambda row: row["claims"]["mini"].update(test=float("nan")),
    "graph of no table": lambda row: row["claims"].update(cora=row["claims"]["mini"]),
    "study that is not there": lambda row: row["protocol"].update(study="none"),
}
FORGED: dict[str, Change] = {
    "better claim": lambda row: row["claims"]["mini"].update(test=0.9999),
    "slightly better": lambda row: row["claims"]["mini"].update(
        test=row["claims"]["mini"]["test"] + 2e-4
    ),
    "validation": lambda row: row["claims"]["mini"].update(validation=0.9999),
    "other digest": lambda row: row["files"]["mini"].update(sha256="0" * 64),
    "other graph": lambda row: row["files"]["mini"].update(graph="0" * 16),
    "other revision": lambda row: row["protocol"].update(revision=2),
    "other name": lambda row: row["method"].update(name="FedY"),
    "missing plugin": lambda row: row.update(plugin={"path": "x.py", "sha256": "0" * 64}),
    "better verdict": lambda row: row["verdicts"]["mini"].update(verdict="better"),
    "larger difference": lambda row: row["verdicts"]["mini"].update(mean_difference=0.5),
    "verdict of another graph": lambda row: row.update(verdicts={}),
}


@pytest.mark.parametrize("name", [*WRONG, *FORGED])
def test_what_is_not_a_row_or_forged(name: str, row: Path, board: Board):
    edit(row, {**WRONG, **FORGED}[name])
    with pytest.raises(ConfigError if name in WRONG else DataError):
        rows.grades(board.config, row, board.trainer)


def test_a_key_twice(row: Path):
    with (row / rows.ROW).open("a") as file:
        file.write("format: 1\n")
    with pytest.raises(ConfigError):
        rows.read(row / rows.ROW)


def test_other_files_and_links(row: Path, board: Board):
    (row / "more.txt").touch()
    with pytest.raises(DataError):
        rows.grades(board.config, row, board.trainer)
    (row / "more.txt").unlink()
    (row / "mini.npz").rename(row.parent / "mini.npz")
    (row / "mini.npz").symlink_to(row.parent / "mini.npz")
    with pytest.raises(DataError):
        rows.grades(board.config, row, board.trainer)


def test_one_row_is_changed_and_none_removed(row: Path, tmp_path: Path):
    head, base = row.parent, tmp_path / "base"
    base.mkdir()
    assert rows.changed(base, head) == ["FedX"]
    shutil.copytree(head, base, dirs_exist_ok=True)
    assert rows.changed(base, head) == []
    shutil.copytree(row, head / "FedY")
    assert rows.changed(base, head) == ["FedY"]
    edit(row, lambda row: row["claims"].update(other=row["claims"]["mini"]))
    with pytest.raises(DataError):  # two rows
        rows.changed(base, head)
    shutil.rmtree(head / "FedY")
    assert rows.changed(base, head) == ["FedX"]
    with pytest.raises(DataError):  # a graph fewer
        rows.changed(head, base)
    shutil.rmtree(row)
    with pytest.raises((DataError, ConfigError)):
        rows.changed(base, head)


def test_the_check_of_a_pull_request(
    row: Path, board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    base = tmp_path / "base"
    base.mkdir()
    check = ["submit", "--check", row.parent, "--base", base, "--record", tmp_path / "grades.csv"]
    assert board.command(*check) == 0
    assert pd.read_csv(tmp_path / "grades.csv")["grade"].tolist() == ["judged"]
    assert capsys.readouterr().out == "FedX, mini: judged\n"
    edit(row, FORGED["better claim"])
    assert board.command(*check) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert board.command("submit", "--check", row.parent) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("no_plugins")
def test_a_plugin_is_trained_anew(row: Path, board: Board, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigError):
        list(rows.retrain(board.config, row, board.trainer))
    (row / "fedx.py").write_text(PLUGIN)
    edit(row, lambda given: given.update(plugin=rows.plugin(row / "fedx.py")))
    assert rows.grades(board.config, row, board.trainer) == {"mini": "judged"}
    with pytest.raises(DataError):  # its predictions are others than those of the file
        list(rows.retrain(board.config, row, board.trainer))
    monkeypatch.setattr(rows, "RETRAINED", 1.0)
    assert len(list(rows.retrain(board.config, row, board.trainer))) == 1
    edit(row, lambda row: row["search"]["chosen"].update(mini="field fedavg"))
    with pytest.raises(DataError):  # another method than the plugin's
        list(rows.retrain(board.config, row, board.trainer))
    with (row / "fedx.py").open("a") as file:
        file.write("# other\n")
    with pytest.raises(DataError):
        rows.grades(board.config, row, board.trainer)


@pytest.fixture
def ranked(board: Board, tmp_path: Path, no_plugins: None) -> Path:
    """A row of a ranked plugin, filled in, in a folder of submissions."""
    (tmp_path / "fedx.py").write_text(PLUGIN)
    given = ["--graph", "all", "--study", "mine", "--output", tmp_path / "ranked"]
    assert board.command("rank", tmp_path / "fedx.py", *given) == 0
    forget_plugins()
    author = {"code": FILLED["code"], "submitter": FILLED["submitter"]}
    method = {**FILLED["method"], "name": "fedx"}
    edit(tmp_path / "ranked" / "fedx", lambda row: row.update(author, method=method))
    return rows.prepare(tmp_path / "ranked" / "fedx", tmp_path / "submissions")


RETRAINED: dict[str, Change] = {
    "better runs": lambda row: (
        [each.update(test=each["test"] + 0.02) for each in row["runs"]["mini"]],
        row["claims"]["mini"].update(test=row["claims"]["mini"]["test"] + 0.02),
    ),
    "another run": lambda row: [each.update(key="0" * 16) for each in row["runs"]["mini"]],
    "a seed fewer": lambda row: row["runs"]["mini"].pop(),
    "another setting": lambda row: row["search"]["chosen"].update(mini="field,rounds=2 fedx"),
}


@pytest.mark.slow
def test_a_ranked_plugin_is_a_row(ranked: Path, board: Board):
    row = rows.read(ranked / rows.ROW)
    assert row.search["chosen"] == {"mini": "field fedx"}
    assert rows.grades(board.config, ranked, board.trainer) == {"mini": "claimed"}
    assert len(list(rows.retrain(board.config, ranked, board.trainer))) == 1
    # It is FedAvg.
    assert row.verdicts["mini"]["mean_difference"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", RETRAINED)
def test_a_forged_row_of_a_plugin(name: str, ranked: Path, board: Board):
    edit(ranked, RETRAINED[name])
    with pytest.raises(DataError):
        list(rows.retrain(board.config, ranked, board.trainer))


def test_what_checks_a_pull_request_may_read_alone_and_is_of_the_base():
    text = (REPOSITORY / ".github/workflows/submissions.yml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    assert found["permissions"] == {"contents": "read"}
    assert "pull_request" in found[True]  # what YAML 1.1 makes of the key `on`
    assert "secrets." not in text
    for step in found["jobs"]["judge"]["steps"]:
        if "feddep" in step.get("run", ""):
            assert step["working-directory"] == "base"
