"""Validated parameters: the base class of everything that a configuration sets."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1, le=10**6)]
"""An integer from 1 to a million."""
Natural = Annotated[int, Field(ge=0, le=10**6)]
"""An integer from 0 to a million."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""
Weight = Annotated[float, Field(ge=0)]
"""A number, at least 0."""
StepSize = Annotated[float, Field(gt=0)]
"""A number above 0."""


class Parameters(BaseModel):
    """Immutable parameters with defaults.  A docstring below a field is its entry in the table of configuration keys.

    Unknown names, values of another type and numbers that are not finite are errors; an integer is accepted where a number is
    asked for, a truth value is not.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @classmethod
    def of(cls, parameters: Any) -> Self:
        """The fields of this class taken from an object that has them all, such as an instance of a subclass."""
        return cls(**{name: getattr(parameters, name) for name in cls.model_fields})

    def replace(self, **changes: Any) -> Self:
        """A validated copy with some fields changed."""
        return type(self)(**{**self.model_dump(), **changes})
