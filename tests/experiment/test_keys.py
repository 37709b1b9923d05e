"""Content keys: what they depend on, and what they do not."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feddep import training
from feddep.config import variants
from feddep.config.loading import Config, merged, validate
from feddep.config.models import Configuration, Dataset, Synthetic
from feddep.datasets import own_files, synthetic
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import keys
from feddep.experiment.plan import Run, one_run
from feddep.graph import noise, partition, partitioners, scaling, split
from feddep.methods import plugins, registry
from feddep.methods.method import Method
from feddep.training.config import TrainingConfig
from graphs import PLANNED_CONFIG as RAW
from graphs import npz_arrays, random_graph
from other_values import another, others


def fedavg(config: Config, **names: str) -> Run:
    return one_run(config, "fedavg", 5, **names)


def altered(path: str, value: Any) -> Config:
    """The configuration with one option changed."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return validate(merged(RAW, value))


def all_keys(config: Config | None = None) -> dict[str, str]:
    """Keys of every kind; without a configuration of one that nothing is cached for."""
    config = config or validate(RAW)
    one, tiny = fedavg(config), one_run(config, "fedavg", 3, dataset="tiny")
    return {
        "fedavg": one.key,
        "feddep": one_run(config, "feddep", 5).key,
        "global": one_run(config, "global").key,
        "tiny fedavg": tiny.key,
        "partition": one.partition_key,
        "tiny partition": tiny.partition_key,
        "split": one.split_key,
        "tiny split": tiny.split_key,
        "graph": one.graph_key,
        "tiny graph": tiny.graph_key,
    }


BEFORE = all_keys()
RUNS = {"fedavg", "feddep", "global", "tiny fedavg"}
DIVIDED = RUNS - {"global"} | {"partition", "tiny partition"}
SPLITS = RUNS | {"split", "tiny split"}
TINY = {name for name in BEFORE if "tiny" in name}
CORA = set(BEFORE) - TINY


def moved(config: Config | None = None) -> set[str]:
    """What has another key than before."""
    after = all_keys(config)
    return {name for name in BEFORE if BEFORE[name] != after[name]}


@pytest.mark.parametrize("field", TrainingConfig.model_fields)
def test_every_field_of_a_setting_is_in_the_key_of_its_runs(field: str):
    assert moved(altered(f"settings.quick.{field}", another(TrainingConfig, field))) == RUNS
    assert moved(altered(f"settings.slow.{field}", another(TrainingConfig, field))) == set()


@pytest.mark.parametrize("field", Synthetic.model_fields)
def test_every_option_of_a_formula_is_in_the_keys_of_its_graph(field: str):
    assert moved(altered(f"datasets.tiny.synthetic.{field}", another(Synthetic, field))) == TINY


def test_every_parameter_of_every_method_is_in_its_key():
    config, checked = validate(RAW), 0
    for name, method in registry.methods().items():
        values, clients = others(method.parameters), 5 if method.partitioned else None
        spelled = [variants.format_name(name, {field: value}) for field, value in values.items()]
        found = {one_run(config, each, clients).key for each in (name, *spelled)}
        assert len(found) == 1 + len(values)
        checked += len(values)
    assert checked > 100
    changed = validate(
        merged(
            RAW,
            {
                "methods": {
                    name: others(each.parameters) for name, each in registry.methods().items()
                }
            },
        )
    )
    # The others have no parameters, as FedAvg, or are not asked for.
    assert moved(changed) == {"feddep"}


EVERY_KEY: list[tuple[str, Any, set[str]]] = [
    ("output", "elsewhere", set()),
    ("records", {"use": False, "directory": "elsewhere"}, set()),
    ("data.mirror", "/mirror", set()),
    ("device", "cuda", set()),
    ("trainings_per_gpu", 2, set()),
    ("threads", 8, set()),
    ("memory.training", 1, set()),
    ("margin.accuracy", 0.02, set()),
    ("datasets.cora.features", "row", RUNS - TINY),
    ("datasets.cora.labelled", 0.5, RUNS - TINY),
    ("datasets.cora.noise", "label_noise", RUNS - TINY),
    ("datasets.cora.noise_level", 0.3, RUNS - TINY),
    ("datasets.cora.noisy_clients", 0.5, RUNS - TINY),
    ("datasets.cora.split", {"train": 0.3}, SPLITS - TINY),
    ("datasets.cora.split", {"unseen": True}, SPLITS - TINY),
    ("datasets.cora.split", {"method": "class_balanced"}, SPLITS - TINY),
    ("datasets.cora.partition", {"method": "random"}, DIVIDED - TINY),
    ("datasets.cora.partition", {"delta": 10}, DIVIDED - TINY),
    ("datasets.cora.partition", {"engine": "igraph"}, DIVIDED - TINY),
    ("datasets.cora.partition", {"beta": 3.0}, set()),  # of another way to divide
    ("clients", [5], set()),
    ("seeds", [0, 1, 2], set()),
    ("split", {"train": 0.7, "val": 0.1}, SPLITS),
    ("partition.method", "random", DIVIDED),
    ("partition.delta", 10, DIVIDED),
    ("settings.slow.rounds", 3, set()),
    ("methods.feddep.prototypes", 3, {"feddep"}),
    ("methods.feddep.embedding", {"cora": 9, "tiny": 7}, {"feddep"}),
    ("methods.feddep.embedding", {"cora": 128, "tiny": 7}, set()),  # 128 is the default
    ("plugins", [], set()),
    ("tables", [{"setting": "slow", "methods": ["local"]}], set()),
    ("studies", [{"name": "c", "kind": "sweep", "runs": [{}]}], set()),
]


@pytest.mark.parametrize(("path", "value", "depending"), EVERY_KEY)
def test_every_key_of_the_configuration_changes_what_depends_on_it(
    path: str, value: Any, depending: set[str]
):
    assert moved(altered(path, value)) == depending


def test_no_key_of_the_configuration_is_forgotten():
    assert {path.partition(".")[0] for path, _, _ in EVERY_KEY} == set(Configuration.model_fields)
    assert set(Dataset.model_fields) - {"path", "synthetic"} <= {
        path.rpartition(".")[2] for path, _, _ in EVERY_KEY
    }


def test_a_name_is_only_a_name():
    """Of a setting, or of a variant that spells out what an entry says."""
    renamed = validate(
        {
            **RAW,
            "settings": {"renamed": {}},
            "tables": [{"setting": "renamed", "methods": ["fedavg"]}],
        }
    )
    assert fedavg(renamed).key == BEFORE["fedavg"]
    config = validate(RAW)
    one, other = (fedavg(config, setting=name) for name in ("quick,rounds=99", "slow"))
    assert one.key == other.key
    few = fedavg(config, dataset="cora,labelled=0.5").key
    assert few == fedavg(altered("datasets.cora.labelled", 0.5)).key != BEFORE["fedavg"]


def test_options_of_a_partition_that_its_method_does_not_read_are_in_no_key():
    config = validate(RAW)

    def of_cora(partition: str) -> tuple[str, str]:
        run = fedavg(config, partition=partition)
        return run.partition_key, run.key

    before = BEFORE["partition"], BEFORE["fedavg"]
    for same in ("", ",beta=3", ",shards=3", ",engine=python-louvain", ",delta=20"):
        assert of_cora(f"louvain{same}") == before
    assert of_cora("random,delta=3,engine=igraph,beta=3") == of_cora("random")
    others = ["metis", "overlap", "random", "dirichlet", "dirichlet,beta=0.5"]
    others += ["shards", "shards,shards=3"]
    found = [
        of_cora(name) for name in ("louvain", *others, "louvain,engine=igraph", "louvain,delta=3")
    ]
    assert [len({each[kind] for each in found}) for kind in (0, 1)] == [10, 10]


@pytest.mark.parametrize(
    ("module", "depending"),
    [
        (training, RUNS),
        (scaling, RUNS),
        (split, SPLITS),
        (partition, DIVIDED),
        (partitioners, DIVIDED),
        (synthetic, TINY),
        (noise, set()),
    ],
)
def test_raising_a_revision_changes_the_keys_of_what_depends_on_it(
    module: Any, depending: set[str], monkeypatch
):
    monkeypatch.setattr(module, "REVISION", module.REVISION + 1)
    assert moved() == depending


def test_the_revision_of_noise_is_in_the_keys_of_noisy_runs(monkeypatch: pytest.MonkeyPatch):
    noisy = altered("datasets.cora.noise", "label_noise"), altered("split.unseen", True)
    before = [all_keys(config)["feddep"] for config in noisy]
    monkeypatch.setattr(noise, "REVISION", noise.REVISION + 1)
    assert all(all_keys(c)["feddep"] != key for c, key in zip(noisy, before, strict=True))


def changed_methods(monkeypatch: pytest.MonkeyPatch, **changes: Method) -> None:
    monkeypatch.setattr(registry, "ADDED", changes)


def test_the_revision_of_a_method_is_in_its_keys(monkeypatch: pytest.MonkeyPatch):
    method = registry.find("fedavg")
    changed_methods(monkeypatch, new=dataclasses.replace(method, name="new"))
    assert moved() == set()
    changed_methods(monkeypatch, fedavg=dataclasses.replace(method, revision=2))
    assert moved() == {"fedavg", "tiny fedavg"}


def test_the_identity_of_an_encoder_is_in_the_steps_that_read_it(monkeypatch: pytest.MonkeyPatch):
    def identity_of(method="", function="", encoder="", **used):
        return {"encoder": encoder}

    run = one_run(validate(RAW), "answers_bayes", 5)
    _, parameters, (step,) = run.method.configured
    monkeypatch.setattr(plugins, "identity_of", identity_of)
    for each, known in ((step, "sage"), (dataclasses.replace(step, setting=()), "")):
        found = keys.step_specification(run.specification, each, parameters, {})
        assert found["revisions"]["encoder"] == known


def test_the_data_is_in_every_key_of_its_dataset(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(
        REGISTRY, "cora", dataclasses.replace(REGISTRY["cora"], fingerprint="0" * 64)
    )
    assert moved() == CORA


def test_the_content_of_ones_own_files_is_in_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def key(file: str) -> str:
        config = validate({**RAW, "datasets": {"mine": {"path": str(tmp_path / file)}}})
        return fedavg(config, dataset="mine").key

    for name, seed in {"one": 0, "moved": 0, "other": 1}.items():
        np.savez(tmp_path / name, **npz_arrays(random_graph(20, 30, seed=seed)))
    assert key("one.npz") == key("moved.npz") != key("other.npz")
    before = key("one.npz")
    monkeypatch.setattr(own_files, "REVISION", own_files.REVISION + 1)
    assert key("one.npz") != before
