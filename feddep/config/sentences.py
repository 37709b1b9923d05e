"""One sentence for a mistake in the configuration: the key path, what was found, what is allowed."""

import contextlib
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from feddep.utils.errors import ConfigError, printable

_SHOWN = 80
"""Most characters of a value in an error message."""
_Model = TypeVar("_Model", bound=BaseModel)


def checked(
    model: type[_Model],
    raw: Any,
    path: tuple[str, ...] = (),
    below: tuple[str, ...] = (),
    confirm: Callable[[Any], object] | None = None,
) -> _Model:
    """An instance of a model.

    Args:
        model: the model.
        raw: its fields.
        path: where they stand in the configuration.
        below: what follows the name of a field there.
        confirm: checks what the model does not; a hint that it would refuse is not given.

    Raises:
        ConfigError: for the first mistake.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        # A misspelt key may also leave another one missing: name the misspelt one.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        raise ConfigError(_sentence(model, raw, dict(first), path, below, confirm)) from None


def _sentence(
    model: type[BaseModel],
    raw: Any,
    error: dict[str, Any],
    path: tuple[str, ...],
    below: tuple[str, ...],
    confirm: Callable[[Any], object] | None,
) -> str:
    """One sentence for a validation error: the key path, what was found, what is allowed."""
    parts = [part for part in error["loc"] if part != "[key]"]
    where = functools.reduce(join, (*path, *parts, *(below if parts else ())), "")
    found, limits = show(error["input"]), error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            known = ", ".join(_bare(_at(model, parts[:-1])).model_fields) or "none, write {}"
            return f"{where} is not a known key; allowed: {known}"
        case "missing":
            fields = _bare(_at(model, parts[:-1])).model_fields
            return f"{where} is missing; required: {', '.join(name for name in fields if fields[name].is_required())}"
        case "literal_error":
            return f"{where} is {found}; allowed: {', '.join(_choices(_at(model, parts)))}"
        case "greater_than_equal":
            return f"{where} is {found}; it must be at least {_number(limits['ge'])}"
        case "less_than_equal":
            return f"{where} is {found}; it must be at most {_number(limits['le'])}"
        case "greater_than":
            return f"{where} is {found}; it must be above {_number(limits['gt'])}"
        case "less_than":
            return f"{where} is {found}; it must be below {_number(limits['lt'])}"
        case "too_short":
            return f"{where} is {found}; it must not be empty"
        case "string_too_long":
            return f"{where} is {found}; at most {limits['max_length']} characters are allowed"
        case "string_pattern_mismatch":
            return f"{where} is not a name that fits in a path: lower-case letters, digits and _ are allowed, a letter first"
        case "value_error":
            reason = str(limits["error"])
            return f"{where} is {found}: {reason}" if where else reason
    allowed = _nouns(_at(model, parts))
    return f"{where} is {found}; it must be {allowed}{_hint(model, raw, error, allowed, where, confirm)}"


def _at(annotation: Any, path: Iterable[Any]) -> Any:
    """The annotation of the value at a path below a model, a mapping, a list or a tuple."""
    for part in path:
        annotation = _bare(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            annotation = annotation.model_fields[str(part)].annotation
        else:
            annotation = [each for each in typing.get_args(annotation) if each is not Ellipsis][-1]
    return annotation


def _bare(annotation: Any) -> Any:
    """Without ``Annotated`` and without the alternative ``None``."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _bare(typing.get_args(annotation)[0])
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return _bare(next(each for each in typing.get_args(annotation) if each is not types.NoneType))
    return annotation


def _choices(annotation: Any) -> list[str]:
    nullable = ["null"] if types.NoneType in typing.get_args(annotation) else []
    return [*map(str, typing.get_args(_bare(annotation))), *nullable]


def _nouns(annotation: Any) -> str:
    bare = _bare(annotation)
    nouns: dict[Any, str] = {
        **{int: "an integer", float: "a number", str: "text", bool: "true or false"},
        **{list: "a list", tuple: "a list", dict: "a mapping"},
    }
    noun = nouns.get(typing.get_origin(bare) or bare, "a mapping")
    return f"{noun} or null" if types.NoneType in typing.get_args(annotation) else noun


def _hint(
    model: type[BaseModel],
    raw: Any,
    error: dict[str, Any],
    allowed: str,
    where: str,
    confirm: Callable[[Any], object] | None,
) -> str:
    """What to write instead, where that is plain and would be accepted."""
    value, text = error["input"], ""
    better: Any = None
    if allowed == "a mapping" and value is None:
        better, text = {}, " (write {} for the defaults)"
    elif allowed.startswith("a list") and not isinstance(value, Mapping):
        better, text = [value], f" (write {show([value])})"
    elif allowed.startswith(("a number", "an integer")) and isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
            better = int(number) if allowed.startswith("an integer") and number == int(number) else number
            exponent = "; YAML reads an exponent without a point, such as 1e-3, as text" if "e" in value else ""
            text = f" (write {better!r} without quotes{exponent})"
    if better is None:
        return ""
    changed = _replaced(raw, error["loc"], better)
    try:
        model.model_validate(changed)
        if confirm is not None:
            confirm(changed)
    except ValidationError as others:  # of anything else that is wrong; the hint may be right nevertheless
        return text if all(each["loc"][: len(error["loc"])] != error["loc"] for each in others.errors()) else ""
    except ConfigError as other:
        return "" if str(other).startswith(where) else text
    return text


def _replaced(place: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of nested mappings and lists with another value at a path."""
    if not path:
        return value
    items = dict(place) if isinstance(place, Mapping) else dict(enumerate(place))
    items[path[0]] = _replaced(items[path[0]], path[1:], value)
    return items if isinstance(place, Mapping) else list(items.values())


def join(path: str, key: object) -> str:
    """A key path with one more key, which is quoted unless it is a plain name, a variant or a number."""
    text = key if isinstance(key, str) and len(key) <= _SHOWN and re.fullmatch(r"[\w,=.-]+", key) else show(key)
    return f"{path}.{text}" if path else text


def _number(limit: float) -> str:
    return f"{limit:.0f}" if limit == int(limit) else f"{limit:g}"


def show(value: Any) -> str:
    """A value as JSON writes it, shortened where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that JSON cannot have; integers of thousands of digits
        text = f"of type {type(value).__name__}"
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
