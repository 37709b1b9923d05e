"""What the models say, for editors and readers: a JSON schema, and tables of keys for ``config/README.md``."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from feddep.config import models
from feddep.methods import registry
from feddep.methods.method import Method
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError

_MODELS: dict[str, type[BaseModel]] = {
    "configuration": models.Configuration,
    "records": models.Records,
    "data": models.Data,
    "dataset": models.Dataset,
    "synthetic": models.Synthetic,
    "split": models.SplitShares,
    "partition": models.PartitionOptions,
    "setting": TrainingConfig,
    "table": models.Table,
    "study": models.Study,
    "block": models.Block,
    "audit": models.Audit,
}
_MARKED = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def json_schema() -> dict[str, Any]:
    """A JSON schema (draft 2020-12) of a configuration file.

    No key is required: a file may change ``config.yaml`` in part.  A method's parameter may have a value for each dataset.
    """
    schema = models.Configuration.model_json_schema()
    del schema["required"]
    methods = registry.built_in()
    before = schema["properties"]["methods"]
    schema["properties"]["methods"] = {
        **{key: before[key] for key in ("description", "type", "minProperties")},
        "additionalProperties": False,
        "properties": {name: {"$ref": f"#/$defs/{each.parameters.__name__}"} for name, each in methods.items()},
    }
    for method in methods.values():
        schema["$defs"].setdefault(method.parameters.__name__, _parameters_schema(method.parameters))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_tidied(schema)}


def _parameters_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Parameters of which each may have a value for each dataset."""
    schema = model.model_json_schema()
    for name, rule in schema.get("properties", {}).items():
        about = {key: rule.pop(key) for key in ("default", "description") if key in rule}
        by_dataset = {"type": "object", "minProperties": 1, "additionalProperties": rule}
        schema["properties"][name] = {**about, "anyOf": [rule, by_dataset]}
    return schema


def _tidied(schema: Any) -> Any:
    """Without the titles that pydantic makes of names, descriptions on one line, and no names but those of a pattern."""
    if isinstance(schema, list):
        return [_tidied(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _tidied(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    if isinstance(kept.get("description"), str):
        kept["description"] = _line(kept["description"])
    return {**kept, "additionalProperties": False} if "patternProperties" in kept else kept


def tables() -> dict[str, str]:
    """Markdown tables by name: one for each model, one of all methods, and one of the parameters of each method."""
    by_package: dict[str, list[Method]] = {}
    for method in registry.built_in().values():
        by_package.setdefault(_package(method), []).append(method)
    parameters = {f"parameters of {name}": _parameters(found) for name, found in sorted(by_package.items())}
    return {
        **{name: _table(("key", "default", "meaning"), _rows(model)) for name, model in _MODELS.items()},
        "methods": _table(("name", "row", "parameters", "needs or gives away, beyond FedAvg"), map(_method, _all(by_package))),
        **{name: text for name, text in parameters.items() if text},
    }


def filled(text: str) -> str:
    """Markdown with its generated parts made anew: what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``.

    Raises:
        ConfigError: if there is no such table, or a table has no place in the text.
    """
    made = tables()
    named = [name for _, name, _ in _MARKED.findall(text)]
    for name in named:
        if name not in made:
            raise ConfigError(f"there is no table {name!r} to generate; there are {', '.join(made)}")
    for name in made:
        if named.count(name) != 1:
            raise ConfigError(
                f"the table {name!r} has {named.count(name)} places marked `<!-- generated: {name} -->`; it must be 1"
            )
    return _MARKED.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", text)


def _all(by_package: Mapping[str, list[Method]]) -> list[Method]:
    return [method for _, methods in sorted(by_package.items()) for method in methods]


def _package(method: Method) -> str:
    """The folder of its paper."""
    return method.function.split(".")[2]


def _method(method: Method) -> tuple[str, ...]:
    declared = method.parameters.__module__.rpartition(".")[2]
    parameters = f"of [{declared}](#{declared})" if method.parameters.model_fields else "none"
    return f"`{method.name}`", method.title, parameters, ", ".join(method.assumes)


def _parameters(methods: list[Method]) -> str:
    """The table of the parameters that a method declares; empty where it has none."""
    own = [each for each in methods if each.parameters.__module__.endswith(f".{_package(each)}")]
    having: dict[tuple[str, str, str], list[str]] = {}
    for method in own:
        for row in _rows(method.parameters):
            having.setdefault(row, []).append(f"`{method.name}`")
    rows = [(key, "" if len(names) == len(own) else ", ".join(names), *rest) for (key, *rest), names in having.items()]
    return _table(("parameter", "of", "default", "meaning"), rows) if rows else ""


def _rows(model: type[BaseModel]) -> list[tuple[str, str, str]]:
    return [(f"`{name}`", _default(field), _line(field.description or "")) for name, field in model.model_fields.items()]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    text = value if isinstance(value, str) and value else json.dumps(value)
    return f"`{text}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    escaped = [[cell.replace("|", r"\|") for cell in row] for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())
