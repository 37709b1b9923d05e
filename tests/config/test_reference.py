"""The reference of configuration keys: made from the models, complete, and up to date."""

import re
from pathlib import Path
from typing import Any

import configuration
import jsonschema
import pytest
import yaml

from feddep.config import loading
from feddep.config.loading import merged, validate
from feddep.config.models import Configuration
from feddep.experiment import plan
from feddep.methods import registry
from feddep.utils.errors import ConfigError
from graphs import changed

CONFIG = Path(__file__).parents[2] / "config"
PAGE = (CONFIG / "README.md").read_text(encoding="utf-8")
SCHEMA = configuration.json_schema()


def read(name: str) -> Any:
    return loading.read(CONFIG / name)


def test_the_page_is_up_to_date():
    assert configuration.filled(PAGE) == PAGE, "run `python docs/configuration.py`"
    assert sorted(re.findall("<!-- generated: (.*) -->", PAGE)) == sorted(configuration.tables())


def test_every_key_and_every_parameter_has_a_meaning():
    parts = re.split("(?m)^(?=`|No parameters)", configuration.tables()["parameters"])
    assert all(field.description for field in Configuration.model_fields.values())
    for name, method in registry.built_in().items():
        shown = "".join(part for part in parts if f"`{name}`" in part.partition("\n")[0])
        assert shown
        assert all(f"|`{field}`|" in shown for field in method.parameters.model_fields)
        assert all(field.description for field in method.parameters.model_fields.values())


def test_the_examples_of_the_page_are_valid(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(CONFIG.parent)
    experiment, study = map(yaml.safe_load, re.findall("```yaml\n(.*?)```", PAGE, re.DOTALL))
    # As the page says.
    assert len(plan.all_runs(validate(merged(read("default.yaml"), experiment)))) == 2 * 2 * 3
    config = validate({**read("default.yaml"), "studies": [{"name": "depth", **study}]})
    assert len(plan.study_runs(config, "depth")) == (1 + 5) * 3 * 3


def test_the_schema_accepts_what_is_shipped():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for file in CONFIG.glob("*.yaml"):
        jsonschema.validate(read(file.name), SCHEMA)
    defined = {
        method.parameters.__name__: method.parameters for method in registry.built_in().values()
    }
    for name, model in defined.items():
        assert set(SCHEMA["$defs"][name]["properties"]) == set(model.model_fields)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("optput", "results"),
        ("settings.feddep.round", 3),
        ("settings.feddep.rounds", 0),
        ("methods.feddep.prototypes", "3"),
        ("methods.feddep.embedding", {"cora": 0}),
        ("methods.feddep.embedding", {}),
        ("tables.0.setting", 3),
        ("clients", []),
    ],
)
def test_the_schema_and_the_models_refuse_the_same(path: str, value: Any):
    raw = changed(path, value, {**read("default.yaml"), "studies": []})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, SCHEMA)
    with pytest.raises(ConfigError):
        validate(raw)
