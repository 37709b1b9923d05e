"""What a file must hold: a check of content that was read against a pydantic model, so that a foreign file is one sentence."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from feddep.utils.errors import DataError


class Schema(BaseModel):
    """Base of models that content is checked against: what they do not name is allowed, numbers are finite and no text."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


def rows_with(columns: Mapping[str, Any]) -> Any:
    """The schema of a table as a list of rows, at least one, with these columns of these types."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in columns.items()}
    return Annotated[list[create_model("Row", __base__=Schema, **fields)], Field(min_length=1)]  # type: ignore[misc]


@functools.cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def check(place: object, what: str, schema: Any, content: Any) -> None:
    """Make sure that content has the form of a schema.

    Args:
        place: where it was read.
        what: what it should be, in a word or two.
        schema: a type that pydantic knows.
        content: what was read.

    Raises:
        DataError: if it has another form; it names the first difference.
    """
    try:
        _adapter(schema).validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{place} holds no {what} ({f'{where}: ' if where else ''}{first['msg']}); delete it and run what writes it again"
        ) from None
