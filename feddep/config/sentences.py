"""One sentence for a mistake in the configuration: the key path, what was found, what is
allowed.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from feddep.utils.errors import ConfigError, nearest

_Model = TypeVar("_Model", bound=BaseModel)


def checked(
    model: type[_Model], raw: Any, path: tuple[str, ...] = (), below: tuple[str, ...] = ()
) -> _Model:
    """An instance of a model.

    Args:
        model: the model.
        raw: its fields.
        path: where they stand in the configuration.
        below: what follows the name of a field there.

    Raises:
        ConfigError: for the first mistake, a misspelt key before all others, as it may also leave
            another one missing.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        where = ".".join(map(str, (*path, *first["loc"], *below)))
        if first["type"] == "extra_forbidden":
            known = _at(model, first["loc"][:-1]).model_fields
            near = nearest(str(first["loc"][-1]), known)
            raise ConfigError(f"{where} is not a known key; {near}") from None
        found = "missing" if first["type"] == "missing" else show(first["input"])
        raise ConfigError(
            f"{where} is {found}: {first['msg'][0].lower()}{first['msg'][1:]}"
        ) from None


def _at(model: Any, path: tuple[Any, ...]) -> Any:
    """The model of the mapping at a path below a model."""
    found = model
    for part in path:
        if isinstance(found, type) and issubclass(found, BaseModel) and part in found.model_fields:
            found = found.model_fields[part].annotation
        models = [
            each
            for each in _arguments(found)
            if isinstance(each, type) and issubclass(each, BaseModel)
        ]
        found = models[-1] if models else found
    return found


def _arguments(annotation: Any) -> list[Any]:
    """The types that an annotation is made of, at any depth."""
    return [
        annotation,
        *(inner for each in getattr(annotation, "__args__", ()) for inner in _arguments(each)),
    ]


def join(path: str, key: object) -> str:
    """A key path with one more key, which is quoted unless it is a plain name, a variant or a
    number.
    """
    text = key if isinstance(key, str) and re.fullmatch(r"[\w,=.-]+", key) else show(key)
    return f"{path}.{text}" if path else text


def show(value: Any) -> str:
    """A value as JSON writes it, shortened where it is long."""
    text = json.dumps(
        dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, default=str
    )
    return text if len(text) <= 80 else f"{text[:80]}…"
