"""What predictions are worth, and where they stand among recorded runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from feddep.experiment import runs
from feddep.experiment.plan import Run
from feddep.experiment.verification import Trainer
from feddep.judging import divisions, judge
from feddep.methods import registry
from feddep.reporting import load, statistics
from feddep.training.task import RunResult
from feddep.utils.errors import ConfigError, DivergenceError
from small_board import METHODS, SEEDS, Board, right


def scored(board: Board, folder: Path, share: float) -> pd.DataFrame:
    file = board.predict(folder, right(share))
    return judge.score_seeds(file, board.runs, board.trainer)


def test_scores_are_shares_of_right_nodes(board: Board, tmp_path: Path):
    found = scored(board, tmp_path, 0.7)
    assert found["seed"].tolist() == SEEDS
    assert found[["graph", "clients"]].drop_duplicates().to_numpy().tolist() == [["mini", 3]]
    for row, seed in zip(found.to_dict("records"), SEEDS, strict=True):
        division = np.load(board.divisions / f"{seed}.npz")
        correct = right(0.7)(board.graph.labels, seed) == board.graph.labels
        test, owner = division["test"], division["client"]
        assert row["test"] == pytest.approx(correct[test].mean())
        assert row["validation"] == pytest.approx(correct[division["val"]].mean())
        expected = [correct[test[owner[test] == client]].mean() for client in range(3)]
        assert row["client_accuracies"] == pytest.approx(expected)


def test_gains_are_paired_with_recorded_runs(board: Board, tmp_path: Path):
    recorded = runs.load(board.config, board.runs)
    own = scored(board, tmp_path, 0.9)
    with judge.named("FedX", []):
        study = load.assemble(board.config, "mine", board.runs, recorded)
        found = judge.compare(study, "FedX", own)
    (row,) = found["table"].to_dict("records")
    of = load.tidy(recorded).pivot(index="seed", columns="method", values="test")
    assert row["mean"] == pytest.approx(own["test"].mean())
    assert row["reference"] == "fedavg"
    gains = found["gains"].set_index("method")["mean_difference"]
    assert {*gains.index} == {*METHODS}
    for method in METHODS:
        assert gains[method] == pytest.approx((own["test"].to_numpy() - of[method]).mean())
    assert row["mean_difference"] == pytest.approx(gains["fedavg"])
    assert registry.ADDED.get("FedX") is None


def test_the_family_follows_from_what_a_method_uses():
    for uses, family in (([], "candidates"), (["whole_graph"], "more")):
        with judge.named("FedX", uses):
            assert statistics.family("FedX") == family


@pytest.mark.parametrize("name", ["fedavg", "Fed X", "", "a/b"])
def test_a_name_is_new_and_a_word(name: str):
    with pytest.raises(ConfigError), judge.named(name, []):
        raise AssertionError


def test_a_rank_has_an_interval():
    values = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.4], "c": [0.5, 0.5, 0.0]})
    assert judge.rank(values, "a") == "3 [2, 3] of 3"  # c alone may be less, in some draws
    assert judge.rank(values[["a", "b"]], "b") == "1 [1, 1] of 2"


@pytest.mark.slow
def test_a_perfect_file_is_flagged(board: Board, tmp_path: Path):
    board.predict(tmp_path, right(1))
    out = tmp_path / "judged"
    given = ["--name", "Forged", "--study", "mine", "--output", out]
    assert board.command("judge", tmp_path, *given) == 0
    (row,) = pd.read_csv(out / "table.csv").to_dict("records")
    assert (row["mean"], row["above_oracle"], row["rank"]) == (1, True, "1 [1, 1] of 4")
    row = yaml.safe_load((out / "row.yaml").read_text())
    assert row["claims"]["mini"] == {"test": 1.0, "validation": 1.0}
    files = {"page.md", "figure.svg", "row.tex", "row.yaml", "mini.npz", "seeds.csv"}
    tables = {"table.csv", "gains.csv", "over_graphs.csv"}
    assert {file.name for file in out.iterdir()} == files | tables


@pytest.mark.slow
def test_rivals_are_trained_on_fresh_divisions(
    board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
):
    """One of them may diverge."""
    train = Trainer.train

    def once_diverging(trainer: Trainer, run: Run) -> RunResult:
        if (run.method.name, run.seed) == ("local", divisions.seeds("fresh:here")[0]):
            raise DivergenceError("the loss is infinite")
        return train(trainer, run)

    monkeypatch.setattr(Trainer, "train", once_diverging)
    board.export("fresh:here", tmp_path / "divisions")
    file = board.predict(tmp_path, right(0.9), tmp_path / "divisions" / "mini")
    out = tmp_path / "judged"
    given = ["--name", "FedX", "--study", "mine", "--output", out]
    assert board.command("judge", file, *given) == 1  # the seeds of the table are asked for
    assert board.command("judge", file, *given, "--seeds", "fresh:here", "--name", "fedavg") == 1
    assert "30 runs" not in capsys.readouterr().out  # a wrong name is told first
    assert board.command("judge", file, *given, "--seeds", "fresh:here") == 0
    assert "30 runs" in capsys.readouterr().out
    assert board.command("judge", file, *given, "--seeds", "fresh:here") == 0
    assert "1 runs" in capsys.readouterr().out  # the one that diverged, once more
    gains = pd.read_csv(out / "gains.csv").set_index("method")["seeds"]
    assert gains.to_dict() == {"fedavg": 10, "fedavg_oracle": 10, "local": 9}


def test_what_is_not_there(board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = board.predict(tmp_path, right(1)).rename(tmp_path / "other.npz")
    for predicted, study in ((file, "mine"), (file, "none"), (tmp_path / "missing", "mine")):
        given = ["--name", "FedX", "--output", tmp_path / "out", "--study", study]
        assert board.command("judge", predicted, *given) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
