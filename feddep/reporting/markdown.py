"""Markdown that reads well raw, too: pipe tables, sections, and numbers as they are written everywhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from feddep.reporting.labels import dataset_title


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A pipe table whose columns are aligned."""
    widths = [max(3, *(len(line[column]) for line in [header, *lines])) for column in range(len(header))]
    rows = [header, ["-" * width for width in widths], *lines]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in padded)


def sections(rows: pd.DataFrame, body: Callable[[pd.DataFrame], str]) -> str:
    """A heading and a body for each setting and dataset, in the order of the rows; settings are named if there are several."""
    several = rows["setting"].nunique() > 1
    parts = []
    for (setting, dataset), block in rows.groupby(["setting", "dataset"], sort=False):
        of_setting = f", setting {setting}" if several else ""
        parts.append(f"## {dataset_title(str(dataset))}{of_setting}\n\n{body(block)}")
    return "\n".join(parts)


def value(option: Any) -> str:
    """The value of an option, empty where there is none."""
    if option is None:
        return ""
    return option if isinstance(option, str) else f"{option:g}"


def values(line: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """What a row has in some columns, as :func:`value` writes it."""
    return [value(line[column]) for column in columns]


def number(quantity: float | None, form: str) -> str:
    """A number in a format, empty where there is none."""
    return "" if quantity is None else format(quantity, form)


def plus_minus(mean: float | None, std: float | None) -> str:
    """``0.8650 ± 0.0040``, the mean alone, or nothing."""
    if mean is None or std is None:
        return number(mean, ".4f")
    return f"{mean:.4f} ± {std:.4f}"


def interval(mean: float | None, low: float | None, high: float | None) -> str:
    """``+0.0120 [+0.0010, +0.0230]``, the mean alone, or nothing."""
    if mean is None or low is None:
        return number(mean, "+.4f")
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"
