"""Another value of an option than its default."""

from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

NUMBERS = [1, 2, 3, 5, 10, 100, 0.25, 0.5, 0.75, 1.5, 0]


def others(model: type[BaseModel]) -> dict[str, Any]:
    """For each field of a model that allows one, a valid value that is not its default; what is
    nested is left out.
    """
    return {
        name: value for name in model.model_fields if (value := another(model, name)) is not None
    }


@cache
def another(model: type[BaseModel], name: str) -> Any:
    """A valid value of a field that is not its default; None if the model allows no other."""
    schema = _schema(model)["properties"][name]
    default = model.model_fields[name].get_default(call_default_factory=True)
    for rule in schema.get("anyOf", [schema]):
        tried = {
            "boolean": [True, False],
            "integer": NUMBERS,
            "number": NUMBERS,
            "string": ["gcn"],
        }.get(rule.get("type"), [])
        for value in [*rule.get("enum", []), *tried]:
            try:
                if value != default and getattr(model(**{name: value}), name) == value:
                    return value
            except ValidationError:
                continue
    return None


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()
