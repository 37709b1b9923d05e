"""The reference of configuration keys: made from the models, complete, and up to date."""

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from feddep.cli import main
from feddep.config import reference
from feddep.config.loading import load, merged, validate
from feddep.config.models import Configuration
from feddep.experiment import plan
from feddep.methods import registry
from feddep.utils.errors import ConfigError

FOLDER = Path(__file__).parents[2] / "config"
FILES = ["config.yaml", "demo.yaml", "smoke.yaml"]


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / name).read_text())


def test_what_is_generated_is_up_to_date(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "--check", "--folder", str(FOLDER)]) == 0, capsys.readouterr().err


def test_writing_makes_it_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "config"
    shutil.copytree(FOLDER, folder)
    flags = ["--folder", str(folder)]
    text = (folder / "README.md").read_text()
    (folder / "README.md").write_text(text.replace("communication rounds", "rounds"))
    assert main(["config", "--check", *flags]) == 1
    assert capsys.readouterr().err.endswith("README.md is not up to date; run `feddep config --write`\n")
    (folder / "schema.json").unlink()
    assert main(["config", "--write", *flags]) == 0
    assert (folder / "README.md").read_text() == text
    assert (folder / "schema.json").read_text() == (FOLDER / "schema.json").read_text()
    (folder / "schema.json").write_text("{}")
    assert main(["config", "--check", *flags]) == 1


def test_a_table_without_a_place_is_an_error():
    text = (FOLDER / "README.md").read_text()
    with pytest.raises(ConfigError, match="the table 'audit' has 0 places marked"):
        reference.filled(text.replace("generated: audit", "audit"))
    with pytest.raises(ConfigError, match="there is no table 'audits' to generate; there are configuration"):
        reference.filled(text.replace("generated: audit", "generated: audits"))


def test_every_key_has_a_meaning():
    for name, table in reference.tables().items():
        rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
        assert len(rows) > 2, name
        assert all(row[-1] for row in rows) or name == "methods"


def test_every_parameter_is_in_a_table():
    text = "".join(reference.tables().values())
    for name, method in registry.methods().items():
        assert f"| `{name}` |" in text
        assert all(f"| `{field}` |" in text for field in method.parameters.model_fields)


def test_a_parameter_that_not_all_methods_have_says_so():
    table = reference.tables()["parameters of feddep"]
    assert "| `sigma` | `feddep_wo_nfdp` | `2.0` |" in table
    assert "| `generator_epochs` | `feddep_joint` | `1` |" in table
    assert "| `prototypes` |  | `null` |" in table


@pytest.mark.parametrize("name", FILES)
def test_the_schema_accepts_what_is_shipped(name: str):
    schema = json.loads((FOLDER / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(read(name), schema)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("optput", "results"),
        ("settings.feddep.round", 3),
        ("settings.feddep.rounds", 0),
        ("settings.Feddep", {}),
        ("methods.fedavgg", {}),
        ("methods.feddep.prototypes", "3"),
        ("methods.feddep.embedding", {"cora": 0}),
        ("methods.feddep.embedding", {}),
        ("methods.fedavg.mu", 1),
        ("studies.0.kind", "sweeep"),
        ("tables.0.setting", 3),
        ("clients", []),
    ],
)
def test_the_schema_and_the_models_refuse_the_same(path: str, value: Any):
    raw: Any = read("config.yaml")
    place = raw = copy.deepcopy(raw)
    *parents, last = path.split(".")
    for parent in parents:
        place = place[int(parent) if isinstance(place, list) else parent]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, reference.json_schema())
    with pytest.raises(ConfigError):
        validate(raw)


def test_editors_find_the_schema():
    for name in FILES:
        assert (FOLDER / name).read_text().startswith("# yaml-language-server: $schema=schema.json\n")


def test_the_examples_of_the_page_are_valid():
    examples = re.findall("```yaml\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    configs = [validate(merged(read("config.yaml"), yaml.safe_load(example))) for example in examples]
    assert len(plan.all_runs(configs[0])) == 2 * 2 * 3  # as the page says
    assert [len(plan.study_runs(configs[1], "depth"))] == [(1 + 5) * 3 * 3]


def test_config_yaml_spells_out_every_key():
    config, raw = load(FOLDER / "config.yaml"), read("config.yaml")
    assert set(config) == set(raw)
    for section in ("records", "data", "split", "partition", "audit"):
        assert config[section] == raw[section]
    assert config["settings"] == raw["settings"]


def test_each_model_has_a_name_of_its_own_in_the_schema():
    models = {method.parameters for method in registry.methods().values()}
    names = {model.__name__ for model in models}
    assert len(names) == len(models)
    assert not names & set(Configuration.model_json_schema()["$defs"])
