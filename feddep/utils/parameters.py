"""Validated parameters: the base class of everything that a configuration sets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from feddep.utils.errors import ConfigError

Positive = Annotated[int, Field(ge=1, le=10**6)]
"""An integer from 1 to a million."""
Natural = Annotated[int, Field(ge=0, le=10**6)]
"""An integer from 0 to a million."""
Repetitions = Annotated[int, Field(ge=0, le=10**4)]
"""How often something is done that may be left out, up to 10,000 times: epochs, steps, episodes."""
Width = Annotated[int, Field(ge=1, le=2048)]
"""A number of units of a layer, or of coordinates of an embedding."""
ClientCount = Annotated[int, Field(ge=1, le=1000)]
"""A number of clients M, of whom some methods exchange M² messages."""
PerNode = Annotated[int, Field(ge=1, le=50)]
"""A number of neighbours for each of which a node takes a row of numbers."""
Hops = Annotated[int, Field(ge=0, le=10)]
"""A number of hops, which is what as many layers see."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""
Weight = Annotated[float, Field(ge=0, le=10**6)]
"""A number from 0 to a million."""
StepSize = Annotated[float, Field(gt=0, le=1000)]
"""A number above 0, at most 1000."""


@dataclass(frozen=True)
class InKey:
    """Marks a field that a content key does not always hold, as in ``Annotated[bool,
    InKey(default=False)]``.

    Attributes:
        ever: whether a key ever holds it.
        default: whether a key holds it where it has its default.  Options that came later are left
            out there, so that older results keep their keys.
        methods: the values of the field ``method`` that read it, where others do not.
    """

    ever: bool = True
    default: bool = True
    methods: Sequence[str] | None = None


class Parameters(BaseModel):
    """Immutable parameters with defaults.  A docstring below a field is its entry in the table of
    configuration keys.

    Unknown names, values of another type and numbers that are not finite are errors; an integer is
    accepted where a number is asked for, a truth value is not.  Every number has a least and a
    largest value, so that none overflows and none exhausts the memory on the graphs of the
    benchmark, the others as usual.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @classmethod
    def of(cls, parameters: Any) -> Self:
        """The fields of this class taken from an object that has them all, such as an instance of a
        subclass.
        """
        return cls(**{name: getattr(parameters, name) for name in cls.model_fields})

    def in_key(self) -> dict[str, Any]:
        """The fields that a content key holds, as JSON: all but those that :class:`InKey` leaves
        out.
        """
        values = self.model_dump(mode="json")
        return {
            name: value
            for name, value in values.items()
            if all(
                self._held(mark, name, value)
                for mark in type(self).model_fields[name].metadata
                if isinstance(mark, InKey)
            )
        }

    def _held(self, mark: InKey, name: str, value: Any) -> bool:
        later = not mark.default and value == type(self).model_fields[name].get_default()
        read = mark.methods is None or getattr(self, "method", None) in mark.methods
        return mark.ever and read and not later

    def replace(self, **changes: Any) -> Self:
        """A validated copy with some fields changed."""
        return type(self)(**{**self.model_dump(), **changes})


def key_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Options of a command line by key, from ``KEY=VALUE``: numbers, truth values, lists and null
    as JSON writes them, such as ``1e-3`` and ``true``; anything else is text.

    Raises:
        ConfigError: if one has no key or no ``=``, or two have the same key.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"{pair!r} is no option; KEY=VALUE is allowed, such as rounds=20")
        if key in found:
            raise ConfigError(f"{pair!r} sets {key} once more; each option may be set once")
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found
