"""Search spaces: what a search of hyperparameters may try, an axis for each name.

An axis is a :class:`Range` of numbers, a tuple of values, or a :class:`By`, whose axis depends on
what was chosen for an earlier name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, spread evenly, or with ``log`` evenly in their logarithm;
    with ``integer`` the integers among them.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def at(self, share: float) -> float:
        """The number at a share from 0 to 1 of the range, of three significant digits."""
        end = self.high + self.integer  # an integer k has the numbers from k to k + 1
        number = (
            self.low * (end / self.low) ** share
            if self.log
            else self.low + (end - self.low) * share
        )
        rounded = int(number) if self.integer else float(f"{number:.3g}")
        return min(max(rounded, self.low), self.high)


@dataclass(frozen=True)
class By:
    """An axis for each value of an earlier name, such as a range of rates for each optimiser."""

    name: str
    axes: Mapping[Any, "Range | tuple[Any, ...]"]


Axis = Range | tuple[Any, ...] | By
Space = Mapping[str, Axis]
"""An axis by name; a name that another one depends on comes first."""


def linear(low: float, high: float) -> Range:
    """Numbers from ``low`` to ``high``."""
    return Range(low, high)


def log(low: float, high: float) -> Range:
    """Numbers from ``low`` to ``high``, evenly in their logarithm."""
    return Range(low, high, log=True)


def integers(low: int, high: int, log: bool = False) -> Range:
    """Integers from ``low`` to ``high``."""
    return Range(low, high, log, integer=True)


def axis_at(axis: Axis, chosen: Mapping[str, Any]) -> Range | tuple[Any, ...]:
    """The axis where earlier names have these values."""
    return axis.axes[chosen[axis.name]] if isinstance(axis, By) else axis


def point(space: Space, shares: Sequence[float]) -> dict[str, Any]:
    """The values at a point of the unit cube, a share in [0, 1) for each name."""
    chosen: dict[str, Any] = {}
    for (name, given), share in zip(space.items(), shares, strict=True):
        axis = axis_at(given, chosen)
        chosen[name] = axis.at(share) if isinstance(axis, Range) else axis[int(share * len(axis))]
    return chosen


def outside(space: Space, chosen: Mapping[str, Any]) -> list[str]:
    """The names whose values are not in their axes."""
    axes = {name: axis_at(axis, chosen) for name, axis in space.items()}
    return [
        name
        for name, axis in axes.items()
        if not (
            isinstance(chosen[name], int | float) and axis.low <= chosen[name] <= axis.high
            if isinstance(axis, Range)
            else chosen[name] in axis
        )
    ]


def at_edge(space: Space, chosen: Mapping[str, Any], share: float = 0.05) -> list[str]:
    """The names of ranges in whose first or last 5 % a value is, or beyond."""
    axes = {name: axis_at(axis, chosen) for name, axis in space.items()}
    return [
        name
        for name, axis in axes.items()
        if isinstance(axis, Range) and not axis.at(share) < chosen[name] < axis.at(1 - share)
    ]


def extremes(axis: Axis) -> list[Any]:
    """The ends of ranges, and all values of tuples."""
    if isinstance(axis, By):
        return [value for each in axis.axes.values() for value in extremes(each)]
    return [axis.low, axis.high] if isinstance(axis, Range) else list(axis)
