"""The plan: which runs and partitions there are."""

from typing import Any

import pytest

from feddep.config.loading import Config, validate
from feddep.experiment import plan
from feddep.experiment.plan import PartitionSpec, Run
from feddep.methods import registry

RAW: dict[str, Any] = {
    "datasets": {"cora": {}, "tiny": {"synthetic": {}}},
    "clients": [3, 5],
    "seeds": [0, 1],
    "settings": {"quick": {}, "slow": {"rounds": 99}},
    "methods": {"global": {}, "fedavg": {}},
}


@pytest.fixture
def config() -> Config:
    return validate(RAW)


def study(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"name": "c", "kind": "sweep", "runs": list(runs)}


def rows(runs: list[Run]) -> list[tuple[str, str]]:
    """TrainingConfig and method of each run, each pair once."""
    return list(dict.fromkeys((run.setting, run.method) for run in runs))


def test_paths():
    fedavg = Run("quick", "cora", 5, "fedavg", 0)
    assert fedavg.path == "quick/cora/m5/fedavg/seed0"
    assert Run("quick", "cora", None, "global", 0).path == "quick/cora/whole/global/seed0"
    assert PartitionSpec("cora", 5, 0).path == "cora/m5/seed0"


def test_the_partition_of_a_run():
    assert Run("quick", "cora,labelled=0.1", 5, "fedavg", 2).partition == PartitionSpec("cora", 5, 2)
    assert Run("quick", "cora", None, "global", 0).partition is None
    skewed = Run("quick", "cora,labelled=0.1,partition=dirichlet,partition_beta=0.5", 5, "fedavg", 2).partition
    assert skewed == PartitionSpec("cora,partition=dirichlet,partition_beta=0.5", 5, 2)
    assert skewed.path == "cora,partition=dirichlet,partition_beta=0.5/m5/seed2"


def test_every_combination_runs_once(config: Config):
    runs = plan.runs(config)
    assert len(set(runs)) == len(runs) == len({run.path for run in runs})
    # 2 settings, 2 datasets, 2 seeds; global once, fedavg for each of 2 numbers of clients
    assert len(runs) == 2 * 2 * 2 * (1 + 2)
    assert {run.clients for run in runs if run.method == "global"} == {None}
    assert {run.clients for run in runs if run.method == "fedavg"} == {3, 5}


def test_partitions_are_those_that_a_run_needs(config: Config):
    expected = {PartitionSpec(name, m, seed) for name in ("cora", "tiny") for m in (3, 5) for seed in (0, 1)}
    assert set(plan.partitions(config)) == expected
    assert len(plan.partitions(config)) == 8
    assert plan.partitions(validate({**RAW, "methods": {"global": {}}})) == []


def test_datasets_are_those_of_the_main_tables():
    tables = [{"setting": "quick", "datasets": ["tiny"]}, {"setting": "slow", "datasets": ["cora", "tiny"]}]
    assert plan.datasets(validate({**RAW, "tables": tables})) == ["tiny", "cora"]
    assert plan.datasets(validate({**RAW, "tables": tables[:1]})) == ["tiny"]
    assert plan.datasets(validate(RAW)) == ["cora", "tiny"]


def test_every_method_can_be_planned():
    config = validate({**RAW, "methods": {name: {} for name in registry.methods()}})
    assert {run.method for run in plan.runs(config)} == set(registry.methods())


def test_rows_are_the_methods_of_the_main_table():
    raw = {**RAW, "methods": {"fedavg": {}, "feddep": {"prototypes": 4}}}
    tables = [{"setting": "quick", "methods": ["fedavg"]}]
    blocks = [{"methods": {"feddep": {"prototypes": [3, 4]}}}, {"seeds": [9]}]
    config = validate({**raw, "tables": tables, "studies": [study(*blocks)]})
    assert {run.method for run in plan.runs(config)} == {"fedavg"}
    assert {run.method for run in plan.study_runs(config, "c")} == {"feddep,prototypes=3", "feddep", "fedavg"}
    assert {run.method for run in plan.runs(validate(raw))} == {"fedavg", "feddep"}


def test_each_setting_has_rows_of_its_own():
    """A study is of the first table's setting where it names none, so that no table mixes settings unless it is asked to."""
    blocks = [{}, {"settings": {"slow": {"layers": [8, 16]}}}, {"settings": {"slow": {}}, "methods": {"local": {}}}]
    raw = {**RAW, "methods": {"global": {}, "local": {}, "fedavg": {}}}
    quick, slow = {"setting": "quick", "methods": ["fedavg"]}, {"setting": "slow", "methods": ["fedavg", "global"]}
    config = validate({**raw, "tables": [quick, slow], "studies": [study(*blocks)]})
    assert rows(plan.runs(config)) == [("quick", "fedavg"), ("slow", "fedavg"), ("slow", "global")]
    assert rows(plan.study_runs(config, "c")) == [
        ("quick", "fedavg"),
        *((f"slow,layers={layers}", method) for layers in (8, 16) for method in ("fedavg", "global")),
        ("slow", "local"),
    ]
    first = validate({**raw, "tables": [slow, quick], "studies": [study({})]})
    assert rows(plan.study_runs(first, "c")) == [("slow", "fedavg"), ("slow", "global")]
    assert rows(plan.all_runs(validate({**raw, "tables": [quick]}))) == [("quick", "fedavg")]


def test_each_table_has_datasets_of_its_own():
    """A block of a study has the datasets of its setting's table where it names none."""
    tables = [{"setting": "quick", "datasets": ["tiny"]}, {"setting": "slow"}]
    blocks = [{"seeds": [7]}, {"settings": {"slow": {"rounds": 3}}, "seeds": [7]}, {"datasets": {"cora": {"labelled": 0.1}}}]
    config = validate({**RAW, "tables": tables, "studies": [study(*blocks)]})
    assert list(dict.fromkeys((run.setting, run.dataset) for run in plan.runs(config))) == [
        ("quick", "tiny"),
        ("slow", "cora"),
        ("slow", "tiny"),
    ]
    assert list(dict.fromkeys((run.setting, run.dataset) for run in plan.study_runs(config, "c"))) == [
        ("quick", "tiny"),
        ("slow,rounds=3", "cora"),
        ("slow,rounds=3", "tiny"),
        ("quick", "cora,labelled=0.1"),
    ]


def test_all_runs_are_those_of_tables_and_studies_each_once():
    raw = {**RAW, "settings": {"quick": {}}}
    again, more = study({"methods": {"fedavg": {}}}), {**study({"seeds": [8], "clients": [4]}), "name": "d"}
    config = validate({**raw, "studies": [again, more]})
    runs = plan.all_runs(config)
    assert len(runs) == len(set(runs))
    assert set(runs) == set(plan.runs(config)) | set(plan.study_runs(config, "d"))
    assert set(plan.study_runs(config, "c")) <= set(plan.runs(config))


def test_measured_runs_are_those_of_their_blocks():
    config = validate({**RAW, "quality": [{"methods": {"feddep": {}}, "clients": [3], "seeds": [0]}]})
    assert [run.path for run in plan.measured_runs(config, "quality")] == [
        "quick/cora/m3/feddep/seed0",
        "quick/tiny/m3/feddep/seed0",
    ]
    assert plan.measured_runs(config, "neighbourhoods") == []
    assert not set(plan.measured_runs(config, "quality")) & set(plan.all_runs(config))
