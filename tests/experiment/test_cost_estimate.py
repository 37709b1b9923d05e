"""How long runs will take: told by records of runs like them, and said where no record tells."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from feddep.cli import main
from feddep.config.loading import Config, validate
from feddep.experiment import cost_estimate, keys, plan
from feddep.experiment.cost_estimate import CLASSIFIER, Durations
from feddep.experiment.plan import Run
from feddep.utils.storage import write_result

STEPS = {"pretrain": 40.0, "prototypes": 2.0, "generator": 8.0}
RAW: dict[str, Any] = {
    "datasets": {name: {"synthetic": {"nodes": 60, "communities": 6}} for name in ("mini", "other")},
    "clients": [2],
    "seeds": [0, 1, 2],
    "settings": {"quick": {"rounds": 2}},
    "methods": {"fedavg": {}, "feddep": {}},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["fedavg", "feddep"]}],
    "studies": [
        {"name": "longer", "kind": "curves", "runs": [{"settings": {"quick": {"rounds": 20}}, "methods": {"fedavg": {}}}]}
    ],
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return validate({**RAW, "output": str(tmp_path / "out"), "records": {"directory": str(tmp_path / "records")}})


def run_of(method: str, seed: int, dataset: str = "mini", clients: int = 2, setting: str = "quick") -> Run:
    return Run(setting, dataset, clients, method, seed)


def publish(config: Config, run: Run, seconds: float, before: dict[str, float] | None = None, **changes: Any) -> None:
    """Write a record that says so many seconds."""
    provenance = {"seconds": seconds, "seconds_before": before or {}, "threads": 1, "device": "cpu", **changes}
    result = {"specification": keys.specification(config, run)}
    path = Path(config["records"]["directory"], f"{run.path}.json")
    write_result(path, {"key": keys.run_key(config, run), "result": result, "provenance": provenance})


def test_the_median_over_the_seeds_of_the_same_cell(config: Config):
    for seed, seconds in ((3, 10.0), (4, 12.0), (5, 50.0)):
        publish(config, run_of("feddep", seed), seconds, STEPS)
    publish(config, run_of("feddep", 0, clients=3), 1000.0)
    publish(config, run_of("feddep", 0, dataset="other"), 1000.0)
    assert Durations(config).of(run_of("feddep", 0)) == pytest.approx({**STEPS, CLASSIFIER: 12.0})


def test_seconds_count_once_for_each_thread(config: Config):
    publish(config, run_of("feddep", 3), 10.0, STEPS, threads=4)
    assert Durations(config).of(run_of("feddep", 0)) == pytest.approx(
        {stage: 4 * value for stage, value in STEPS.items()} | {CLASSIFIER: 40}
    )


def test_the_classifier_is_in_proportion_to_its_rounds(config: Config):
    publish(config, run_of("feddep", 3), 10.0, STEPS)
    assert Durations(config).of(run_of("feddep", 0, setting="quick,rounds=20,local_epochs=3")) == pytest.approx(
        {**STEPS, CLASSIFIER: 300.0}
    )


def test_the_nearest_runs_of_the_same_method(config: Config):
    """First those of the same dataset, then of as many clients, then with the same options."""
    publish(config, run_of("feddep", 3, dataset="other"), 1.0)
    asked = run_of("feddep,depth=3", 0)
    assert Durations(config).of(asked)[CLASSIFIER] == 1
    publish(config, run_of("feddep", 3, clients=9), 2.0)
    assert Durations(config).of(asked)[CLASSIFIER] == 2
    publish(config, run_of("feddep", 3), 4.0)
    assert Durations(config).of(asked)[CLASSIFIER] == 4
    publish(config, run_of("feddep,depth=3", 3), 8.0)
    assert Durations(config).of(asked)[CLASSIFIER] == 8
    assert Durations(config).of(run_of("fedavg", 0)) == {}


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_what_cannot_be_read_tells_nothing(config: Config, content: str):
    publish(config, run_of("fedavg", 3), 10.0)
    Path(config["records"]["directory"], f"{run_of('fedavg', 3).path}.json").write_text(content)
    assert Durations(config).of(run_of("fedavg", 0)) == {}


def test_what_a_configuration_asks_for(config: Config):
    """A run with a record, one that is finished, one to train; the steps of FedDEP, which has no record of its own cell."""
    runs = plan.runs(config)
    publish(config, run_of("fedavg", 0), 36.0)
    result = Path(config["output"], "runs", run_of("fedavg", 1).path, "metrics.json")
    write_result(result, {"key": keys.run_key(config, run_of("fedavg", 1)), "result": {}, "provenance": {}})
    found = cost_estimate.of_runs(config, runs, Durations(config))
    assert (found.runs, found.recorded, found.to_train, found.steps) == (6, 1, 4, 9)
    assert (found.core_seconds, found.unknown) == (36.0, 12)
    assert str(found) == (
        "6 runs: 4 to train (about 0.0100 core-hours, and 12 jobs of which no record tells, with 9 steps), "
        "1 from records, 1 finished before"
    )
    publish(config, run_of("feddep", 7, clients=5), 100.0, STEPS)
    found = cost_estimate.of_runs(config, [*runs, *runs], Durations(config))
    assert (found.core_seconds, found.unknown) == (pytest.approx(36 + 3 * 150), 0)
    write_result(result, {"key": "0" * 64, "result": {}, "provenance": {}})  # of another configuration
    assert cost_estimate.of_runs(config, runs, Durations(config)).to_train == 5


def test_what_no_record_tells_is_said(config: Config):
    assert "6 to train (no record tells how long that takes, with 9 steps), 0 from records" in str(
        cost_estimate.of_runs(config, plan.runs(config), Durations(config))
    )


def test_the_command(config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = {**RAW, "output": config["output"], "records": {"directory": config["records"]["directory"]}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(given))
    publish(config, run_of("fedavg", 0), 36.0)
    assert main(["estimate", "--config", str(tmp_path / "mine.yaml")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:4] == [
        ["tables", "fedavg", "3", "2", "1", "0.02"],
        ["tables", "feddep", "3", "3", "0", "unknown"],
        ["longer", "fedavg", "3", "3", "0", "0.30"],
    ]
    assert " ".join(lines[4]).startswith("9 runs: 8 to train (about 0.32 core-hours, and 12 jobs")
    assert main(["estimate", "--config", str(tmp_path / "mine.yaml"), "--study", "longer"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 runs: 3 to train (about 0.30 core-hours), 0 from records"
    assert main(["estimate", "--config", str(tmp_path / "mine.yaml"), "--study", "shorter"]) == 1
    assert capsys.readouterr().err == "feddep estimate: --study is 'shorter'; the configuration has longer\n"
