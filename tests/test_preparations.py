"""Which steps a run needs, which runs share one, and what the keys of steps depend on."""

import copy
from pathlib import Path
from typing import Any

import pytest

from feddep import plan
from feddep.config import validate
from feddep.plan import Run
from feddep.preparations import key, preparations

RAW: dict[str, Any] = {
    "datasets": {"cora": {}, "tiny": {"synthetic": {}}},
    "clients": [3],
    "seeds": [0],
    "settings": {"quick": {}},
    "frameworks": {"fedavg": {}, "feddep": {}},
}


@pytest.fixture
def config() -> dict[str, Any]:
    return validate(RAW)


def files(config: dict[str, Any], framework: str, **changes: Any) -> dict[str, Path]:
    run = Run(**{"setting": "quick", "dataset": "cora", "clients": 3, "framework": framework, "seed": 0, **changes})
    return {prepared.step.stage: prepared.file for prepared in preparations(config, run)}


def test_stages_in_their_order(config):
    assert list(files(config, "feddep")) == ["pretrain", "prototypes", "generator"]
    assert list(files(config, "feddep_wo_proto")) == ["pretrain", "generator"]
    assert files(config, "fedavg") == {}


def test_a_file_is_named_by_what_it_depends_on(config):
    pretrain = files(config, "feddep")["pretrain"]
    assert pretrain.parts[:4] == ("pretrain", "quick", "cora", "m3")
    assert pretrain.name == "seed0.safetensors"


def test_changing_c_makes_anew_from_the_clustering_on(config):
    before, after = files(config, "feddep"), files(config, "feddep,prototypes=3")
    assert before["pretrain"] == after["pretrain"]
    assert before["prototypes"] != after["prototypes"]
    assert before["generator"] != after["generator"]


def test_ablations_share_what_they_have_in_common(config):
    assert files(config, "feddep")["pretrain"] == files(config, "feddep_wo_proto")["pretrain"]
    assert files(config, "feddep")["generator"] != files(config, "feddep_wo_proto")["generator"]
    assert files(config, "feddep")["pretrain"] != files(config, "feddep_wo_dgen")["pretrain"]


def test_what_only_testing_reads_makes_nothing_anew(config):
    assert files(config, "feddep") == files(config, "feddep,inference=generated")


@pytest.mark.parametrize("change", [{"seed": 1}, {"dataset": "tiny"}, {"dataset": "cora,labelled=0.1"}, {"clients": 5}])
def test_nothing_is_shared_between_different_data(config, change):
    assert not set(files(config, "feddep").values()) & set(files(config, "feddep", **change).values())


def test_the_key_follows_every_option_that_matters_and_no_other(config):
    def keys(config: dict[str, Any], framework: str = "feddep") -> list[str]:
        return [key(config, prepared) for prepared in preparations(config, Run("quick", "cora", 3, framework, 0))]

    other = copy.deepcopy(config)
    other["settings"]["quick"]["hidden"] += 1
    assert all(a != b for a, b in zip(keys(config), keys(other), strict=True))
    other = copy.deepcopy(config)
    other["device"] = "cpu"
    assert keys(config) == keys(other)
    first, again = keys(config), keys(config, "feddep,generator_epochs=9")
    assert first[:2] == again[:2]
    assert first[2] != again[2]


def test_a_variant_has_the_key_of_an_entry_that_says_the_same(config):
    other = copy.deepcopy(config)
    other["frameworks"]["feddep"]["prototypes"] = 3
    spelled = plan.key(config, Run("quick", "cora", 3, "feddep,prototypes=3", 0))
    assert spelled == plan.key(other, Run("quick", "cora", 3, "feddep", 0))
    assert spelled != plan.key(config, Run("quick", "cora", 3, "feddep", 0))
