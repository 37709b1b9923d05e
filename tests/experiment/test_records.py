"""Published records: used when their key is right, and never otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest

from feddep.config.loading import Config, merged, validate
from feddep.experiment import fingerprint, plan, records
from feddep.methods.basic import fedavg
from feddep.utils.errors import DataError
from feddep.utils.storage import read_result, write_result

RAW: dict[str, Any] = {
    "datasets": {"tiny": {"synthetic": {}}},
    "clients": [3],
    "seeds": [0],
    "settings": {"quick": {}},
    "methods": {"global": {}, "fedavg": {}},
}
SPEC = plan.PartitionSpec("tiny", 3, 0)
DIVIDED = {"mean_client_nodes": 80.0, "mean_client_edges": 9.0, "missing_edges": 3, "cut_nodes": 0}
DESCRIBED = {"nodes": 240, "edges": 30, "features": 64, "classes": 4}
RUN = plan.Run("quick", "tiny", 3, "fedavg", 0)


@pytest.fixture
def raw(tmp_path: Path) -> dict[str, Any]:
    """A configuration that writes to a temporary folder."""
    return {**RAW, "output": str(tmp_path / "results"), "records": {"directory": str(tmp_path / "records")}}


@pytest.fixture
def config(raw: dict[str, Any]) -> Config:
    """The same, all of whose results are there."""
    config = validate(raw)
    for run in plan.runs(config):
        artifact = records.of_run(config, run)
        provenance = {"seconds": 1.5, "code": artifact.code}
        write_result(artifact.result, {"key": artifact.key, "result": {"accuracy": 0.5}, "provenance": provenance})
    for spec in plan.partitions(config):
        partition = records.of_partition(config, spec)
        write_result(partition.result, {"key": partition.key, "statistics": {"missing_edges": 3}})
    graph = records.of_graph(config, "tiny")
    write_result(graph.result, {"key": graph.key, "statistics": {"nodes": 240}})
    return config


def other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the code be another than when the records were made."""
    monkeypatch.setattr(fingerprint, "code_fingerprint", lambda *modules: "f" * 64)


def test_places(config: Config, tmp_path: Path):
    artifact = records.of_run(config, RUN)
    assert artifact.result == tmp_path / "results/runs/quick/tiny/m3/fedavg/seed0/metrics.json"
    assert artifact.record == tmp_path / "records/quick/tiny/m3/fedavg/seed0.json"
    partition = records.of_partition(config, SPEC)
    assert partition.result == tmp_path / "results/partitions/tiny/m3/seed0.json"
    assert partition.record == tmp_path / "records/partitions/tiny/m3/seed0.json"


def test_what_is_published_stands_in_for_the_result(config: Config):
    assert not any(artifact.matches for artifact in records.artifacts(config))
    changed = records.publish(config)
    artifacts = list(records.artifacts(config))
    assert len(artifacts) == 2 + 1 + 1  # runs, a partition, a graph
    assert sorted(changed) == sorted(artifact.record for artifact in artifacts)
    assert all(artifact.source == artifact.record for artifact in artifacts)
    runs = [artifact for artifact in artifacts if artifact.result.name == "metrics.json"]
    assert [read_result(artifact.source) for artifact in runs] == [read_result(artifact.result) for artifact in runs]
    for artifact in (records.of_partition(config, SPEC), records.of_graph(config, "tiny")):
        published = artifact.statistics()
        assert published == read_result(artifact.result)["statistics"]
        artifact.record.unlink()
        assert records.Artifact(artifact.key, artifact.result, artifact.record).statistics() == published


def test_records_that_may_not_be_used_stand_in_for_nothing(config: Config, raw: dict[str, Any]):
    records.publish(config)
    unused = validate(merged(raw, {"records": {"use": False}}))
    assert all(artifact.matches and artifact.source == artifact.result for artifact in records.artifacts(unused))


def test_publishing_again_changes_nothing(config: Config):
    records.publish(config)
    before = {artifact.record: artifact.record.stat().st_mtime_ns for artifact in records.artifacts(config)}
    assert records.publish(config) == []
    assert before == {artifact.record: artifact.record.stat().st_mtime_ns for artifact in records.artifacts(config)}


def test_matching(config: Config):
    assert not records.of_run(config, RUN).matches
    records.publish(config)
    assert records.of_run(config, RUN).matches


def test_a_record_of_something_else_does_not_match(config: Config, raw: dict[str, Any]):
    records.publish(config)
    longer = validate(merged(raw, {"settings": {"quick": {"rounds": 51}}}))
    assert not records.of_run(longer, RUN).matches
    assert records.of_partition(longer, SPEC).matches  # rounds do not change a partition
    assert not records.of_partition(validate({**raw, "partition": {"delta": 21}}), SPEC).matches


def test_a_record_with_another_key_is_not_used(config: Config):
    records.publish(config)
    artifact = records.of_run(config, RUN)
    write_result(artifact.record, {**read_result(artifact.record), "key": "0" * 64})
    assert artifact.source == artifact.result


def test_a_record_of_other_code_is_outdated_and_used(config: Config, monkeypatch: pytest.MonkeyPatch):
    records.publish(config)
    assert not any(artifact.outdated for artifact in records.artifacts(config))
    other_code(monkeypatch)
    artifact = records.of_run(config, RUN)
    assert artifact.outdated
    assert artifact.source == artifact.record
    for kept in (records.of_partition(config, SPEC), records.of_graph(config, "tiny")):
        assert not kept.outdated
        assert kept.source == kept.record


def test_a_record_of_other_code_is_not_used_where_records_are_strict(
    config: Config, raw: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    strict = validate(merged(raw, {"records": {"strict": True}}))
    records.publish(config)
    assert records.of_run(strict, RUN).source == records.of_run(strict, RUN).record
    other_code(monkeypatch)
    assert records.of_run(strict, RUN).source == records.of_run(strict, RUN).result


def test_a_record_that_does_not_say_its_code_is_outdated(config: Config):
    records.publish(config)
    record = records.of_run(config, RUN).record
    content = read_result(record)
    del content["provenance"]["code"]
    write_result(record, content)
    assert records.of_run(config, RUN).outdated


def test_what_is_not_published_is_not_outdated(config: Config, monkeypatch: pytest.MonkeyPatch):
    other_code(monkeypatch)
    assert not any(artifact.outdated for artifact in records.artifacts(config))


def test_the_code_of_a_run_is_that_of_its_method_its_steps_and_its_data(config: Config, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(fingerprint, "code_fingerprint", lambda *modules: asked.append(modules))
    for name, clients in (("global", None), ("fedavg", 3), ("feddep", 3), ("feddep_wo_dgen,reading=unmended", 3)):
        records.run_fingerprint(config, plan.Run("quick", "tiny", clients, name, 0))
    of_graph = ("feddep.graph.scaling", "feddep.graph.split")
    steps = tuple(f"feddep.methods.feddep.{module}" for module in ("classifier", "mending", "pretraining", "prototypes"))
    assert asked == [
        (*of_graph, "feddep.methods.basic.alone"),
        ("feddep.graph.partition", *of_graph, fedavg.__name__),
        ("feddep.graph.partition", *of_graph, *steps),
        ("feddep.graph.partition", *of_graph, "feddep.methods.feddep.classifier"),
    ]


def test_what_a_record_stands_in_for_need_not_be_there_to_publish(config: Config):
    records.publish(config)
    records.of_run(config, RUN).result.unlink()
    other = records.of_graph(config, "tiny")
    other.record.unlink()
    assert records.publish(config) == [other.record]


def test_a_stale_result_is_not_published(config: Config, raw: dict[str, Any]):
    longer = validate(merged(raw, {"settings": {"quick": {"rounds": 51}}}))
    with pytest.raises(DataError, match=r"metrics\.json is stale: its key is .*; run `snakemake` to make it again"):
        records.publish(longer)
    assert not records.of_run(longer, RUN).record.exists()


def test_a_missing_result_is_named(config: Config):
    records.of_run(config, RUN).result.unlink()
    with pytest.raises(DataError, match="does not exist"):
        records.publish(config)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (json.dumps({"key": "x"})[:-2], "is not valid JSON"),
        ("[]", "holds no result"),
        ('{"key": "x", "provenance": {}, "result": {}}', "carries no digest"),
    ],
)
def test_a_damaged_record_is_named(content: str, sentence: str, config: Config):
    records.publish(config)
    record = records.of_run(config, RUN).record
    record.write_text(content)
    with pytest.raises(DataError, match=rf"seed0\.json {sentence}"):
        _ = records.of_run(config, RUN).matches
