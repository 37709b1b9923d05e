"""Moving records to new keys."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from feddep.__main__ import main
from feddep.config.loading import Config, validate
from feddep.experiment import keys, plan, records, retraining
from feddep.training.summary import summary
from feddep.utils.storage import read_result, write_json, write_result

pytestmark = pytest.mark.slow

CONFIG: dict[str, Any] = {
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}},
    "clients": [2],
    "seeds": [0],
    "partition": {"delta": 5},
    "settings": {"quick": {"rounds": 2, "hidden_channels": 8}},
    "methods": {"local": {}, "fedavg": {}},
}
RENAMES = {"setting": {"hidden": "hidden_channels"}}
RUN = plan.Run("quick", "mini", 2, "fedavg", 0)


class Published:
    """A folder with the records of two runs under the names that options had before."""

    def __init__(self, root: Path) -> None:
        self.root, self.records = root, root / "records"
        raw = {**CONFIG, "output": str(root / "out"), "records": {"directory": str(self.records)}}
        (root / "config.yaml").write_text(yaml.safe_dump(raw))
        (root / "renames.yaml").write_text(yaml.safe_dump(RENAMES))
        self.config: Config = validate(raw)
        for run in plan.all_runs(self.config):
            specification = keys.specification(self.config, run)
            setting = dict(specification["setting"])
            before = {**specification, "setting": {"hidden": setting.pop("hidden_channels"), **setting}}
            result = {**self.train(run), "specification": before}
            write_result(self.records / f"{run.path}.json", {"key": "before", "result": result, "provenance": {"code": "before"}})

    def train(self, run: plan.Run) -> dict[str, Any]:
        task, method, parameters = retraining.prepared(self.config, run, self.root / "trained")
        return summary(method.run(task, parameters))

    def record(self, run: plan.Run = RUN) -> dict[str, Any]:
        return read_result(self.records / f"{run.path}.json")

    def lower_accuracy(self) -> None:
        """Change the last digits of a record, as another machine would."""
        record = self.record()
        record["result"]["accuracy"]["last"] -= 1e-9
        write_result(self.records / f"{RUN.path}.json", record)

    def move(self, *flags: str) -> int:
        given = ["--config", f"{self.root}/config.yaml", "--renames", f"{self.root}/renames.yaml", "--share", "1"]
        return main(["rekey", *given, "--work", f"{self.root}/work", "--log", f"{self.root}/log.md", *flags])


def test_records_are_moved_once_all_runs_give_their_results(tmp_path: Path) -> None:
    published = Published(tmp_path)
    write_result(published.records / "quick/mini/m2/gone/seed0.json", {"key": "before", "statistics": {}})
    assert published.move() == 0
    for run in plan.all_runs(published.config):
        record = published.record(run)
        assert record["key"] == keys.run_key(published.config, run)
        assert record["result"]["specification"] == keys.specification(published.config, run)
        assert record["provenance"]["code"] == records.run_fingerprint(published.config, run)
    assert not (published.records / "quick/mini/m2/gone").exists()
    assert "2 of the 2 runs" in (tmp_path / "log.md").read_text()


def test_only_outdated_records_are_trained_anew(tmp_path: Path) -> None:
    published = Published(tmp_path)
    assert published.move() == 0
    published.lower_accuracy()  # were it trained anew, this would be found
    other = next(run for run in plan.all_runs(published.config) if run != RUN)
    record = published.record(other)
    record["provenance"]["code"] = "before"
    write_result(published.records / f"{other.path}.json", record)
    assert published.move() == 0
    assert "1 of the 1 runs" in (tmp_path / "log.md").read_text()
    assert published.record(other)["provenance"]["code"] == records.run_fingerprint(published.config, other)
    assert published.move() == 0
    assert "0 of the 0 runs" in (tmp_path / "log.md").read_text()


def test_another_result_leaves_all_records_as_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = Published(tmp_path)
    published.lower_accuracy()
    before = published.record()
    assert published.move() == 1
    assert f"1 runs have other results than their records, the first is {RUN.path}" in capsys.readouterr().err
    assert published.record() == before
    assert f"| {RUN.path} | before |" in (tmp_path / "log.md").read_text()
    assert "| NO |" in (tmp_path / "log.md").read_text()


def test_a_record_of_another_machine_is_compared_with_the_code_before(tmp_path: Path) -> None:
    published = Published(tmp_path)
    result = {name: value for name, value in published.record()["result"].items() if name != "specification"}
    published.lower_accuracy()
    write_json(tmp_path / "former/runs" / RUN.path / "metrics.json", {"result": result})
    assert published.move("--before", str(tmp_path / "former")) == 0
    assert published.record()["key"] == keys.run_key(published.config, RUN)
    assert "| on this machine |" in (tmp_path / "log.md").read_text()


def test_a_run_without_a_record_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = Published(tmp_path)
    (published.records / f"{RUN.path}.json").unlink()
    assert published.move() == 1
    assert f"has the specification of {RUN.path}; train it, or name what was renamed" in capsys.readouterr().err
