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
from feddep.utils.parameters import InKey

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
_HELD = ("configuration", "dataset", "synthetic", "split", "partition", "setting")
"""Those of which the content key of a run holds something."""
_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SOURCE = re.compile(r" \(([^()]*(?:\([^()]*\)[^()]*)*)\)$")
"""The last brackets of a description: who has the default, or what they have instead."""
_TYPES = {"integer": "int", "number": "float", "boolean": "bool", "string": "text", "array": "list"}
_HEAD = ("type", "default", "meaning", "in key", "source")


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
    """Markdown by name: a table for each model, and those of all methods' parameters."""
    options = {
        name: _options("key", _rows(model, name in _HELD)) for name, model in _MODELS.items()
    }
    return {**options, "parameters": _parameters()}


def _parameters() -> str:
    """A section for each module of methods, with a table for those that share parameters, and a
    line of the methods that have none.
    """
    modules: dict[str, dict[tuple[type[BaseModel], str], list[Method]]] = {}
    for method in registry.built_in().values():
        fields = modules.setdefault(method.parameters.__module__.split(".")[2], {})
        for name in method.parameters.model_fields:
            fields.setdefault((_declaring(method.parameters, name), name), []).append(method)
    sections = []
    for module, fields in sorted(modules.items()):
        shared: dict[str, list[tuple[str, ...]]] = {}
        for (model, name), methods in fields.items():
            row = next(row for row in _rows(model) if row[0] == f"`{name}`")
            shared.setdefault(_names(methods), []).append(_with_defaults(row, name, methods))
        lists = (f"{names}\n\n{_options('parameter', rows)}" for names, rows in shared.items())
        sections += [f"### {module}\n", *lists] if shared else []
    free = [each for each in registry.built_in().values() if not each.parameters.model_fields]
    return "\n".join([*sections, f"No parameters: {_names(free)}.\n"])


def _declaring(model: type[BaseModel], name: str) -> type[BaseModel]:
    """The first class that has a field, of those that a class inherits from."""
    has = (each for each in model.__mro__ if name in getattr(each, "model_fields", {}))
    return list(has)[-1]


def _names(methods: Iterable[Method]) -> str:
    return ", ".join(f"`{method.name}`" for method in methods)


def _with_defaults(row: tuple[str, ...], name: str, methods: list[Method]) -> tuple[str, ...]:
    """A row whose default also has those of the methods that have another."""
    found = {each.name: _default(each.parameters.model_fields[name]) for each in methods}
    others = [f"`{each}`: {value}" for each, value in found.items() if value != row[2]]
    return (*row[:2], "; ".join([row[2], *others]), *row[3:])


def _rows(model: type[BaseModel], held: bool = True) -> list[tuple[str, ...]]:
    """For each field its name, type, default, meaning, whether it is in the key, and source."""
    schema = model.model_json_schema()
    rows = []
    for name, field in model.model_fields.items():
        description = " ".join((field.description or "").split())
        source = _SOURCE.search(description)
        rows.append(
            (
                f"`{name}`",
                _type(schema["properties"][name]),
                _default(field),
                _SOURCE.sub("", description),
                _in_key(field) if held else "no",
                source[1] if source else "",
            )
        )
    return rows


def _type(rule: dict[str, Any]) -> str:
    """A type of a JSON schema, such as ``int[1, 16]``; with ``?`` where null is allowed."""
    if "anyOf" in rule:
        kinds = [_type(each) for each in rule["anyOf"] if each.get("type") != "null"]
        return "/".join(kinds) + "?" * (len(kinds) < len(rule["anyOf"]))
    if "const" in rule or "enum" in rule:
        return "/".join(f"`{value}`" for value in rule.get("enum", [rule.get("const")]))
    kind = _TYPES.get(rule.get("type", ""), "mapping")
    if kind not in ("int", "float"):
        return kind
    low = "(" if "exclusiveMinimum" in rule else "["
    high = ")" if "exclusiveMaximum" in rule else "]"
    least = rule.get("minimum", rule.get("exclusiveMinimum"))
    most = rule.get("maximum", rule.get("exclusiveMaximum"))
    return f"{kind}{low}{least:g},{most:g}{high}".replace("e+0", "e").replace("e+", "e")


def _in_key(field: FieldInfo) -> str:
    mark = next((each for each in field.metadata if isinstance(each, InKey)), InKey())
    if mark.methods:
        return f"with {', '.join(f'`{method}`' for method in mark.methods)}"
    return "yes" if mark.ever else "no"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "below"
    return f"`{value if isinstance(value, str) and value else json.dumps(value)}`"


def _options(first: str, rows: list[tuple[str, ...]]) -> str:
    """A table of options; without a source where none has one, and of methods, all of whose
    parameters are in the key, without that.
    """
    kept = [0, 1, 2, 3]
    kept += [4] * (first == "key") + [5] * any(row[5] for row in rows)
    head = (first, *_HEAD)
    return table(*(tuple(line[column] for column in kept) for line in (head, *rows)))


def table(head: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    escaped = ("|".join(cell.replace("|", r"\|") for cell in line) for line in lines)
    return "\n".join(f"|{line}|" for line in escaped) + "\n"


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
