"""Published numbers computed again: those that come back, and records that were falsified."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from feddep.stages import verify

from feddep.__main__ import main
from feddep.config.loading import Config, validate
from feddep.experiment import keys, plan, records, retraining, verification
from feddep.graph.graph import Graph
from feddep.reporting import files
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.files import read_result, write_result

CONFIG: dict[str, Any] = {
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}},
    "clients": [2],
    "seeds": [0, 1],
    "partition": {"delta": 5},
    "settings": {"quick": {"rounds": 2, "hidden_channels": 8}},
    "methods": {"local": {}, "fedavg": {}},
    "studies": [{"name": "rounds", "kind": "sweep", "runs": [{"settings": {"quick": {"rounds": [1, 2]}}, "seeds": [0]}]}],
}
FEDAVG = plan.Run("quick", "mini", 2, "fedavg", 0)


class Published:
    """A folder with a configuration and the records of all its runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        raw = {**CONFIG, "output": str(root / "out"), "records": {"directory": str(root / "records")}}
        (root / "config.yaml").write_text(yaml.safe_dump(raw))
        self.config: Config = validate(raw)
        for number, run in enumerate(plan.all_runs(self.config)):
            result = retraining.retrain(self.config, run, root / "work").result
            provenance = {"code": records.run_fingerprint(self.config, run), "device": "cpu", "seconds": 10.0 * number}
            content = {"key": keys.run_key(self.config, run), "result": result, "provenance": provenance}
            write_result(self.path(run), content)

    def path(self, run: plan.Run) -> Path:
        return self.root / "records" / f"{run.path}.json"

    def falsify(self, change: Callable[[dict[str, Any]], object], run: plan.Run = FEDAVG) -> None:
        """Change the result of a record and seal it again, as somebody would who wants a better number."""
        record = read_result(self.path(run))
        change(record["result"])
        write_result(self.path(run), record)

    def verify(self, *arguments: str) -> int:
        return main(["verify", "--config", f"{self.root}/config.yaml", "--work", f"{self.root}/work", *arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return Published(tmp_path_factory.mktemp("published"))


@pytest.fixture
def published(made: Published) -> Iterator[Published]:
    """Records as they were made, however a test changes them."""
    before = {path: path.read_bytes() for path in made.root.rglob("*.json")}
    yield made
    for path, content in before.items():
        path.write_bytes(content)


def test_a_number_comes_back_to_the_last_bit(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    assert published.verify("--method", "fedavg", "--tolerance", "0") == 0
    printed = capsys.readouterr().out
    runs = [run for run in plan.runs(published.config) if run.method == "fedavg"]
    accuracy = [read_result(published.path(run))["result"]["accuracy"]["best"] for run in runs]
    for seed, value in enumerate(accuracy):
        assert re.search(rf"^ +{seed} +{value:.6f} +{value:.6f} +0.00e\+00 .* equal to the last bit$", printed, re.MULTILINE)
    assert f"mean  {sum(accuracy) / 2:.6f}" in printed
    assert printed.endswith("the number came back, equal to the last bit\n")


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        (lambda result: result["accuracy"].update(best=0.99), "accuracy"),
        (lambda result: result["accuracy"].update(best=result["accuracy"]["best"] + 1e-3), "accuracy"),
        (lambda result: result["communication"][0].update(bytes=result["communication"][0]["bytes"] - 4), "communication"),
        (lambda result: result["curve"]["loss"].__setitem__(0, 0.5) or result["accuracy"].update(last=0.1), "accuracy, curve"),
    ],
)
def test_a_falsified_record_is_caught(change, differing: str, published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    published.falsify(change)
    assert published.verify("--method", "fedavg", "--clients", "2") == 1
    captured = capsys.readouterr()
    sentence = captured.err.splitlines()[-1]
    assert sentence.startswith(f"feddep verify: 1 of 2 runs did not give their record's result; of {FEDAVG.path} the accuracy is")
    assert sentence.endswith(f"these parts differ: {differing}")
    assert "came back" not in captured.out


def test_rounding_is_tolerated_and_said(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    def round_otherwise(result: dict[str, Any]) -> None:
        result["curve"]["loss"][0] += 1e-9
        result["accuracy"]["best"] += 1e-3

    published.falsify(round_otherwise)
    assert published.verify("--method", "fedavg") == 0
    assert "came back within 0.01, and not to the last bit" in capsys.readouterr().out
    assert published.verify("--method", "fedavg", "--tolerance", "0.0001") == 1
    assert published.verify("--method", "fedavg", "--tolerance", "0") == 1


def test_an_interrupted_call_goes_on(
    published: Published, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command has the same draw, and trains what is left; one that ended is not taken for trained."""
    prepared, trained = retraining.prepared, []

    def interrupted(config: Config, run: plan.Run, folder: Path) -> Any:
        trained.append(run)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return prepared(config, run, folder)

    monkeypatch.setattr(retraining, "prepared", interrupted)
    assert published.verify() == 130
    captured = capsys.readouterr()
    assert "run it again to go on" in captured.err
    assert published.verify() == 0
    again = capsys.readouterr().out
    assert again.splitlines()[0] == captured.out.splitlines()[0]
    assert "going on with an interrupted call" in again
    assert "1 of 2 runs were trained by an interrupted call" in again
    assert again.endswith("the number came back, equal to the last bit\n")
    assert [run.seed for run in trained] == [0, 1, 1]
    assert list((published.root / "work" / "unfinished").iterdir()) == []
    assert published.verify() == 0
    assert "interrupted" not in capsys.readouterr().out
    assert len(trained) == 5


def test_two_calls_never_share_a_draw(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    """While one works, the same command says so; a failed call leaves no folder that would look like an interrupted one."""
    unfinished = published.root / "work" / "unfinished"
    assert published.verify("--method", "nobody") == 1
    assert list(unfinished.iterdir()) == []
    capsys.readouterr()
    with verify._drawn_in(unfinished / keys.digest({"study": None, "seed": 7, "max_seconds": None})):
        assert published.verify("--seed", "7") == 1
        assert "another call with the same flags works in" in capsys.readouterr().err
        assert published.verify("--seed", "8") == 0
    assert published.verify("--seed", "7") == 0
    assert list(unfinished.iterdir()) == []


def test_another_partition_is_caught(published: Published, tmp_path: Path) -> None:
    partition = published.root / "records" / "partitions" / "mini" / "m2" / "seed0.json"
    write_result(partition, {"key": "a", "statistics": {"missing_edges": 0}})
    found = verification.compare(published.config, FEDAVG, read_result(published.path(FEDAVG)), tmp_path)
    partition.unlink()
    assert (found.differing, found.passed(1.0)) == (("partition",), False)


def test_the_table_must_show_the_mean_of_the_records(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    tables = published.root / "out" / "tables"
    runs = [run for run in plan.runs(published.config) if run.method == "local"]
    mean = sum(read_result(published.path(run))["result"]["accuracy"]["best"] for run in runs) / len(runs)
    row = {"setting": "quick", "dataset": "mini", "method": "local", "clients": 2, "mean": mean}
    for change, status, said in (
        ({}, 0, "accuracy.csv shows 0."),
        ({"mean": mean + 0.01}, 1, "and the mean of the records is"),
        ({"clients": 3}, 1, "accuracy.csv has 0 rows of this cell"),
    ):
        files.write(tables, {"accuracy.csv": pd.DataFrame([{**row, **change}])}, "tables")
        assert published.verify("--method", "local") == status
        assert said in "".join(capsys.readouterr())
    (tables / "accuracy.csv").write_text("edited")
    assert published.verify("--method", "local") == 1
    assert "accuracy.csv is not what tables.sha256 says; write the tables again" in capsys.readouterr().err
    for path in tables.iterdir():
        path.unlink()


def test_a_study_has_cells_too(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    assert published.verify("--study", "rounds", "--setting", "quick,rounds=1", "--method", "local") == 0
    printed = capsys.readouterr().out
    assert re.match(r"study rounds, drawn with seed \d+: quick,rounds=1/mini/m2/local\n", printed)


def cell(published: Published, seed: int, **options: Any) -> str:
    """The method of the cell that is drawn."""
    return next(iter(verification.draw(published.config, plan.runs(published.config), {}, seed, **options))).method


def test_the_draw_is_uniform_and_a_function_of_its_seed(published: Published) -> None:
    drawn = [cell(published, seed) for seed in range(40)]
    assert drawn == [cell(published, seed) for seed in range(40)]
    assert 10 <= drawn.count("local") <= 30


def test_only_what_was_quick_is_drawn(published: Published) -> None:
    assert {cell(published, seed, max_seconds=20) for seed in range(20)} == {"fedavg"}  # 0 and 10 s; the others 20 and 30
    with pytest.raises(DataError, match=r"--max-seconds is 5, and the quickest of these cells took 10 s"):
        cell(published, 0, max_seconds=5)


def test_a_cell_without_a_record_is_not_drawn(published: Published) -> None:
    path = published.path(FEDAVG)
    record = read_result(path)
    path.unlink()
    assert {cell(published, seed) for seed in range(20)} == {"local"}
    write_result(path, {**record, "key": "another"})
    wanted = {"method": "fedavg"}
    with pytest.raises(DataError, match=f"that of {FEDAVG.path} is missing or has another key"):
        verification.draw(published.config, plan.runs(published.config), wanted, 0)


def test_a_cell_that_does_not_exist_is_one_sentence(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, sentence in {
        ("--method", "fedprox"): "--method is fedprox, of which there is no run; there are fedavg, local",
        ("--clients", "3"): "--clients is 3, of which there is no run; there are 2",
        ("--study", "fanout"): "--study is fanout, which the configuration has not; there are rounds",
    }.items():
        assert published.verify(*flags) == 1
        assert capsys.readouterr().err == f"feddep verify: {sentence}\n"
    runs = [FEDAVG, plan.Run("quick", "mini", None, "global", 0)]
    with pytest.raises(ConfigError, match="no cell has method global, clients 2 together"):
        verification.draw(published.config, runs, {"method": "global", "clients": 2}, 0)


def test_a_record_without_accuracy_is_one_sentence(published: Published, tmp_path: Path) -> None:
    published.falsify(lambda result: result.update(accuracy="high"))
    with pytest.raises(DataError, match=f"the record of {FEDAVG.path} has no accuracy"):
        verification.compare(published.config, FEDAVG, read_result(published.path(FEDAVG)), tmp_path)


@pytest.mark.data
@pytest.mark.slow
def test_a_published_number_of_cora_comes_back(cora: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One cell of the records that git keeps."""
    named = ["--study", "many_clients", "--setting", "feddep,rounds=3", "--dataset", "cora", "--method", "global"]
    root = Path(__file__).parents[2]
    raw = yaml.safe_load((root / "config" / "config.yaml").read_text())
    raw["records"]["directory"] = str(root / "results" / "records")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw))
    status = main(["verify", "--config", str(tmp_path / "config.yaml"), *named, "--work", str(tmp_path)])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert "the number came back" in captured.out
