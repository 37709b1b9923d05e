"""The models of the configuration, for readers and editors: the tables of keys in
``config/README.md``, and a JSON schema.

``python docs/configuration.py`` writes the tables anew; with ``--schema`` it prints the schema
instead.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from feddep.config import models
from feddep.methods import registry
from feddep.methods.method import Method
from feddep.training.config import TrainingConfig

_PAGE = Path("config/README.md")
_MODELS: dict[str, type[BaseModel]] = {
    "configuration": models.Configuration,
    "records": models.Records,
    "data": models.Data,
    "memory": models.Memory,
    "margin": models.Margin,
    "dataset": models.Dataset,
    "synthetic": models.Synthetic,
    "split": models.SplitOptions,
    "partition": models.PartitionOptions,
    "setting": TrainingConfig,
    "table": models.Table,
    "study": models.Study,
    "block": models.Block,
    "search": models.Search,
}
_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Write ``config/README.md`` of the working folder, or print the schema."""
    if sys.argv[1:] == ["--schema"]:
        print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    else:
        _PAGE.write_text(filled(_PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def filled(text: str) -> str:
    """Markdown with its generated parts made anew: what stands between ``<!-- generated: NAME -->``
    and ``<!-- end -->``.
    """
    made = tables()
    return _MARKED.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", text)


def tables() -> dict[str, str]:
    """Markdown by name: a table for each model, one of all methods, and one of the parameters of
    each module of methods.
    """
    by_module: dict[str, list[Method]] = {}
    for method in registry.built_in().values():
        by_module.setdefault(_module(method), []).append(method)
    methods = [method for _, found in sorted(by_module.items()) for method in found]
    parameters = {name: _parameters(name, found) for name, found in sorted(by_module.items())}
    return {
        **{
            name: table(("key", "default", "meaning"), _rows(model))
            for name, model in _MODELS.items()
        },
        "methods": table(
            ("name", "row", "parameters", "needs or gives away, beyond FedAvg"),
            map(_method, methods),
        ),
        "parameters": "\n".join(
            f"### {name}\n\n{table}" for name, table in parameters.items() if table
        ),
    }


def _module(method: Method) -> str:
    """The file or folder of ``feddep/methods`` that a method is in."""
    return method.function.partition(":")[0].split(".")[2]


def _method(method: Method) -> tuple[str, ...]:
    declared = method.parameters.__module__.split(".")[2]
    parameters = f"of [{declared}](#{declared})" if method.parameters.model_fields else "none"
    return f"`{method.name}`", method.title, parameters, ", ".join(method.assumes)


def _parameters(module: str, methods: list[Method]) -> str:
    """The table of the parameters that a module declares; empty where it has none."""
    own = [each for each in methods if each.parameters.__module__.split(".")[2] == module]
    having: dict[tuple[str, str, str], list[str]] = {}
    for method in own:
        for row in _rows(method.parameters):
            having.setdefault(row, []).append(f"`{method.name}`")
    rows = [
        (key, "" if len(names) == len(own) else ", ".join(names), *rest)
        for (key, *rest), names in having.items()
    ]
    return table(("parameter", "of", "default", "meaning"), rows) if rows else ""


def _rows(model: type[BaseModel]) -> list[tuple[str, str, str]]:
    return [
        (f"`{name}`", _default(field), _line(field.description or ""))
        for name, field in model.model_fields.items()
    ]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    return f"`{value if isinstance(value, str) and value else json.dumps(value)}`"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    escaped = [
        [cell.replace("|", r"\|") for cell in row] for row in (head, ("---",) * len(head), *rows)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def json_schema() -> dict[str, Any]:
    """A JSON schema (draft 2020-12) of a configuration file.

    No key is required, as a file may change ``config/default.yaml`` in part.  A method's parameter
    may have a value for each dataset.
    """
    schema = models.Configuration.model_json_schema()
    del schema["required"]
    methods = registry.built_in().values()
    refs = {method.name: {"$ref": f"#/$defs/{method.parameters.__name__}"} for method in methods}
    schema["properties"]["methods"] |= {"properties": refs}
    schema["$defs"] |= {
        method.parameters.__name__: _parameters_schema(method.parameters) for method in methods
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _parameters_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Parameters of which each may have a value for each dataset."""
    schema = model.model_json_schema()
    for name, rule in schema.get("properties", {}).items():
        about = {key: rule.pop(key) for key in ("default", "description", "title") if key in rule}
        by_dataset = {"type": "object", "minProperties": 1, "additionalProperties": rule}
        schema["properties"][name] = {**about, "anyOf": [rule, by_dataset]}
    return schema


if __name__ == "__main__":
    main()
