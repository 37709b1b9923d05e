"""Published records: used when their key is right, and never otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest

from feddep import plan, records
from feddep.config import validate
from feddep.errors import DataError
from feddep.storage import read_json, write_json

RAW: dict[str, Any] = {
    "datasets": {"tiny": {"synthetic": {}}},
    "clients": [3],
    "seeds": [0],
    "settings": {"quick": {}},
    "frameworks": {"global": {}, "fedavg": {}},
}


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """A configuration that writes to a temporary folder, all of whose results are there."""
    raw = {**RAW, "output": str(tmp_path / "results"), "records": {"directory": str(tmp_path / "records")}}
    config = validate(raw)
    for run in plan.runs(config):
        artefact = records.of_run(config, run)
        write_json(artefact.result, {"key": artefact.key, "result": {"accuracy": 0.5}, "provenance": {"seconds": 1.5}})
    for cut in plan.cuts(config):
        write_json(records.of_partition(config, cut).result, {"missing_edges": 3})
    write_json(records.of_graph(config, "tiny").result, {"nodes": 240})
    return config


@pytest.fixture
def run(config: dict[str, Any]) -> plan.Run:
    return plan.runs(config)[-1]


def test_places(config: dict[str, Any], run: plan.Run, tmp_path: Path):
    artefact = records.of_run(config, run)
    assert artefact.result == tmp_path / "results/runs/quick/tiny/m3/fedavg/seed0/metrics.json"
    assert artefact.record == tmp_path / "records/quick/tiny/m3/fedavg/seed0.json"
    cut = records.of_partition(config, plan.Cut("tiny", 3, 0))
    assert cut.result == tmp_path / "results/partitions/tiny/m3/seed0.json"
    assert cut.record == tmp_path / "records/partitions/tiny/m3/seed0.json"


def test_what_is_published_stands_in_for_the_result(config: dict[str, Any]):
    assert not any(artefact.matches for artefact in records.artefacts(config))
    changed = records.publish(config)
    artefacts = list(records.artefacts(config))
    assert sorted(changed) == sorted(artefact.record for artefact in artefacts)
    assert all(artefact.source == artefact.record for artefact in artefacts)
    runs = [artefact for artefact in artefacts if artefact.result.name == "metrics.json"]
    assert [read_json(artefact.source) for artefact in runs] == [read_json(artefact.result) for artefact in runs]
    for artefact in (records.of_partition(config, plan.Cut("tiny", 3, 0)), records.of_graph(config, "tiny")):
        published = artefact.statistics()
        assert published == read_json(artefact.result)
        artefact.record.unlink()
        assert artefact.statistics() == published


def test_records_that_may_not_be_used_stand_in_for_nothing(config: dict[str, Any]):
    records.publish(config)
    config["records"]["use"] = False
    assert all(artefact.matches and artefact.source == artefact.result for artefact in records.artefacts(config))


def test_publishing_again_changes_nothing(config: dict[str, Any]):
    records.publish(config)
    before = {artefact.record: artefact.record.stat().st_mtime_ns for artefact in records.artefacts(config)}
    assert records.publish(config) == []
    assert before == {artefact.record: artefact.record.stat().st_mtime_ns for artefact in records.artefacts(config)}


def test_matching(config: dict[str, Any], run: plan.Run):
    assert not records.of_run(config, run).matches
    records.publish(config)
    assert records.of_run(config, run).matches


def test_a_record_of_something_else_does_not_match(config: dict[str, Any], run: plan.Run):
    records.publish(config)
    config["settings"]["quick"]["rounds"] += 1
    assert not records.of_run(config, run).matches
    assert records.of_partition(config, plan.Cut("tiny", 3, 0)).matches  # rounds do not change a partition
    config["partition"]["delta"] += 1
    assert not records.of_partition(config, plan.Cut("tiny", 3, 0)).matches


def test_a_record_with_another_key_is_not_used(config: dict[str, Any], run: plan.Run):
    records.publish(config)
    artefact = records.of_run(config, run)
    write_json(artefact.record, {**read_json(artefact.record), "key": "0" * 64})
    assert artefact.source == artefact.result


def test_what_a_record_stands_in_for_need_not_be_there_to_publish(config: dict[str, Any], run: plan.Run):
    records.publish(config)
    records.of_run(config, run).result.unlink()
    other = records.of_graph(config, "tiny")
    other.record.unlink()
    assert records.publish(config) == [other.record]


def test_a_stale_result_is_not_published(config: dict[str, Any], run: plan.Run):
    config["settings"]["quick"]["rounds"] += 1
    with pytest.raises(DataError, match=r"metrics\.json has the key"):
        records.publish(config)
    assert not records.of_run(config, run).record.exists()


def test_a_missing_result_is_named(config: dict[str, Any], run: plan.Run):
    result = records.of_run(config, run).result
    result.unlink()
    with pytest.raises(DataError, match="does not exist"):
        records.publish(config)


def test_a_damaged_record_is_named(config: dict[str, Any], run: plan.Run):
    records.publish(config)
    record = records.of_run(config, run).record
    record.write_text(json.dumps({"key": "x"})[:-2])
    with pytest.raises(DataError, match=r"seed0\.json is not valid JSON"):
        _ = records.of_run(config, run).matches
