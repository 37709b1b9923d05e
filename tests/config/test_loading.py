"""The configuration: defaults are filled in, and every mistake is named in one sentence."""

import copy
import json
import typing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from feddep.config.loading import (
    MEASURED,
    entry,
    load,
    main_tables,
    merged,
    table_datasets,
    typed,
    validate,
    variations,
)
from feddep.config.models import Configuration, Study
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import plan
from feddep.methods import registry
from feddep.methods.method import Method
from feddep.reporting import studies
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import Parameters, Positive

CONFIGS = Path(__file__).parents[2] / "config"
MINIMAL: dict[str, Any] = {
    "datasets": {"tiny": {"synthetic": {}}},
    "clients": [2],
    "seeds": [0],
    "settings": {"quick": {}},
    "methods": {"fedavg": {}},
}
STUDY: dict[str, Any] = {
    "name": "many",
    "kind": "sweep",
    "runs": [{"methods": {"feddep": {"prototypes": [3, 5]}}, "seeds": [7]}],
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


def refusal(raw: Any) -> str:
    """The sentence that a configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        validate(raw)
    check_sentence(caught.value)
    return str(caught.value)


def check_sentence(error: ConfigError) -> None:
    """An error message is one line that a terminal can show, and says where."""
    assert str(error).isprintable()
    assert str(error).encode()
    assert not str(error).startswith((" ", "."))


def test_defaults_are_filled_in_and_the_input_is_left_alone():
    raw = copy.deepcopy(MINIMAL)
    config = validate(raw)
    assert raw == MINIMAL
    assert list(config) == sorted(set(Configuration.model_fields) - {"plugins"})  # which is left out where it is empty
    assert config["output"] == "results"
    assert config["split"] == {"train": 0.6, "val": 0.2, "test": 0.2}
    assert config["partition"] == {"method": "louvain", "delta": 20, "engine": "python-louvain", "beta": 1.0}
    assert config["records"] == {"directory": "results/records", "use": True, "strict": False}
    assert config["datasets"]["tiny"]["features"] == "raw"
    assert config["datasets"]["tiny"]["synthetic"]["nodes"] == 240
    assert config["settings"]["quick"]["optimizer"] == "sgd"


def test_defaults_are_those_of_the_full_configuration():
    """config.yaml spells out every key; leaving them out says the same."""
    full = yaml.safe_load((CONFIGS / "config.yaml").read_text())
    short = {key: full[key] for key in ("datasets", "clients", "seeds", "methods", "tables", "studies", *MEASURED)}
    short["settings"] = {**full["settings"], "feddep": {}}
    assert validate(short) == validate(full)


def test_a_whole_number_is_read_as_the_number_it_is():
    config = validate(changed("settings.quick.learning_rate", 1))
    assert isinstance(config["settings"]["quick"]["learning_rate"], float)


@pytest.mark.parametrize("name", [[], ["demo.yaml"], ["smoke.yaml"]])
def test_shipped_configurations_are_valid(name: list[str]):
    config = load(CONFIGS / "config.yaml", *(CONFIGS / each for each in name))
    assert main_tables(config)
    assert plan.all_runs(config)


def test_smoke_needs_no_data():
    config = load(CONFIGS / "config.yaml", CONFIGS / "smoke.yaml")
    assert all("synthetic" in config["datasets"][run.dataset] for run in plan.all_runs(config))


def test_mappings_are_merged_and_lists_replaced():
    base = {"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2], "f": {"g": 3}}
    changes = {"a": {"b": 9, "c": {"x": 8}}, "e": [3], "f": None, "h": {}}
    assert merged(base, changes) == {"a": {"b": 9, "c": {"d": 2, "x": 8}}, "e": [3], "f": None, "h": {}}
    assert base == {"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2], "f": {"g": 3}}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("optputs", "x", ["optputs is not a known key", "allowed: output, records"]),
        ("settings.quick.optimiser", "adam", ["settings.quick.optimiser is not a known key", "optimizer, learning_rate"]),
        ("datasets.tiny.synthetic.node", 3, ["datasets.tiny.synthetic.node is not a known key", "nodes, classes"]),
        ("settings.quick.optimizer", "rmsprop", ['settings.quick.optimizer is "rmsprop"', "allowed: sgd, adam"]),
        ("settings.quick.dropout", 1.0, ["settings.quick.dropout is 1.0", "below 1"]),
        ("settings.quick.rounds", 0, ["settings.quick.rounds is 0", "at least 1"]),
        ("settings.quick.rounds", 10**7, ["settings.quick.rounds is 10000000", "at most 1000000"]),
        ("settings.quick.rounds", 2.0, ["settings.quick.rounds is 2.0", "an integer"]),
        ("settings.quick.rounds", True, ["settings.quick.rounds is true", "an integer"]),
        ("settings.quick.fanout", 10**5, ["settings.quick.fanout is 100000", "at most 10000"]),
        (
            "settings.quick.learning_rate",
            "1e-3",
            ['learning_rate is "1e-3"', "a number", "write 0.001 without quotes; YAML reads an exponent"],
        ),
        ("settings.quick.learning_rate", False, ["learning_rate is false", "a number"]),
        ("settings.quick.learning_rate", float("nan"), ["learning_rate is NaN", "a number"]),
        ("settings.quick.learning_rate", float("inf"), ["learning_rate is Infinity", "a number"]),
        ("settings.quick.learning_rate", 0, ["learning_rate is 0", "above 0"]),
        ("datasets.tiny.synthetic.signal", 1.5, ["signal is 1.5", "at most 1"]),
        ("settings.quick", None, ["settings.quick is null", "a mapping (write {} for the defaults)"]),
        ("settings.Quick", {}, ["settings.Quick is not a name that fits in a path"]),
        ("settings." + "q" * 200, {}, ["at most 100 characters"]),
        ("settings", {}, ["settings is {}", "must not be empty"]),
        ("seeds", [], ["seeds is []", "must not be empty"]),
        ("seeds", [0, 0], ["seeds is [0, 0]", "twice"]),
        ("seeds", [0, "1"], ['seeds.1 is "1"', "an integer (write 1 without quotes)"]),
        ("seeds", [2**63], ["seeds.0 is 9223372036854775808", "below 9223372036854775808"]),
        ("clients", 5, ["clients is 5", "a list (write [5])"]),
        ("clients", ["3"], ['clients.0 is "3"', "(write 3 without quotes)"]),
        ("device", "gpu", ['device is "gpu"', "allowed: auto, cpu, cuda"]),
        ("data.mirror", 3, ["data.mirror is 3", "text or null"]),
        ("records.use", 1, ["records.use is 1", "true or false"]),
        ("output", "my results", ['output is "my results"', "letters, digits"]),
        ("output", "", ['output is ""', "letters, digits"]),
        ("output", "-rf", ['output is "-rf"', "not beginning with -"]),
        ("output", "a\ud800", ["output is"]),
        ("split.train", 0.7, ["split is", "sums to 1.1", "must sum to 1"]),
        ("split.train", 0.6000001, ["sums to 1.0000001;"]),
        ("datasets.corra", {}, ["datasets.corra is not a known dataset", "cora"]),
        ("datasets.cora", {"synthetic": {}}, ["datasets.cora.synthetic is given, but cora is a real dataset"]),
        ("methods.fedavgg", {}, ["methods.fedavgg is not a known method", "fedavg"]),
        ("methods.fedavg.mu", 0.1, ["methods.fedavg.mu is not a known key", "allowed: none"]),
        ("methods.fedavg", [], ["methods.fedavg is []", "a mapping"]),
        ("datasets", {3: {}}, ["datasets.3 is not a key: a key is text"]),
        ("datasets", {None: {}}, ["datasets.null is not a key: a key is text"]),
        ("tables", [{3: {}}], ["tables.0.3 is not a key: a key is text"]),
        ("two\nlines", {}, ['"two\\nlines" is not a key: a key is text']),
        ("audit.membership", [3], ["audit.membership.0 is 3", "must be text"]),
        ("audit.membership", "fedavg", ['audit.membership is "fedavg"', 'a list (write ["fedavg"])']),
        ("audit.membership", ["fedavgg"], ['audit.membership.0 is "fedavgg"', "known are"]),
        ("audit.dataset", "corra", ['audit.dataset is "corra"', "one of tiny"]),
        ("studies", {"many": STUDY}, ["studies is", "must be a list"]),
        ("studies", [{**STUDY, "kind": "sweeep"}], ['studies.0.kind is "sweeep"', "allowed: sweep, curves"]),
        ("studies", [STUDY, STUDY], ["studies has the name many twice"]),
        ("studies", [{"kind": "sweep"}], ["studies.0.name is missing", "required: name, kind, runs"]),
        ("studies", [{**STUDY, "runs": []}], ["studies.0.runs is []", "must not be empty"]),
        ("quality", None, ["quality is null", "a list"]),
        ("quality", [{"methods": {"feddep": {"prototypes": []}}}], ["methods.feddep.prototypes is []", "a list of values"]),
        (
            "quality",
            [{"methods": {"feddep": {"embedding": {"cora": 1}}}}],
            ["methods.feddep.embedding is {", "a value or a list"],
        ),
        ("quality", [{"methods": {"feddep": {"clustering": "a,b"}}}], ['clustering is "a,b"; allowed: kmeans, dec']),
        ("quality", [{"methods": {}}], ["quality.0.methods is {}", "must not be empty"]),
    ],
)
def test_a_mistake_is_named_in_one_sentence(path: str, value: Any, words: list[str]):
    sentence = refusal(changed(path, value))
    assert all(word in sentence for word in words), sentence
    assert len(sentence) < 400


def test_a_huge_integer_is_not_written_out():
    assert (
        refusal(changed("settings.quick.rounds", 10**5000)) == "settings.quick.rounds is of type int; it must be at most 1000000"
    )
    assert (
        refusal(changed("settings.quick.learning_rate", 10**5000))
        == "settings.quick.learning_rate is of type int; it must be a number"
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [("datasets", None), ("clients", ["0"]), ("clients", ["2.5"]), ("clients", ["inf"]), ("clients", ["nan"]), ("clients", 0)],
)
def test_what_would_be_refused_is_no_hint(path: str, value: Any):
    assert "write" not in refusal(changed(path, value))


@pytest.mark.parametrize("key", MINIMAL)
def test_a_missing_key_is_named(key: str):
    sentence = refusal({name: value for name, value in MINIMAL.items() if name != key})
    assert sentence == f"{key} is missing; required: datasets, clients, seeds, settings, methods"


def test_a_misspelt_key_is_named_before_the_key_that_it_leaves_missing():
    raw = {**MINIMAL, "seed": [0]}
    del raw["seeds"]
    assert refusal(raw).startswith("seed is not a known key")


@pytest.mark.parametrize("raw", [None, [], "text", 3])
def test_a_configuration_that_is_no_mapping(raw: Any):
    assert refusal(raw) == f"the configuration is {json.dumps(raw)}; it must be a mapping"


def test_what_contains_itself_is_refused():
    mapping: dict[str, Any] = {}
    mapping["quick"] = mapping
    assert refusal({**MINIMAL, "settings": mapping}) == "settings is nested too deeply; 12 levels are allowed"
    sequence: list[Any] = []
    sequence.append(sequence)
    assert refusal({**MINIMAL, "seeds": sequence}) == "seeds is nested too deeply; 12 levels are allowed"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1,\nb: }", "is not valid YAML: .*line 2"),
        ("seeds: [0]\nclients: [1]\nseeds: [1]", "is not valid YAML: the key seeds occurs twice .*line 3"),
        ("settings:\n  quick: {rounds: 1, rounds: 2}", "the key rounds occurs twice .*line 2"),
        ("settings: &s {quick: *s}", "settings is nested too deeply"),
        ("seeds: &s [*s]", "seeds is nested too deeply"),
        ("[" * 3000 + "]" * 3000, "is nested too deeply"),
        ("{a: " * 3000 + "1" + "}" * 3000, "is nested too deeply"),
        ("", "is null; it must be a mapping"),
        ("[]", r"is \[\]; it must be a mapping"),
        ("seeds: [!!int x]", "is not valid YAML: invalid literal"),
        ("seeds: [!!bool x]", "is not valid YAML"),
        ("seeds: [!!timestamp x]", "is not valid YAML"),
        ("seeds: [!!python/object:os.system x]", "is not valid YAML: could not determine a constructor"),
        ("seeds: [2020-13-45]", "is not valid YAML: month must be in 1"),
        ("seeds: [1" + "0" * 5000 + "]", "is not valid YAML"),
        ("a: 1\n---\nb: 2", "is not valid YAML: expected a single document"),
        ("{}", "datasets is missing"),
    ],
)
def test_a_file_that_is_no_configuration(text: str, words: str, tmp_path: Path):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        load(tmp_path / "bad.yaml")
    assert str(caught.value).isprintable()


def test_a_file_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.yaml does not exist"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory"):
        load(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match=r"bytes\.yaml is not valid YAML"):
        load(tmp_path / "bytes.yaml")


def test_a_merge_key_may_be_overridden(tmp_path: Path):
    text = "methods: {feddep: &a {prototypes: 3}, feddep_wo_proto: &b {<<: *a, prototypes: 4}, feddep_joint: {<<: *b}}"
    raw = {key: value for key, value in MINIMAL.items() if key != "methods"}
    (tmp_path / "good.yaml").write_text(f"{yaml.safe_dump(raw)}\n{text}\n")
    methods = load(tmp_path / "good.yaml")["methods"]
    assert [methods[name]["prototypes"] for name in ("feddep", "feddep_wo_proto", "feddep_joint")] == [3, 4, 4]


class ToyParameters(Parameters):
    """Parameters such as a method may have."""

    prototypes: Positive = 15
    weight: float = 1.0
    clustering: typing.Literal["kmeans", "dec"] = "kmeans"
    width: Positive | None = None
    shared: bool = False


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method called toy in the registry."""
    known = {**registry.methods(), "toy": Method("toy", "Toy", ToyParameters, "nowhere:run")}
    monkeypatch.setattr(registry, "methods", lambda: known)


@pytest.mark.usefixtures("toy")
def test_method_parameters_are_completed():
    given = {"weight": 2, "clustering": "dec", "width": 8}
    complete = validate(changed("methods.toy", given))["methods"]["toy"]
    assert complete == {"prototypes": 15, "weight": 2.0, "clustering": "dec", "width": 8, "shared": False}
    assert isinstance(complete["weight"], float)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prototype": 3}, ["methods.toy.prototype is not a known key", "prototypes, weight, clustering, width, shared"]),
        ({"prototypes": 1.5}, ["methods.toy.prototypes is 1.5; it must be an integer"]),
        ({"prototypes": True}, ["methods.toy.prototypes is true; it must be an integer"]),
        ({"weight": "1e-2"}, ['methods.toy.weight is "1e-2"; it must be a number', "0.01"]),
        ({"clustering": "dbscan"}, ['methods.toy.clustering is "dbscan"; allowed: kmeans, dec']),
        ({"width": "wide"}, ["it must be an integer or null"]),
        ({"shared": 1}, ["methods.toy.shared is 1; it must be true or false"]),
        ({"prototypes": 0}, ["methods.toy.prototypes is 0; it must be at least 1"]),
        ({"prototypes": {}}, ["methods.toy.prototypes is {}", "one for each dataset"]),
        ({"prototypes": {"tiny": {}}}, ["methods.toy.prototypes.tiny is {}; it must be an integer"]),
        ({"prototypes": {"tiny": "3"}}, ["methods.toy.prototypes.tiny is", "write 3 without quotes"]),
        ({"prototypes": {"corra": 3}}, ["methods.toy.prototypes.corra is of no dataset", "cora"]),
    ],
)
def test_a_wrong_method_parameter_is_named(given: dict[str, Any], words: list[str]):
    sentence = refusal(changed("methods.toy", given))
    assert all(word in sentence for word in words), sentence


def test_parameters_that_do_not_go_together_are_named():
    sentence = refusal(changed("methods.feddep_wo_dgen", {"depth": 2}))
    assert sentence.startswith("methods.feddep_wo_dgen is {")
    assert sentence.endswith(": depth must be 0 without deep neighbours")


def test_a_study_is_checked_where_it_stands():
    assert validate({**MINIMAL, "studies": [STUDY]})["studies"]["many"]["runs"][0]["seeds"] == [7]
    for block, sentence in [
        ({"methods": {"feddep": {"prototipes": [3]}}}, "methods: methods.feddep.prototipes is not a known key"),
        ({"datasets": {"nowhere": {}}}, "datasets: datasets.nowhere is not in the configuration"),
        ({"settings": {"quick": {"rounds": [1, 0]}}}, "settings: settings.quick.rounds is 0"),
        ({"settings": {"quick,rounds": {}}}, "settings: quick,rounds has 'rounds'"),
    ]:
        wrong = {**STUDY, "runs": [block]}
        assert refusal({**MINIMAL, "studies": [wrong]}).startswith(f"studies.many.runs.0.{sentence}")


def test_every_kind_of_study_is_allowed():
    kinds = typing.get_args(Study.model_fields["kind"].annotation)
    assert set(kinds) == {path.stem for path in Path(studies.__path__[0]).glob("[!_]*.py")}


def test_a_variation_is_spelled_by_what_differs():
    config = validate({**MINIMAL, "methods": {"feddep": {"prototypes": 5}}})
    given = {"feddep": {"prototypes": [3, 5], "bernoulli_rate": 1}}
    assert variations(config, "methods", given) == ["feddep,prototypes=3", "feddep"]
    assert variations(config, "methods", {"feddep,prototypes=3": {"depth": 1}}) == ["feddep,prototypes=3,depth=1"]
    assert entry(config, "methods", "feddep,prototypes=3") == {**config["methods"]["feddep"], "prototypes": 3}


def test_a_parameter_may_have_a_value_for_each_dataset():
    config = validate({**MINIMAL, "methods": {"feddep": {"embedding": {"cora": 128, "citeseer": 64}}}})
    assert entry(config, "methods", "feddep", "citeseer")["embedding"] == 64
    assert entry(config, "methods", "feddep", "cora,labelled=0.1")["embedding"] == 128
    assert entry(config, "methods", "feddep,embedding=9", "cora")["embedding"] == 9
    none = r"methods.feddep.embedding has a value for citeseer, cora, but none for pubmed, and no default$"
    with pytest.raises(ConfigError, match=none):
        entry(config, "methods", "feddep", "pubmed")
    assert "methods.feddep.embedding.cora is" in refusal(changed("methods.feddep", {"embedding": {"cora": "wide"}}))


def test_a_parameter_may_have_a_value_for_all_other_datasets():
    by_dataset = {"cora": None, "default": 3, "tiny": 5}
    config = validate({**MINIMAL, "methods": {"feddep": {"prototypes": by_dataset}}})
    values = {name: entry(config, "methods", "feddep", name)["prototypes"] for name in ("cora", "pubmed", "tiny,labelled=0.1")}
    assert values == {"cora": None, "pubmed": 3, "tiny,labelled=0.1": 5}
    assert "methods.feddep.prototypes.default is 0" in refusal(changed("methods.feddep", {"prototypes": {"default": 0}}))
    assert refusal(changed("datasets.default", {"synthetic": {}})).startswith("datasets.default is no name of a dataset")


def test_config_yaml_has_parameters_for_graphs_of_ones_own():
    config = load(CONFIGS / "config.yaml")
    for method in config["methods"]:
        entry(config, "methods", method, "mine")
    embedding = {name: entry(config, "methods", "feddep", name)["embedding"] for name in ("mine", "citeseer", "msacademic")}
    assert embedding == {"mine": 128, "citeseer": 64, "msacademic": 256}


TWO: dict[str, Any] = {
    **MINIMAL,
    "datasets": {"tiny": {"synthetic": {}}, "cora": {}},
    "settings": {"quick": {}, "slow": {}},
    "methods": {"fedavg": {}, "feddep": {}},
}


def test_tables_may_differ_between_settings():
    everything = ["fedavg", "feddep"]
    assert main_tables(validate(TWO)) == {"quick": everything, "slow": everything}
    assert table_datasets(validate(TWO), "slow") == ["cora", "tiny"]
    config = validate({**TWO, "tables": [{"setting": "slow", "methods": ["feddep", "fedavg"], "datasets": ["cora"]}]})
    assert main_tables(config) == {"slow": ["feddep", "fedavg"]}
    assert table_datasets(config, "slow") == table_datasets(config, "quick") == ["cora"]
    assert main_tables(validate({**TWO, "tables": [{"setting": "quick"}, {"setting": "slow"}]})) == {
        "quick": everything,
        "slow": everything,
    }


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ([{"setting": "fast"}], "tables.0 names fast, which has no entry in settings; there are quick, slow"),
        (
            [{"setting": "slow"}, {"setting": "quick", "methods": ["local"]}],
            "tables.1 names local, which has no entry in methods; there are fedavg, feddep",
        ),
        (
            [{"setting": "slow", "datasets": ["pubmed"]}],
            "tables.0 names pubmed, which has no entry in datasets; there are cora, tiny",
        ),
        ([{"setting": "slow", "methods": []}], "tables.0.methods is []; it must not be empty"),
        (
            [{"setting": "slow", "methods": ["fedavg", "fedavg"]}],
            'tables.0.methods is ["fedavg", "fedavg"]: no entry may occur twice',
        ),
        ([], "tables is []; it must not be empty"),
        ([{}], "tables.0.setting is missing; required: setting"),
        ({"slow": ["fedavg"]}, 'tables is {"slow": ["fedavg"]}; it must be a list or null'),
        ([{"setting": "slow"}, {"setting": "slow"}], 'tables is ["slow", "slow"] by setting; a setting has one table'),
    ],
)
def test_what_is_wrong_with_a_table(tables: Any, sentence: str):
    assert refusal({**TWO, "tables": tables}) == sentence


def test_a_setting_without_a_main_table_has_no_methods_to_take_from_it():
    raw = {**TWO, "tables": [{"setting": "quick", "methods": ["fedavg"]}]}
    study = {"name": "few", "kind": "sweep", "runs": [{"settings": {"slow": {}}, "methods": {"fedavg": {}}}]}
    assert validate({**raw, "studies": [study]})
    study["runs"].append({"settings": {"slow": {}}})
    assert refusal({**raw, "studies": [study]}).startswith(
        "studies.few.runs.1 names no methods, and its setting slow has no main table"
    )


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "3", "1e-3", "inf", "quick", "fedavg", "feddep,prototypes=3", "a,b=", "über", "two\nlines", "\ud800"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "tiny", 3, None]), inner, max_size=3),
    max_leaves=6,
)
NAMES = {
    "datasets": ["tiny", "cora", "corra"],
    "settings": ["quick", "slow", "Slow"],
    "methods": ["feddep", "feddep_wo_proto", "feddep_joint", "fedavgg"],
}


def usual(annotation: Any, field: str = "") -> st.SearchStrategy[Any]:
    """Values that mostly fit an annotation."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return model(annotation)
    if field in NAMES and (origin is dict or dict in map(typing.get_origin, arguments)):
        return st.dictionaries(st.sampled_from(NAMES[field][:2]), entry_options(field), min_size=1, max_size=2)
    if origin is typing.Annotated:
        return usual(arguments[0], field)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (list, tuple):
        inner = st.sampled_from(NAMES["methods"]) if arguments[0] is str else usual(arguments[0], field)
        return st.lists(inner, min_size=1, max_size=2)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["tiny", "quick", "feddep"]), usual(arguments[1]), max_size=2)
    if arguments:
        return st.one_of(*(usual(each, field) for each in arguments))
    scalars = {int: st.integers(0, 8), float: st.floats(0, 1), bool: st.booleans(), type(None): st.none()}
    return scalars.get(annotation, st.sampled_from(["quick", "tiny", "results"]))


FITTING: dict[str, dict[str, list[Any]]] = {
    "datasets": {"features": ["row", "raw"], "labelled": [0.1, None]},
    "settings": {"rounds": [1, 9, [1, 2]], "learning_rate": [1, 0.1], "optimizer": ["adam"]},
    "methods": {"embedding": [3, {"tiny": 4}], "prototypes": [None, [2, 4]], "hidden_share": [0.5], "scale": ["paper"]},
}


@st.composite
def entry_options(draw: st.DrawFn, section: str) -> dict[str, Any]:
    """Options of an entry, or of its variations; now and then one that is wrong."""
    drawn = {}
    for key, values in FITTING[section].items():
        kind = draw(st.integers(0, 60))
        if kind <= 4:
            drawn[key] = (
                draw(st.sampled_from([3, "adam", [], {}, {"corra": 3}, "2"])) if kind == 0 else draw(st.sampled_from(values))
            )
    return drawn


@st.composite
def model(draw: st.DrawFn, of: type[BaseModel]) -> dict[str, Any]:
    """Fields of a model: most fit, some are missing, of another type, or unknown."""
    drawn = {}
    for name, field in of.model_fields.items():
        if field.is_required() or draw(st.integers(0, 3)) == 0:
            drawn[name] = draw(JSON if draw(st.integers(0, 90)) == 0 else usual(field.annotation, name))
    if draw(st.integers(0, 90)) == 0:
        drawn[draw(st.sampled_from(["unknown", "two\nlines", "\ud800"]))] = draw(JSON)
    return drawn


@pytest.mark.slow
@given(raw=model(Configuration), base=st.booleans())
@settings(max_examples=400)
def test_any_configuration_is_accepted_or_refused_in_one_sentence(raw: dict[str, Any], base: bool):
    try:
        config = validate(merged(MINIMAL, raw) if base else raw)
        runs = plan.all_runs(config)
        for key in MEASURED:
            plan.measured_runs(config, key)
        assert len({run.path for run in runs}) == len(runs)
    except ConfigError as error:
        check_sentence(error)


@given(raw=JSON)
def test_any_value_is_refused_in_one_sentence(raw: Any):
    assert refusal(raw)


@given(
    section=st.sampled_from(["output", "clients", "datasets", "settings", "methods", "tables", "studies", "split", "audit"]),
    value=JSON,
)
@settings(max_examples=300)
def test_any_value_of_a_key_is_accepted_or_refused_in_one_sentence(section: str, value: Any):
    try:
        plan.all_runs(validate({**MINIMAL, section: value}))
    except ConfigError as error:
        check_sentence(error)


def test_real_datasets_need_no_options():
    config = validate({**MINIMAL, "datasets": {name: {} for name in REGISTRY}})
    assert list(config["datasets"]) == sorted(REGISTRY)


@pytest.mark.parametrize(
    ("text", "learning_rate"),
    [
        ('{"settings": {"quick": {"learning_rate": 1e-3}}}', 0.001),
        ('{\n\t"settings": {"quick": {"learning_rate": 2}}\n}', 2.0),
        ("\ufeffsettings: {quick: {learning_rate: 0.5}}", 0.5),
    ],
)
def test_json_and_a_byte_order_mark_are_read(text: str, learning_rate: float, tmp_path: Path):
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(MINIMAL))
    (tmp_path / "changes.json").write_text(text, encoding="utf-8")
    config = load(tmp_path / "base.yaml", tmp_path / "changes.json")
    assert config["settings"]["quick"]["learning_rate"] == learning_rate


def test_anchors_that_multiply_are_not_followed(tmp_path: Path):
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)]
    (tmp_path / "many.yaml").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="makes more than 20000 values of the configuration"):
        load(tmp_path / "many.yaml")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({key: list(range(1, 200)) for key in ("rounds", "batch_size", "local_epochs")}, "has more than 1000 variations"),
        (
            {"rounds": list(range(1, 20)), "batch_size": list(range(1, 20)), "fanout": []},
            "fanout is .*; it must be a value or a list",
        ),
    ],
)
def test_variations_that_are_too_many_are_not_counted_out(options: dict[str, Any], words: str):
    study = {"name": "many", "kind": "sweep", "runs": [{"settings": {"quick": options}}]}
    with pytest.raises(ConfigError, match=words):
        validate({**MINIMAL, "studies": [study]})


def test_a_variation_has_the_name_of_a_folder():
    long = dict.fromkeys(("count_weight", "cross_weight", "intra_weight", "task_weight", "hidden_share"), 0.1234567890123456)
    block = {"methods": {"feddep": {**long, "bernoulli_rate": 0.1234567890123456, "generator_learning_rate": 0.12345678901234}}}
    assert "a folder's name has at most 200, so give feddep an entry" in refusal({**MINIMAL, "quality": [block]})


@pytest.mark.parametrize(
    ("path", "value"),
    [("datasets.tiny", None), ("audit.membership", ""), ("tables", {"setting": "slow"}), ("settings.quick.rounds", "0")],
)
def test_a_hint_is_confirmed_by_all_checks(path: str, value: Any):
    assert "write" not in refusal(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [("output", "a" * 2000), ("data.mirror", "a\nb"), ("data.mirror", "\u202e"), ("studies", [{**STUDY, "title": "\x00"}])],
)
def test_text_is_one_line_of_printable_characters(path: str, value: Any):
    assert "one line of printable characters, at most 1000" in refusal(changed(path, value))


def test_values_of_the_command_line_are_read_as_yaml():
    assert typed({"seeds": ["0", "1"], "settings": {"quick": {"learning_rate": "0.5", "rounds": 3}}}) == {
        "seeds": [0, 1],
        "settings": {"quick": {"learning_rate": 0.5, "rounds": 3}},
    }
    with pytest.raises(ConfigError, match=r"--config settings\.quick is not valid YAML: "):
        typed({"settings": {"quick": "{rounds: "}})
