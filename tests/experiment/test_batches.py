"""Runs in one process: every run is in one batch of its graph, and a kill or a failure costs the
others nothing.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from feddep.config.loading import validate
from feddep.experiment import batches, plan, runs, training_stages
from feddep.utils.errors import DivergenceError
from graphs import PLANNED_CONFIG


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Any, dict[str, plan.Run]]:
    config = validate({**PLANNED_CONFIG, "records": {"directory": str(tmp_path / "runs")}})
    return config, {run.key: run for run in plan.runs(config)}


def test_every_run_is_in_one_batch_of_its_graph(planned, monkeypatch):
    config, missing = planned
    monkeypatch.setattr(
        runs, "typical_seconds", lambda config: {("cora", "fedavg"): 3.0, ("cora", "feddep"): 100.0}
    )
    found = batches.batches(config, missing)
    assert sorted(key for batch in found.values() for key in batch) == sorted(missing)
    assert all(len({missing[key].dataset for key in batch}) == 1 for batch in found.values())
    methods = [
        [missing[key].method.label for key in batch]
        for batch in found.values()
        if missing[batch[0]].dataset.name == "cora"
    ]
    # As long as several others.
    assert all(batch == ["feddep"] for batch in methods if "feddep" in batch)
    assert max(map(len, methods)) > 2
    assert batches.batches(config, dict(list(missing.items())[:1])).keys() != found.keys()
    # A large experiment has longer ones, up to the longest.
    monkeypatch.setattr(batches, "SHARE", 1)
    assert len(batches.batches(config, missing)) < len(found)
    monkeypatch.setattr(batches, "SECONDS", (15, 10_000))
    assert len(batches.batches(config, missing)) == len({run.dataset for run in missing.values()})


def test_typical_seconds_are_medians(planned, monkeypatch):
    config, _ = planned
    assert runs.typical_seconds(config) == {}
    directory = Path(config["records"]["directory"])
    rows = pd.DataFrame(
        {
            "dataset": "cora",
            "method": ["fedavg"] * 3 + ["global"],
            "seconds": [1.0, 1.5, 9.0, 5.0],
            "seconds_before": ["{}", '{"pretrain": 0.25, "generator": 0.25}', "{}", "{}"],
        }
    )
    (directory / "quick").mkdir(parents=True)
    (directory / "quick.csv").touch()
    monkeypatch.setattr(runs, "read_table", {directory / "quick.csv": rows}.get)
    assert runs.typical_seconds(config) == {("cora", "fedavg"): 2.0, ("cora", "global"): 5.0}
    few = plan.one_run(config, "fedavg", 3, dataset="cora,labelled=0.1")
    assert runs.estimate(config, [few]) == (2.0, 0)


def test_a_failure_costs_one_run_and_what_is_there_is_kept(planned, tmp_path, monkeypatch):
    config, missing = planned
    members = [
        (run, {}, tmp_path / f"{key}.json", tmp_path / f"{key}.safetensors")
        for key, run in list(missing.items())[:3]
    ]
    trained = []

    def train(config, run, files, output, model):
        trained.append(run)
        if len(trained) == 2:
            raise DivergenceError("the model diverged")
        output.write_text("{}")

    monkeypatch.setattr(training_stages, "train", train)
    with pytest.raises(DivergenceError):
        training_stages.batch(config, members)
    assert trained == [run for run, *_ in members]
    training_stages.batch(config, members)
    assert trained[3:] == [members[1][0]]
