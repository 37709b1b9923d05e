"""The configuration: read, checked against the schema, and completed with the defaults, so that a run hides no choice."""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from feddep import frameworks, variants
from feddep.errors import ConfigError

Config = Mapping[str, Any]
"""A resolved configuration: every key that the schema knows is there, numbers are floats where the schema says so."""

SCHEMA = Path(__file__).resolve().parent.parent / "workflow" / "schemas" / "config.schema.yaml"
"""The schema that ships with the project."""


MEASURED = ("quality", "neighbourhoods", "label_distributions")
"""Keys that name the runs on which more than accuracy is measured, on demand."""


def load(path: str | Path, schema: str | Path = SCHEMA) -> dict[str, Any]:
    """Read a configuration, YAML or JSON, and validate it.

    Raises:
        ConfigError: if the file is missing or not YAML, or for any reason of :func:`validate`.
    """
    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"the configuration {path} does not exist") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration {path} is not valid YAML: {' '.join(str(error).split())}") from None
    return validate(raw, schema)


def validate(raw: Any, schema: str | Path = SCHEMA) -> dict[str, Any]:
    """Check a configuration and return it with every default filled in; ``raw`` is left as it is.

    Raises:
        ConfigError: for a key that is unknown or missing, a value that is not allowed, or a dataset or framework that
            does not exist; the sentence names the key path, what was found and what is allowed.
    """
    rules = _read_schema(Path(schema))
    config = _complete(raw, rules)
    errors = sorted(_Validator(rules).iter_errors(config), key=lambda error: [str(part) for part in error.absolute_path])
    # A misspelt key may also leave another one missing: name the misspelt one.
    errors.sort(key=lambda error: error.validator != "additionalProperties")
    if errors:
        raise ConfigError(_sentence(errors[0]))
    _check_split(config["split"])
    _check_datasets(config["datasets"])
    config["frameworks"] = {name: _framework_parameters(name, given) for name, given in config["frameworks"].items()}
    _check_rows(config)
    for name, study in config["studies"].items():
        _check_blocks(config, f"studies.{name}.runs", study["runs"])
    for key in MEASURED:
        _check_blocks(config, key, config[key])
    return config


def entry(config: Config, section: str, spelled: str, dataset: str | None = None) -> dict[str, Any]:
    """The complete options of a dataset, setting or framework under a spelled name (:mod:`feddep.variants`).

    A framework needs no entry in the configuration: without one it has its defaults.

    Args:
        config: a validated configuration.
        section: ``datasets``, ``settings`` or ``frameworks``.
        spelled: the name, with what differs from the entry.
        dataset: whose value is meant where a framework's parameter has one for each dataset; without it they are all kept.

    Raises:
        ConfigError: if there is no such entry, option or value.
    """
    name, changes = variants.read(spelled)
    options = config[section].get(name)
    if section == "frameworks":
        parameters = _framework_parameters(name, {**(options or {}), **changes})
        return parameters if dataset is None else _for_dataset(f"frameworks.{name}", parameters, dataset)
    if options is None:
        raise ConfigError(f"{section}.{name} is not in the configuration; there are {', '.join(config[section])}")
    rule = _read_schema(SCHEMA)["properties"][section]["additionalProperties"]
    changed = _complete({**options, **changes}, rule)
    error = next(_Validator(rule).iter_errors(changed), None)
    if error is not None:
        error.path.extendleft([name, section])
        raise ConfigError(_sentence(error))
    return changed


def main_tables(config: Config) -> dict[str, list[str]]:
    """The settings that have a main table, each with the frameworks that are its rows, in the order of the configuration."""
    rows = config["rows"]
    if isinstance(rows, Mapping):
        return {setting: list(names) for setting, names in rows.items()}
    return {setting: list(rows or config["frameworks"]) for setting in config["settings"]}


def variations(config: Config, section: str, given: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The spelled names of every variation that a study asks for, without what does not differ from the entry.

    Args:
        config: a validated configuration.
        section: ``datasets``, ``settings`` or ``frameworks``.
        given: for each name the options to change; an option that is a list of values takes each of them.
    """
    names = []
    for name, options in given.items():
        before = entry(config, section, name)
        for changes in variants.combinations(options):
            after = entry(config, section, variants.spell(name, changes))
            names.append(variants.spell(name, {key: after[key] for key in after if after[key] != before.get(key)}))
    return list(dict.fromkeys(names))


def _check_rows(config: Config) -> None:
    known = ", ".join(config["frameworks"])
    for setting, names in main_tables(config).items():
        path = f"rows.{setting}" if isinstance(config["rows"], Mapping) else "rows"
        if setting not in config["settings"]:
            raise ConfigError(f"{path} is of no setting; there are {', '.join(config['settings'])}")
        for name in names:
            if name not in config["frameworks"]:
                raise ConfigError(f"{path} names {name}, which has no entry in frameworks; there are {known}")


def _check_blocks(config: Config, path: str, blocks: Iterable[Mapping[str, Any]]) -> None:
    for number, block in enumerate(blocks):
        for setting in () if "frameworks" in block else block.get("settings", {}):
            if setting not in main_tables(config):
                raise ConfigError(f"{path}.{number} names no frameworks, and its setting {setting} has no main table with any")
        for section in ("datasets", "settings", "frameworks"):
            try:
                variations(config, section, block.get(section, {}))
            except ConfigError as error:
                raise ConfigError(f"{path}.{number}.{section}: {error}") from None


@cache
def _read_schema(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _is_integer(_checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_checker: Any, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    # Stricter than JSON schema: 3.0 is no integer, and what is not finite is no number.
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number}),
)


def _complete(value: Any, schema: Mapping[str, Any], path: str = "") -> Any:
    """A copy of ``value`` with the schema's defaults, and whole numbers as floats where a number is asked for."""
    if isinstance(value, Mapping):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties") or {}
        for key in value:
            if not isinstance(key, str):
                raise ConfigError(f"{_join(path, key)} is not a key that is text; put quotes around it")
        defaults = {key: rule["default"] for key, rule in known.items() if "default" in rule and key not in value}
        return {key: _complete(item, known.get(key, others), _join(path, key)) for key, item in {**value, **defaults}.items()}
    if isinstance(value, list):
        return [_complete(item, schema.get("items", {}), path) for item in value]
    if schema.get("type") == "number" and _is_integer(None, value):
        return float(value)
    return value


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_NOUNS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "null": "null",
}


def _sentence(error: jsonschema.ValidationError) -> str:
    """One sentence for a schema error: the key path, what was found, what is allowed."""
    where = ".".join(str(part) for part in error.absolute_path)
    here = where or "the configuration"
    found, limit = _show(error.instance), error.validator_value
    match error.validator:
        case "additionalProperties":
            known = error.schema["properties"]
            unknown = next(key for key in error.instance if key not in known)
            return f"{_join(where, unknown)} is not a known key; allowed: {', '.join(known)}"
        case "required":
            missing = next(key for key in limit if key not in error.instance)
            return f"{_join(where, missing)} is missing; required: {', '.join(limit)}"
        case "type":
            allowed = " or ".join(_NOUNS[name] for name in ([limit] if isinstance(limit, str) else limit))
            return f"{here} is {found}; it must be {allowed}{_hint(error.instance, limit)}"
        case "enum":
            return f"{here} is {found}; allowed: {', '.join(map(str, limit))}"
        case "pattern" if "propertyNames" not in error.absolute_schema_path:
            return f"{here} is {found}; a path without blanks and quotes is allowed"
        case "pattern":
            return (
                f"{_join(where, error.instance)} is not a name that fits in a path: lower-case letters, digits and _ are allowed"
            )
        case "minimum":
            return f"{here} is {found}; it must be at least {limit}"
        case "maximum":
            return f"{here} is {found}; it must be at most {limit}"
        case "exclusiveMinimum":
            return f"{here} is {found}; it must be above {limit}"
        case "exclusiveMaximum":
            return f"{here} is {found}; it must be below {limit}"
        case "uniqueItems":
            return f"{here} is {found}; no entry may occur twice"
        case "minItems" | "minProperties" | "minLength":
            return f"{here} is {found}; it must not be empty"
    return f"{here} is {found}; {error.message}"  # a rule that the schema does not use today


def _hint(value: Any, allowed: Any) -> str:
    if allowed == "object" and value is None:
        return " (write {} for the defaults)"
    if allowed in ("number", "integer") and isinstance(value, str):
        try:
            return f" (write {float(value)!r} without quotes; YAML reads an exponent without a point, such as 1e-3, as text)"
        except ValueError:
            return ""
    return ""


def _check_split(split: Mapping[str, float]) -> None:
    total = math.fsum(split.values())
    if not math.isclose(total, 1.0, abs_tol=1e-9):
        raise ConfigError(f"split is {_show(split)}, which sums to {total:g}; train, val and test must sum to 1")


def _check_datasets(datasets: Mapping[str, Mapping[str, Any]]) -> None:
    from feddep.datasets.registry import REGISTRY

    for name, options in datasets.items():
        known = name in REGISTRY
        if "synthetic" in options and known:
            raise ConfigError(f"datasets.{name}.synthetic is given, but {name} is a real dataset; choose another name")
        if "synthetic" not in options and not known:
            raise ConfigError(f"datasets.{name} is not a known dataset and has no key synthetic; known: {', '.join(REGISTRY)}")


def _for_dataset(path: str, parameters: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    name = variants.base(dataset)
    chosen = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            if name not in value:
                raise ConfigError(f"{path}.{key} has a value for {', '.join(value)}, but none for {name}")
            value = value[name]
        chosen[key] = value
    return chosen


def _framework_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a framework, complete: ``given`` over the defaults of its module's dataclass ``Parameters``.

    A parameter may have a value for each dataset: ``{cora: 128, citeseer: 64}``.
    """
    path, parameters = f"frameworks.{name}", frameworks.load(name).Parameters
    by_dataset = {key: value for key, value in given.items() if isinstance(value, Mapping)}
    complete = _complete_parameters(path, {key: value for key, value in given.items() if key not in by_dataset}, parameters)
    for key, values in by_dataset.items():
        each = {name: _complete_parameters(path, {key: value}, parameters) for name, value in values.items()}
        complete[key] = {name: options[key] for name, options in each.items()}
    return complete


def _complete_parameters(path: str, given: Mapping[str, Any], parameters: type) -> dict[str, Any]:
    hints = typing.get_type_hints(parameters)
    for key, value in given.items():
        if key not in hints:
            raise ConfigError(f"{path}.{key} is not a known key; allowed: {', '.join(hints) or 'none, write {}'}")
        if not _fits(value, hints[key]):
            raise ConfigError(f"{path}.{key} is {_show(value)}; it must be {_describe(hints[key])}{_hint(value, 'number')}")
    try:
        return dataclasses.asdict(parameters(**{key: _convert(value, hints[key]) for key, value in given.items()}))
    except ValueError as error:  # what the dataclass checks itself, such as a range
        raise ConfigError(f"{path} is {_show(given)}: {error}") from None


def _alternatives(hint: Any) -> Iterable[Any]:
    """The types, or for ``Literal`` the values, that a type hint allows."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (typing.Union, typing.Literal):
        return typing.get_args(hint)
    return (hint,)


def _fits(value: Any, hint: Any) -> bool:
    for allowed in _alternatives(hint):
        if allowed is float:
            fits = _is_number(None, value)
        elif allowed is int:
            fits = _is_integer(None, value)
        elif isinstance(allowed, type):
            fits = isinstance(value, allowed)
        else:
            fits = value == allowed
        if fits:
            return True
    return False


def _convert(value: Any, hint: Any) -> Any:
    return float(value) if float in _alternatives(hint) and _is_integer(None, value) else value


def _describe(hint: Any) -> str:
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false", type(None): "null"}
    return " or ".join(names[each] if isinstance(each, type) else str(each) for each in _alternatives(hint))
