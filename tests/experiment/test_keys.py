"""Content keys: what they depend on, and what they do not."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from feddep import training
from feddep.config.loading import Config, load, merged, validate
from feddep.datasets import synthetic
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import fingerprint, keys, plan, records
from feddep.experiment.plan import PartitionSpec, Run
from feddep.graph import partition, partitioners, scaling, split
from feddep.methods import feddep, registry
from feddep.methods.method import Method

ROOT = Path(__file__).parents[2]
RAW: dict[str, Any] = {
    "datasets": {"cora": {"features": "raw"}, "tiny": {"synthetic": {"signal": 0.5}}},
    "clients": [3, 5],
    "seeds": [0, 1],
    "settings": {"quick": {}, "slow": {"rounds": 99}},
    "methods": {"global": {}, "fedavg": {}, "feddep": {}},
}
FEDAVG = Run("quick", "cora", 5, "fedavg", 0)
FEDDEP = Run("quick", "cora", 5, "feddep", 0)
GLOBAL = Run("quick", "cora", None, "global", 0)
SYNTHETIC = Run("quick", "tiny", 3, "fedavg", 0)
OF_CORA, OF_TINY = PartitionSpec("cora", 5, 0), PartitionSpec("tiny", 3, 0)


@pytest.fixture
def config() -> Config:
    return validate(RAW)


def altered(path: str, value: Any) -> Config:
    """The configuration with one option changed."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return validate(merged(RAW, value))


def test_keys_are_distinct(config: Config):
    runs = plan.runs(config)
    assert len({keys.run_key(config, run) for run in runs}) == len(runs)
    specs = plan.partitions(config)
    assert len({keys.partition_key(config, spec) for spec in specs}) == len(specs)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("settings.quick.learning_rate", 0.2),
        ("settings.quick.dropout", 0.0),
        ("split", {"train": 0.7, "val": 0.1}),
        ("partition.delta", 10),
        ("datasets.cora.features", "row"),
        ("datasets.cora.labelled", 0.5),
    ],
)
def test_what_changes_a_number_changes_the_key(config: Config, path: str, value: Any):
    assert keys.run_key(altered(path, value), FEDAVG) != keys.run_key(config, FEDAVG)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("device", "cuda"),
        ("threads", 8),
        ("output", "elsewhere"),
        ("records", {"use": False, "strict": True, "directory": "elsewhere"}),
        ("data.mirror", "/mirror"),
        ("seeds", [0, 1, 2]),
        ("clients", [5]),
        ("settings.slow.rounds", 3),
        ("datasets.tiny.features", "row"),
        ("methods.feddep.prototypes", 3),
        ("tables", [{"setting": "slow"}]),
        ("studies", [{"name": "c", "kind": "sweep", "runs": [{}]}]),
    ],
)
def test_what_does_not_change_a_number_leaves_the_key(config: Config, path: str, value: Any):
    assert keys.run_key(altered(path, value), FEDAVG) == keys.run_key(config, FEDAVG)


def test_the_partition_does_not_enter_where_there_is_none(config: Config, monkeypatch: pytest.MonkeyPatch):
    before = keys.run_key(config, GLOBAL)
    assert keys.run_key(altered("partition.delta", 10), GLOBAL) == before
    assert keys.specification(config, GLOBAL)["partition"] is None
    assert keys.specification(config, FEDAVG)["partition"] == {"clients": 5, "delta": 20}
    monkeypatch.setattr(partition, "REVISION", 2)
    assert keys.run_key(config, GLOBAL) == before


def test_the_name_of_a_setting_is_only_a_name(config: Config):
    other = validate({**RAW, "settings": {"renamed": RAW["settings"]["quick"]}})
    assert keys.run_key(other, dataclasses.replace(FEDAVG, setting="renamed")) == keys.run_key(config, FEDAVG)


def test_a_variant_has_the_key_of_an_entry_that_says_the_same(config: Config):
    spelled = keys.run_key(config, dataclasses.replace(FEDDEP, method="feddep,prototypes=3"))
    assert spelled == keys.run_key(altered("methods.feddep.prototypes", 3), FEDDEP)
    assert spelled != keys.run_key(config, FEDDEP)
    slow = keys.run_key(config, dataclasses.replace(FEDAVG, setting="quick,rounds=99"))
    assert slow == keys.run_key(config, dataclasses.replace(FEDAVG, setting="slow"))
    few = keys.run_key(config, dataclasses.replace(FEDAVG, dataset="cora,labelled=0.5"))
    assert few == keys.run_key(altered("datasets.cora.labelled", 0.5), FEDAVG)


def test_of_a_value_for_each_dataset_that_of_the_dataset_enters(config: Config):
    alike, other = (altered("methods.feddep.embedding", {"cora": width, "tiny": 7}) for width in (128, 64))
    assert keys.run_key(alike, FEDDEP) == keys.run_key(config, FEDDEP) != keys.run_key(other, FEDDEP)


def test_the_data_enters(config: Config, monkeypatch: pytest.MonkeyPatch):
    before = keys.run_key(config, FEDAVG)
    monkeypatch.setitem(REGISTRY, "cora", dataclasses.replace(REGISTRY["cora"], fingerprint="0" * 64))
    assert keys.run_key(validate(RAW), FEDAVG) != before
    assert keys.run_key(validate(RAW), SYNTHETIC) == keys.run_key(config, SYNTHETIC)


def test_the_options_of_a_synthetic_graph_enter(config: Config):
    other = altered("datasets.tiny.synthetic.signal", 0.4)
    for key, what in ((keys.run_key, SYNTHETIC), (keys.graph_key, "tiny"), (keys.partition_key, OF_TINY)):
        assert key(other, what) != key(config, what)
    assert keys.split_key(other, "tiny", 0) != keys.split_key(config, "tiny", 0)


def test_newer_options_of_a_synthetic_graph_leave_older_keys_alone(config: Config):
    before = "140bdbc8b95699c9fa4e2c120ea421456f685e4a5f49370fc9054567531a6664"
    assert keys.data_fingerprint(config, "tiny") == before
    for option, without, some in (("isolated", 0, 0.5), ("count_exponent", None, 1.5)):
        assert keys.data_fingerprint(altered(f"datasets.tiny.synthetic.{option}", without), "tiny") == before
        assert keys.data_fingerprint(altered(f"datasets.tiny.synthetic.{option}", some), "tiny") != before


def test_upstream_keys_depend_on_their_own_options_only(config: Config):
    delta, shares = altered("partition.delta", 10), altered("split", {"train": 0.7, "val": 0.1})
    rate = altered("settings.quick.learning_rate", 0.2)
    assert keys.partition_key(delta, OF_CORA) != keys.partition_key(config, OF_CORA)
    assert keys.partition_key(shares, OF_CORA) == keys.partition_key(rate, OF_CORA) == keys.partition_key(config, OF_CORA)
    assert keys.split_key(shares, "cora", 0) != keys.split_key(config, "cora", 0)
    assert keys.split_key(delta, "cora", 0) == keys.split_key(rate, "cora", 0) == keys.split_key(config, "cora", 0)
    assert keys.split_key(config, "cora", 1) != keys.split_key(config, "cora", 0)
    for other in (delta, shares, rate):
        assert keys.graph_key(other, "cora") == keys.graph_key(config, "cora")


def all_keys() -> dict[str, str]:
    """Keys of every kind, of a configuration that nothing is cached for."""
    config = validate(RAW)
    return {
        "fedavg": keys.run_key(config, FEDAVG),
        "feddep": keys.run_key(config, FEDDEP),
        "global": keys.run_key(config, GLOBAL),
        "on synthetic": keys.run_key(config, SYNTHETIC),
        "partition": keys.partition_key(config, OF_CORA),
        "synthetic partition": keys.partition_key(config, OF_TINY),
        "split": keys.split_key(config, "cora", 0),
        "synthetic split": keys.split_key(config, "tiny", 0),
        "graph": keys.graph_key(config, "cora"),
        "synthetic graph": keys.graph_key(config, "tiny"),
    }


RUNS = {"fedavg", "feddep", "global", "on synthetic"}


@pytest.mark.parametrize(
    ("module", "depending"),
    [
        (training, RUNS),
        (scaling, RUNS),
        (split, RUNS | {"split", "synthetic split"}),
        (partition, RUNS - {"global"} | {"partition", "synthetic partition"}),
        (synthetic, {name for name in all_keys() if "synthetic" in name}),
    ],
)
def test_raising_a_revision_changes_the_keys_of_what_depends_on_it(
    module: Any, depending: set[str], monkeypatch: pytest.MonkeyPatch
):
    before = all_keys()
    monkeypatch.setattr(module, "REVISION", module.REVISION + 1)
    after = all_keys()
    assert {name for name in before if before[name] != after[name]} == depending


def test_the_revision_of_a_method_is_its_own(monkeypatch: pytest.MonkeyPatch):
    before = all_keys()
    known = registry.methods()
    raised = {**known, "fedavg": dataclasses.replace(known["fedavg"], revision=2)}
    monkeypatch.setattr(registry, "methods", lambda: raised)
    after = all_keys()
    assert {name for name in before if before[name] != after[name]} == {"fedavg", "on synthetic"}


def test_the_revision_of_a_step_is_of_the_methods_that_have_it(monkeypatch: pytest.MonkeyPatch):
    before = all_keys()
    monkeypatch.setattr(feddep, "PROTOTYPES", dataclasses.replace(feddep.PROTOTYPES, revision=2))
    after = all_keys()
    assert {name for name in before if before[name] != after[name]} == {"feddep"}


def test_a_new_method_leaves_the_keys_of_the_others(monkeypatch: pytest.MonkeyPatch):
    before = all_keys()
    new = Method("new", "New", registry.find("fedavg").parameters, "nowhere:run")
    known = {**registry.methods(), "new": new}
    monkeypatch.setattr(registry, "methods", lambda: known)
    assert all_keys() == before


def test_source_code_does_not_enter(monkeypatch: pytest.MonkeyPatch):
    before = all_keys()
    monkeypatch.setattr(fingerprint, "code_fingerprint", lambda *modules, **options: "other")
    monkeypatch.setattr(fingerprint, "bare", lambda source: "other")
    assert all_keys() == before


def test_published_records_have_the_keys_of_the_shipped_configuration():
    """A change of the models that moves keys would leave every published number without its record."""
    config = load(ROOT / "config" / "config.yaml")
    runs = plan.all_runs(config)[::40]
    found = [records.of_run(config, run) for run in runs]
    places = [dataclasses.replace(each, record=ROOT / each.record) for each in found]
    assert [each.record.name for each in places if not each.matches] == []


def of_cora(options: str) -> tuple[str, str, dict[str, Any]]:
    """The keys of a partition and of a run on it, and what the run's specification says of it."""
    config, run = validate(RAW), dataclasses.replace(FEDAVG, dataset=f"cora{options}")
    assert run.partition is not None
    specified = keys.specification(config, run)
    assert specified["dataset"] == {"name": "cora", "features": "raw", "labelled": None}
    return keys.partition_key(config, run.partition), keys.run_key(config, run), specified["partition"]


def test_only_options_that_the_method_reads_are_in_a_key():
    *before, said = of_cora("")
    assert said == {"clients": 5, "delta": 20}  # as in records of the time before there were methods
    for same in (",partition=louvain", ",partition_beta=3", ",partition_engine=python-louvain", ",partition_delta=20"):
        assert of_cora(same) == (*before, said)
    assert of_cora(",partition_engine=igraph")[2] == {"clients": 5, "delta": 20, "engine": "igraph"}
    assert of_cora(",partition=random,partition_delta=3,partition_engine=igraph,partition_beta=3") == of_cora(",partition=random")
    assert of_cora(",partition=random")[2] == {"clients": 5, "method": "random"}
    assert of_cora(",partition=dirichlet,partition_beta=0.5")[2] == {"clients": 5, "method": "dirichlet", "beta": 0.5}
    others = [",partition=metis", ",partition=random", ",partition=dirichlet", ",partition=dirichlet,partition_beta=0.5"]
    found = [of_cora(options) for options in ("", *others, ",partition_engine=igraph", ",partition_delta=3")]
    assert [len({each[kind] for each in found}) for kind in (0, 1)] == [7, 7]


def test_a_dataset_has_the_partition_of_the_configuration_unless_it_says_another():
    random, cora = altered("partition.method", "random"), altered("datasets.cora.partition", "random")
    for config in (random, cora):
        assert keys.partition_key(config, OF_CORA) == of_cora(",partition=random")[0]
        assert keys.partition_key(config, PartitionSpec("cora,partition=louvain", 5, 0)) == of_cora("")[0]
    assert keys.partition_key(random, OF_TINY) != keys.partition_key(cora, OF_TINY) == keys.partition_key(validate(RAW), OF_TINY)


def test_what_divides_is_in_the_key_and_in_the_code(monkeypatch: pytest.MonkeyPatch):
    before, at_random = of_cora(""), of_cora(",partition=random")
    monkeypatch.setattr(partitioners, "REVISION", 2)
    assert of_cora("") == before
    assert all(new != old for new, old in zip(of_cora(",partition=random")[:2], at_random[:2], strict=True))
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(fingerprint, "code_fingerprint", lambda *modules: asked.append(modules))
    for dataset in ("cora", "cora,partition=metis"):
        records.run_fingerprint(validate(RAW), dataclasses.replace(FEDAVG, dataset=dataset))
    assert ["feddep.graph.partitioners" in modules for modules in asked] == [False, True]
