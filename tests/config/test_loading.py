"""The configuration: defaults are filled in, and a mistake is an error that names its key."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from snakemake.utils import update_config

from feddep.config import entries
from feddep.config.loading import (
    STUDIES,
    load,
    main_tables,
    merged,
    read,
    table_datasets,
    typed,
    validate,
)
from feddep.config.models import Configuration
from feddep.experiment import plan
from feddep.utils.errors import ConfigError
from graphs import MINIMAL_CONFIG as MINIMAL
from graphs import changed

ROOT = Path(__file__).parents[2]
STUDY: dict[str, Any] = {
    "name": "many",
    "kind": "sweep",
    "runs": [{"methods": {"feddep": {"prototypes": [3, 5]}}, "seeds": [7]}],
}


def refusal(raw: Any) -> str:
    """The sentence that a configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        validate(raw)
    return str(caught.value)


def test_defaults_are_filled_in_and_the_input_is_left_alone():
    raw = copy.deepcopy(MINIMAL)
    config = validate(raw)
    assert raw == MINIMAL
    assert list(config) == sorted(Configuration.model_fields)
    assert config["split"] == {"method": "random", "train": 0.6, "val": 0.2, "unseen": False}
    assert config["partition"] == {
        "method": "louvain",
        "delta": 20,
        "engine": None,
        "beta": 1.0,
        "shards": 2,
    }
    assert config["records"] == {"directory": "results/runs", "use": True}
    assert config["datasets"]["tiny"]["synthetic"]["nodes"] == 240
    assert config["datasets"]["tiny"]["partition"] == {
        **config["partition"],
        "engine": "python-louvain",
    }
    assert config["settings"]["quick"]["optimizer"] == "adam"
    assert isinstance(
        validate(changed("settings.quick.learning_rate", 1))["settings"]["quick"]["learning_rate"],
        float,
    )
    complete = validate(changed("methods.feddep", {"prototypes": 3}))["methods"]["feddep"]
    assert complete == {**entries.one(config, "methods", "feddep").options, "prototypes": 3}
    assert len(complete) > 10


@pytest.mark.parametrize(
    ("nodes", "given", "engine"),
    [
        (20_000, None, "python-louvain"),
        (20_001, None, "igraph"),
        (20_001, "python-louvain", "python-louvain"),
    ],
)
def test_igraph_finds_the_communities_of_large_graphs_where_nobody_chooses(
    nodes: int, given: str | None, engine: str
):
    raw = changed("datasets.tiny", {"synthetic": {"nodes": nodes}})
    config = validate({**raw, "partition": {"engine": given}})
    assert config["datasets"]["tiny"]["partition"]["engine"] == engine


def test_default_yaml_spells_out_the_defaults():
    """But what it defines and chooses, leaving its keys out says the same."""
    full = yaml.safe_load((ROOT / "config" / "default.yaml").read_text())
    assert set(full) == set(Configuration.model_fields) - {"plugins"}
    short = {
        key: full[key]
        for key in (
            "datasets",
            "clients",
            "seeds",
            "settings",
            "methods",
            "tables",
            "studies",
            "margin",
        )
    }
    assert validate(short) == validate(full)


def test_a_parameter_may_have_a_value_for_each_dataset():
    config = validate(
        changed(
            "methods.feddep",
            {"embedding": {"cora": 64, "tiny": 32}, "prototypes": {"tiny": 5, "default": 7}},
        )
    )

    def value(spelled: str, dataset: str, key: str) -> Any:
        return entries.one(config, "methods", spelled).of_dataset(dataset).options[key]

    assert value("feddep", "cora", "embedding") == 64
    assert value("feddep,embedding=9", "tiny", "embedding") == 9
    assert (value("feddep", "cora", "prototypes"), value("feddep", "tiny", "prototypes")) == (7, 5)
    with pytest.raises(ConfigError, match=re.escape("methods.feddep.embedding")):
        # No embedding, and no default.
        entries.one(config, "methods", "feddep").of_dataset("pubmed")
    shipped = load(ROOT / "config" / "default.yaml")
    for method in shipped["methods"]:
        entries.one(shipped, "methods", method).of_dataset("mine")


TREES = st.recursive(
    st.integers(0, 3) | st.none() | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(MAPPINGS, MAPPINGS)
@example({"a": None}, {"a": {}})
def test_files_are_merged_as_snakemake_merges_them(base: dict[str, Any], changes: dict[str, Any]):
    before = copy.deepcopy(base)
    found = merged(base, changes)
    assert base == before
    update_config(before, changes)
    assert found == before


def test_values_of_the_command_line_are_typed():
    given = {
        "seeds": ["0", "1"],
        "records": {"use": "false"},
        "settings": {"quick": {"learning_rate": "0.5", "rounds": 3}},
    }
    assert typed(given) == {
        "seeds": [0, 1],
        "records": {"use": False},
        "settings": {"quick": {"learning_rate": 0.5, "rounds": 3}},
    }
    text = {"title": "Accuracy: of 3", "output": "a/b", "labelled": "null", "embedding": "1e-3"}
    assert typed(text) == {**text, "labelled": None, "embedding": 0.001}


@pytest.mark.parametrize(
    "content",
    [
        b"a: [1,\nb: }",
        b"[]",
        b"",
        b"a: \xff",
        b"seeds: [!!int x]",
        b"a: 1\n---\nb: 2",
        b"a: 1\nb: 2\na: 1",
        b"a: [{b: 1, c: 2, 'b': 3}]",
        b'{"a": {"b": 1, "b": 1}}',
        None,
    ],
)
def test_a_file_that_is_no_configuration_is_named(content: bytes | None, tmp_path: Path):
    if content is not None:
        (tmp_path / "bad.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape("bad.yaml")):
        load(tmp_path / "bad.yaml")


def test_a_file_without_end_is_refused():
    with pytest.raises(ConfigError, match="/dev/zero"):
        load("/dev/zero")


def test_a_key_of_a_merged_mapping_may_be_there_again(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("a: &a {p: 1}\nb: &b {<<: *a, p: 2}\nc: {<<: *b, q: 3}\n")
    assert read(tmp_path / "a.yaml") == {"a": {"p": 1}, "b": {"p": 2}, "c": {"p": 2, "q": 3}}


MISTAKES: list[tuple[str, Any]] = [
    *(
        ("outputs", "x"),
        ("settings.quick.optimiser", "adam"),
        ("datasets.tiny.synthetic.node", 3),
        ("studies.0.kin", "x"),
    ),
    *(
        ("settings.quick.optimizer", "rmsprop"),
        ("device", "gpu"),
        ("datasets.tiny.features", "rows"),
    ),
    *(("settings.quick.rounds", value) for value in (0, 10**7, 2.0, True, "3", None)),
    *(
        ("settings.quick.learning_rate", value)
        for value in ("1e-3", False, float("nan"), float("inf"), 0, 10**30)
    ),
    *(
        ("settings.quick.dropout", 1.0),
        ("datasets.tiny.synthetic.signal", 1.5),
        ("datasets.tiny.labelled", 0),
        ("datasets.tiny.noise", "noise"),
        ("datasets.tiny.noise_level", 1.1),
        ("datasets.tiny.noisy_clients", 0),
    ),
    *(
        ("settings.quick", None),
        ("settings.Quick", {}),
        ("settings", {}),
        ("datasets", {3: {}}),
        ("datasets", None),
    ),
    *(
        ("seeds", []),
        ("seeds", [0, 0]),
        ("seeds.1", "1"),
        ("seeds.0", 2**63),
        ("clients", 5),
        ("clients", [0]),
    ),
    *(("output", ""), ("output", None), ("records.use", 1), ("data.mirror", 3), ("memory.data", 0)),
    *(
        ("split", {"train": 0.9}),
        ("tables", [*MINIMAL["tables"], {"setting": "quick", "methods": ["local"]}]),
        ("split.train", 1),
    ),
    *(("plugins", ["a.py", "a.py"]), ("plugins", "a.py"), ("plugins", ["missing.py"])),
    *(("datasets.corra", {}), ("datasets.cora", {"synthetic": {}})),
    ("datasets.tiny", {"synthetic": {}, "path": "a.npz"}),
    *(
        ("datasets.tiny", {"synthetic": {}, key: value})
        for key, value in (("split", {"method": "masks"}), ("partition", {"method": "given"}))
    ),
    *(
        ("methods.fedavgg", {}),
        ("methods.fedavg.mu", 0.1),
        ("methods.fedavg", []),
        ("methods.feddep.prototypes", 1.5),
    ),
    *(("methods.feddep.prototypes", value) for value in ({}, {"tiny": "3"}, {"corra": 3})),
    *(("methods.feddep_wo_dgen.depth", 2), ("methods.fedprox.mu", -1)),
    *(
        ("tables", []),
        ("tables", None),
        ("tables.0", {}),
        ("tables.0.setting", "fast"),
        ("tables.0.methods", []),
    ),
    *(
        ("tables.0.methods", ["fedavg", "fedavg"]),
        ("tables.0.methods", ["fedavgg"]),
        ("tables.0.datasets", ["pubmed"]),
    ),
    *(
        ("studies", {"many": STUDY}),
        ("studies", ["nowhere"]),
        ("studies.0.name", 3),
        ("studies.0.score", "test"),
    ),
    ("studies.0", {"name": "a b", "kind": "sweep"}),
    *(("studies", [STUDY, STUDY]), ("studies.0.name", "main"), ("studies.0.name", "runs")),
]


@pytest.mark.parametrize(("path", "value"), MISTAKES)
def test_a_mistake_is_an_error_that_names_its_key(path: str, value: Any):
    sentence = refusal(changed(path, value, {**MINIMAL, "seeds": [0, 1], "studies": [STUDY]}))
    last = path.rpartition(".")[2]
    assert path.partition(".")[0] in sentence
    assert last.isdigit() or last in sentence or str(value) in sentence
    assert len(sentence) < 1000


@pytest.mark.parametrize("key", MINIMAL)
def test_a_missing_key_is_named(key: str):
    assert refusal({name: value for name, value in MINIMAL.items() if name != key}).startswith(key)


def test_a_misspelt_key_is_named_before_the_key_that_it_leaves_missing():
    raw = {**MINIMAL, "seed": [0]}
    del raw["seeds"]
    assert refusal(raw).startswith("seed ")


TWO: dict[str, Any] = {
    **MINIMAL,
    "datasets": {"tiny": {"synthetic": {}}, "cora": {}},
    "settings": {"quick": {}, "slow": {}},
    "tables": [
        {"setting": "slow", "methods": ["feddep", "fedavg"], "datasets": ["cora"]},
        *MINIMAL["tables"],
    ],
}


def test_tables_may_differ_between_settings():
    config = validate(TWO)
    assert main_tables(config) == {"slow": ["feddep", "fedavg"], "quick": ["fedavg"]}
    assert [table_datasets(config, setting) for setting in ("slow", "quick")] == [
        ["cora"],
        ["cora", "tiny"],
    ]


def test_a_study_is_checked_where_it_stands():
    assert validate({**MINIMAL, "studies": [STUDY]})["studies"]["many"]["runs"] == STUDY["runs"]
    for block, key in [
        ({"methods": {"feddep": {"prototipes": [3]}}}, "methods.feddep.prototipes"),
        ({"methods": {"feddep": {"prototypes": []}}}, "methods.feddep.prototypes"),
        ({"methods": {"feddep": {"embedding": {"cora": 1}}}}, "methods.feddep.embedding"),
        ({"methods": {"feddep": {"scale": "a,b"}}}, "methods.feddep.scale"),
        ({"datasets": {"nowhere": {}}}, "datasets.nowhere"),
        ({"settings": {"quick": {"rounds": [1, 0]}}}, "settings.quick.rounds"),
        ({"settings": {"quick,rounds": {}}}, "quick,rounds"),
    ]:
        sentence = refusal({**MINIMAL, "studies": [{**STUDY, "runs": [block]}]})
        assert sentence.startswith("studies.many.runs.0")
        assert key in sentence
    # Which has no main table to take methods from.
    alone = {
        **STUDY,
        "runs": [{"settings": {"slow": {}}}],
    }
    assert refusal({**TWO, "tables": MINIMAL["tables"], "studies": [alone]}).startswith(
        "studies.many.runs.0"
    )


def test_a_study_is_a_file_that_is_named_or_whose_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for place in ("few.yaml", "paper/old.yaml", "mine/mine.yaml", "mine/other.yaml"):
        (STUDIES / place).parent.mkdir(parents=True, exist_ok=True)
        (STUDIES / place).write_text("kind: sweep\nruns: [{seeds: [8]}]\n")
    written = {**STUDY, "runs": [{"seeds": [9]}]}
    config = validate({**MINIMAL, "studies": ["old", written, "few", "mine"]})  # a folder
    assert {
        name: [run.seed for run in plan.study_runs(config, name)] for name in config["studies"]
    } == {
        "old": [8],
        "many": [9],
        "few": [8],
        "mine": [8],
        "other": [8],
    }
    (STUDIES / "few.yaml").write_text("kind: sweep\nrun: []\n")
    assert "studies.few.run" in refusal({**MINIMAL, "studies": ["few"]})


def test_every_study_that_is_shipped_can_be_planned(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    every = sorted(file.stem for file in STUDIES.rglob("*.yaml"))
    assert len(set(every)) == len(every) > 50
    config = validate(
        {**yaml.safe_load((ROOT / "config" / "default.yaml").read_text()), "studies": every}
    )
    for name in every:
        # Which code of its own makes.
        assert plan.study_runs(config, name) or not config["studies"][name]["runs"]


@pytest.mark.parametrize("name", [path.name for path in (ROOT / "config").glob("*.yaml")])
def test_shipped_configurations_are_valid(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    assert plan.all_runs(load("config/default.yaml", f"config/{name}"))


def test_a_variation_is_spelled_by_what_differs():
    config = validate({**MINIMAL, "methods": {"feddep": {"prototypes": 5}}})
    given = {"feddep": {"prototypes": [3, 5], "bernoulli_rate": 1}}
    found = entries.variations(config, "methods", given)
    assert [str(entry) for entry in found] == ["feddep,prototypes=3", "feddep"]
    (both,) = entries.variations(config, "methods", {"feddep,prototypes=3": {"depth": 1}})
    assert both.label == "feddep,prototypes=3,depth=1"
    assert both.changes == {"prototypes": 3, "depth": 1}
    assert entries.one(config, "methods", "feddep,prototypes=3").options == {
        **config["methods"]["feddep"],
        "prototypes": 3,
    }


@pytest.mark.parametrize(
    "methods",
    [
        {"fedprox": {}, "fedprox,mu=0.01": {}},
        {"feddep": {"prototypes": [3, 5]}, "feddep,prototypes=5,clustering=kmeans": {}},
    ],
)
def test_an_entry_that_is_named_twice_in_other_words_is_refused(methods: dict[str, Any]):
    found = refusal({**MINIMAL, "studies": [{**STUDY, "runs": [{"methods": methods}]}]})
    assert list(methods)[1] in found


@pytest.mark.parametrize("text", ["a\0b", "a\x1b[31mb", "a\u202eb", "a\nb", "\ud800"])
@pytest.mark.parametrize("key", ["device", "plugins", "studies", "settings.quick.encoder"])
def test_a_sentence_shows_what_cannot_be_seen(key: str, text: str):
    found = refusal(changed(key, [text] if key in ("plugins", "studies") else text))
    assert found.isprintable()
