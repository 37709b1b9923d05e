"""The configuration: defaults are filled in, and every mistake is named in one sentence."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from feddep import config as module
from feddep.config import MEASURED, SCHEMA, entry, load, main_tables, validate, variations
from feddep.errors import ConfigError

CONFIGS = Path(__file__).parent.parent / "config"
MINIMAL: dict[str, Any] = {
    "datasets": {"tiny": {"synthetic": {}}},
    "clients": [2],
    "seeds": [0],
    "settings": {"quick": {}},
    "frameworks": {"fedavg": {}},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The minimal configuration with one key set."""
    config = copy.deepcopy(MINIMAL)
    *parents, last = path.split(".")
    place = config
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = value
    return config


def test_defaults_are_filled_in_and_the_input_is_left_alone():
    raw = copy.deepcopy(MINIMAL)
    config = validate(raw)
    assert raw == MINIMAL
    assert config["output"] == "results"
    assert config["split"] == {"train": 0.6, "val": 0.2, "test": 0.2}
    assert config["partition"] == {"delta": 20}
    assert config["records"] == {"directory": "results/records", "use": True}
    assert config["datasets"]["tiny"]["features"] == "raw"
    assert config["datasets"]["tiny"]["synthetic"]["nodes"] == 240
    assert config["settings"]["quick"]["optimizer"] == "sgd"


def test_defaults_are_those_of_the_full_configuration():
    """config.yaml spells out every key; leaving them out says the same."""
    full = yaml.safe_load((CONFIGS / "config.yaml").read_text())
    short = {key: full[key] for key in ("clients", "seeds", "frameworks", "rows", "studies", *MEASURED)}
    short["settings"] = {**full["settings"], "feddep": {}}
    short["datasets"] = full["datasets"]
    assert validate(short) == validate(full)


def test_validating_twice_changes_nothing():
    once = validate(MINIMAL)
    assert validate(once) == once


def test_a_whole_number_is_read_as_the_number_it_is():
    config = validate(changed("settings.quick.learning_rate", 1))
    assert isinstance(config["settings"]["quick"]["learning_rate"], float)


@pytest.mark.parametrize("name", ["config.yaml", "demo.yaml", "smoke.yaml"])
def test_shipped_configurations_are_valid(name: str):
    assert load(CONFIGS / name)["frameworks"]


def test_smoke_needs_no_data():
    assert all("synthetic" in options for options in load(CONFIGS / "smoke.yaml")["datasets"].values())


def test_every_key_is_documented():
    text = (CONFIGS / "README.md").read_text()
    schema = yaml.safe_load(SCHEMA.read_text())

    def keys(rule: dict[str, Any]) -> set[str]:
        found = set(rule.get("properties", {}))
        inner = [*rule.get("properties", {}).values(), rule.get("additionalProperties")]
        return found.union(*(keys(each) for each in inner if isinstance(each, dict)))

    assert {key for key in keys(schema) if f"`{key}`" not in text} == set()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("optputs", "x", ["optputs is not a known key", "allowed: output, records"]),
        ("settings.quick.optimiser", "adam", ["settings.quick.optimiser is not a known key", "optimizer, learning_rate"]),
        ("datasets.tiny.synthetic.node", 3, ["datasets.tiny.synthetic.node is not a known key", "nodes, classes"]),
        ("settings.quick.optimizer", "rmsprop", ['settings.quick.optimizer is "rmsprop"', "allowed: sgd, adam"]),
        ("settings.quick.dropout", 1.0, ["settings.quick.dropout is 1.0", "below 1"]),
        ("settings.quick.rounds", 0, ["settings.quick.rounds is 0", "at least 1"]),
        ("settings.quick.rounds", 2.0, ["settings.quick.rounds is 2.0", "an integer"]),
        ("settings.quick.rounds", True, ["settings.quick.rounds is true", "an integer"]),
        ("settings.quick.learning_rate", "1e-3", ['learning_rate is "1e-3"', "a number", "write 0.001 without quotes"]),
        ("settings.quick.learning_rate", float("nan"), ["learning_rate is NaN", "a number"]),
        ("settings.quick.learning_rate", 0, ["learning_rate is 0.0", "above 0"]),
        ("datasets.tiny.synthetic.signal", 1.5, ["signal is 1.5", "at most 1"]),
        ("settings.quick", None, ["settings.quick is null", "a mapping (write {} for the defaults)"]),
        ("settings.Quick", {}, ["settings.Quick is not a name that fits in a path"]),
        ("settings", {}, ["settings is {}", "must not be empty"]),
        ("seeds", [0, 0], ["seeds is [0, 0]", "twice"]),
        ("seeds", [0, "1"], ['seeds.1 is "1"', "an integer"]),
        ("clients", 5, ["clients is 5", "a list"]),
        ("device", "gpu", ['device is "gpu"', "allowed: auto, cpu, cuda"]),
        ("data.mirror", 3, ["data.mirror is 3", "text or null"]),
        ("output", "my results", ['output is "my results"', "without blanks and quotes"]),
        ("output", "", ['output is ""', "must not be empty"]),
        ("split.train", 0.7, ["split is", "sums to 1.1", "must sum to 1"]),
        ("datasets.corra", {}, ["datasets.corra is not a known dataset", "cora"]),
        ("datasets.cora", {"synthetic": {}}, ["datasets.cora.synthetic is given, but cora is a real dataset"]),
        ("frameworks.fedavgg", {}, ["frameworks.fedavgg is not a known framework", "fedavg"]),
        ("frameworks.fedavg.mu", 0.1, ["frameworks.fedavg.mu is not a known key", "allowed: none"]),
        ("datasets", {3: {}}, ["datasets.3 is not a key that is text"]),
    ],
)
def test_a_mistake_is_named_in_one_sentence(path: str, value: Any, words: list[str]):
    with pytest.raises(ConfigError) as caught:
        validate(changed(path, value))
    sentence = str(caught.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("key", MINIMAL)
def test_a_missing_key_is_named(key: str):
    with pytest.raises(ConfigError, match=f"^{key} is missing; required: datasets, clients, seeds, settings, frameworks$"):
        validate({name: value for name, value in MINIMAL.items() if name != key})


def test_a_misspelt_key_is_named_before_the_key_that_it_leaves_missing():
    raw = {**MINIMAL, "seed": [0]}
    del raw["seeds"]
    with pytest.raises(ConfigError, match=r"^seed is not a known key"):
        validate(raw)


@pytest.mark.parametrize("raw", [None, [], "text"])
def test_a_configuration_that_is_no_mapping(raw: Any):
    with pytest.raises(ConfigError, match=r"the configuration is .*; it must be a mapping"):
        validate(raw)


def test_loading_what_is_not_there_or_not_yaml(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.yaml does not exist"):
        load(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1,\nb: }")
    with pytest.raises(ConfigError, match=r"bad\.yaml is not valid YAML: .*line 2"):
        load(tmp_path / "bad.yaml")


@dataclass(frozen=True)
class Parameters:
    """Parameters such as a framework may have."""

    prototypes: int = 15
    weight: float = 1.0
    clustering: Literal["kmeans", "dec"] = "kmeans"
    width: int | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        if self.prototypes < 1:
            raise ValueError("prototypes must be at least 1")


def test_framework_parameters_are_completed():
    given = {"weight": 2, "clustering": "dec", "width": 8}
    complete = module._complete_parameters("frameworks.x", given, Parameters)
    assert complete == {"prototypes": 15, "weight": 2.0, "clustering": "dec", "width": 8, "shared": False}
    assert isinstance(complete["weight"], float)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prototype": 3}, ["frameworks.x.prototype is not a known key", "prototypes, weight, clustering, width, shared"]),
        ({"prototypes": 1.5}, ["frameworks.x.prototypes is 1.5; it must be an integer"]),
        ({"prototypes": True}, ["frameworks.x.prototypes is true; it must be an integer"]),
        ({"weight": "1e-2"}, ['frameworks.x.weight is "1e-2"; it must be a number', "0.01"]),
        ({"clustering": "dbscan"}, ['frameworks.x.clustering is "dbscan"; it must be kmeans or dec']),
        ({"width": "wide"}, ["it must be an integer or null"]),
        ({"shared": 1}, ["frameworks.x.shared is 1; it must be true or false"]),
        ({"prototypes": 0}, ["frameworks.x is", "prototypes must be at least 1"]),
    ],
)
def test_a_wrong_framework_parameter_is_named(given: dict[str, Any], words: list[str]):
    with pytest.raises(ConfigError) as caught:
        module._complete_parameters("frameworks.x", given, Parameters)
    assert all(word in str(caught.value) for word in words), str(caught.value)


STUDY: dict[str, Any] = {"kind": "sweep", "runs": [{"frameworks": {"feddep": {"prototypes": [3, 5]}}, "seeds": [7]}]}


def test_a_study_is_checked_where_it_stands():
    assert validate({**MINIMAL, "studies": {"many": STUDY}})["studies"]["many"]["runs"][0]["seeds"] == [7]
    wrong = copy.deepcopy(STUDY)
    wrong["runs"][0]["frameworks"]["feddep"] = {"prototipes": [3]}
    with pytest.raises(ConfigError, match=r"studies.many.runs.0.frameworks: frameworks.feddep.prototipes is not a known key"):
        validate({**MINIMAL, "studies": {"many": wrong}})
    wrong["runs"][0] = {"datasets": {"nowhere": {}}}
    with pytest.raises(ConfigError, match=r"studies.many.runs.0.datasets: datasets.nowhere is not in the configuration"):
        validate({**MINIMAL, "studies": {"many": wrong}})
    wrong["runs"][0] = {"settings": {next(iter(MINIMAL["settings"])): {"rounds": [1, 0]}}}
    with pytest.raises(ConfigError, match=r"rounds is 0"):
        validate({**MINIMAL, "studies": {"many": wrong}})


def test_a_variation_is_spelled_by_what_differs():
    config = validate({**MINIMAL, "frameworks": {"feddep": {"prototypes": 5}}})
    given = {"feddep": {"prototypes": [3, 5], "bernoulli_rate": 1}}
    assert variations(config, "frameworks", given) == ["feddep,prototypes=3", "feddep"]
    assert entry(config, "frameworks", "feddep,prototypes=3") == {**config["frameworks"]["feddep"], "prototypes": 3}


def test_a_parameter_may_have_a_value_for_each_dataset():
    config = validate({**MINIMAL, "frameworks": {"feddep": {"embedding": {"cora": 128, "citeseer": 64}}}})
    assert entry(config, "frameworks", "feddep", "citeseer")["embedding"] == 64
    assert entry(config, "frameworks", "feddep", "cora,labelled=0.1")["embedding"] == 128
    assert entry(config, "frameworks", "feddep,embedding=9", "cora")["embedding"] == 9
    with pytest.raises(ConfigError, match=r"frameworks.feddep.embedding has a value for cora, citeseer, but none for pubmed"):
        entry(config, "frameworks", "feddep", "pubmed")
    with pytest.raises(ConfigError, match=r"frameworks.feddep.embedding is"):
        validate({**MINIMAL, "frameworks": {"feddep": {"embedding": {"cora": "wide"}}}})


def test_rows_have_entries():
    two = {**MINIMAL, "frameworks": {"fedavg": {}, "feddep": {}}}
    assert validate(two)["rows"] is None
    assert validate({**two, "rows": ["fedavg"]})["rows"] == ["fedavg"]
    with pytest.raises(ConfigError, match=r"rows names local, which has no entry in frameworks; there are fedavg, feddep"):
        validate({**two, "rows": ["local"]})


def test_rows_may_differ_between_settings():
    two = {**MINIMAL, "settings": {"quick": {}, "slow": {}}, "frameworks": {"fedavg": {}, "feddep": {}}}
    assert main_tables(validate(two)) == {"quick": ["fedavg", "feddep"], "slow": ["fedavg", "feddep"]}
    assert main_tables(validate({**two, "rows": ["feddep"]})) == {"quick": ["feddep"], "slow": ["feddep"]}
    assert main_tables(validate({**two, "rows": {"slow": ["feddep", "fedavg"]}})) == {"slow": ["feddep", "fedavg"]}
    for rows, message in [
        ({"fast": ["fedavg"]}, "rows.fast is of no setting; there are quick, slow"),
        ({"slow": ["local"]}, "rows.slow names local, which has no entry in frameworks; there are fedavg, feddep"),
        ({"slow": []}, "rows.slow is \\[\\]; it must not be empty"),
        ({}, "rows is {}; it must not be empty"),
        ("fedavg", 'rows is "fedavg"; it must be a list or a mapping or null'),
    ]:
        with pytest.raises(ConfigError, match=message):
            validate({**two, "rows": rows})


def test_a_setting_without_a_main_table_has_no_frameworks_to_take_from_it():
    raw = {**MINIMAL, "settings": {"quick": {}, "slow": {}}, "frameworks": {"fedavg": {}}, "rows": {"quick": ["fedavg"]}}
    study = {"kind": "sweep", "runs": [{"settings": {"slow": {}}, "frameworks": {"fedavg": {}}}]}
    assert validate({**raw, "studies": {"few": study}})
    study["runs"].append({"settings": {"slow": {}}})
    with pytest.raises(ConfigError, match=r"studies.few.runs.1 names no frameworks, and its setting slow has no main table"):
        validate({**raw, "studies": {"few": study}})
