"""The one renderer of tables, Markdown that reads well raw, too; and how numbers are written."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from feddep.config import variants
from feddep.reporting import published
from feddep.reporting.frames import records
from feddep.reporting.labels import changes_of, dataset_title, marked_title, method_title

MARKS = {"stalled": "§", "unfinished": "‡"}
"""Marks of a number most of whose runs have a flaw; of two flaws the first counts."""
_EXPLAINED = {
    "stalled": "stalled: they are no better than a constant answer, and so no result",
    "unfinished": "are unfinished: their best round is among the last 5 % of their rounds",
}
_DIFFERENCES = ("mean_difference", "gain")
_HEADINGS = {
    **{
        "clients": "M",
        "mean": "accuracy",
        "last_mean": "last round",
        "mean_difference": "difference",
        "macro_f1": "macro-F1",
        "verdict_strict": "strict",
        "detectable": "seen with 80 %",
        "p_no_gain": "p, no gain",
        "probable_better": "probable: better",
        "probable_equivalent": "equivalent",
        "probable_worse": "worse",
    },
    **{
        "local_before_mean": "local",
        "theta": "θ",
    },
    **{
        "epsilon": "ε",
        "delta": "δ",
        "exact_delta": "exact δ",
        "guarantee": "ε proven",
        "paper_epsilon": "ε by the paper's account",
    },
}


_FORMS = {
    "won": ".0%",
    "detectable": ".4f",
    "p_no_gain": ".2g",
    **dict.fromkeys(("probable_better", "probable_equivalent", "probable_worse"), ".2f"),
}
"""How numbers of columns are written, where not with four digits."""


def text(raw: str) -> str:
    """Text on one line that Markdown and HTML show as it is."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", " ".join(raw.split())).replace("<", "&lt;")


def table(header: Sequence[str], lines: Sequence[Sequence[str]], numbers: bool = False) -> str:
    """A pipe table whose columns are aligned; where all but the first hold ``numbers``, these are
    set to the right.
    """
    header, *lines = (
        [re.sub(r"(?<!\\)\|", r"\\|", " ".join(cell.split())) for cell in line]
        for line in [header, *lines]
    )
    widths = [
        max(3, *(len(line[column]) for line in [header, *lines])) for column in range(len(header))
    ]
    rules = [
        "-" * (width - 1) + (":" if numbers and column else "-")
        for column, width in enumerate(widths)
    ]
    rows = [header, rules, *lines]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in padded)


def shown(
    rows: pd.DataFrame,
    columns: Iterable[str],
    by: Sequence[str] = ("setting", "dataset"),
    level: int = 2,
) -> str:
    """The columns of a table, as :func:`cell` writes them, with a section for each value of ``by``.

    Args:
        rows: the table.
        columns: those to show; one without any value is left out.
        by: columns that sections are named by.
        level: level of their headings.
    """
    columns = [column for column in columns if column in rows and rows[column].notna().any()]
    papers = {f"paper_{paper}_mean": title for paper, title in published.papers().items()}
    headings = {**_HEADINGS, **papers}
    header = [
        headings.get(column, column.removesuffix("_mean").replace("_", " ")) for column in columns
    ]
    parts = []
    for key, block in rows.groupby(list(by), sort=False, dropna=False) if by else [((), rows)]:
        names = [
            dataset_title(str(each)) if name == "dataset" else f"{name.capitalize()} {each}"
            for name, each in zip(by, key, strict=True)
            if name == "dataset" or rows[name].nunique() > 1
        ]
        body = table(header, [[cell(row, column) for column in columns] for row in records(block)])
        parts.append(f"{'#' * level} {', '.join(names)}\n\n{body}" if names else body)
    return "\n".join(parts)


def cell(row: Mapping[str, Any], column: str) -> str:
    """A number as people read it: with its deviation or interval and marks, which are further
    columns of its row.

    An accuracy, such as ``oracle_mean``, has ``oracle_std``, or of a difference ``gap_mean`` its
    interval ``gap_low`` to ``gap_high``; it is bold where it is ``chosen``, and has a † where it is
    ``above_mlp``.  Both have a mark
    (:data:`MARKS`) where most of the runs stalled or are unfinished.
    """
    value, prefix = row[column], column.removesuffix("mean")
    if value is None:
        return ""
    if column == "dataset":
        return dataset_title(value)
    if column in ("method", "reference"):
        return marked_title(value) if "verdict" in row else method_title(value)
    if isinstance(value, str):  # of an option, whatever its name
        return value
    if column in _DIFFERENCES:
        return interval(value, row["low"], row["high"]) + mark(row)
    if column.endswith("_mean") and f"{prefix}low" in row:
        return interval(value, row[f"{prefix}low"], row[f"{prefix}high"]) + mark(row, prefix)
    if column.endswith("mean"):
        text = (printed if column.startswith(("paper_", "published_")) else plus_minus)(
            value, row.get(f"{prefix}std")
        )
        if column == "mean":
            text = (f"**{text}**" if row.get("chosen") else text) + (
                " †" if row.get("above_mlp") else ""
            )
        return text + mark(row, prefix)
    return str(value) if isinstance(value, bool | int) else number(value, _FORMS.get(column, ".4g"))


Cells = Mapping[tuple[tuple[str, ...], str], str]
"""The cells of a table by line, which is the texts of its first columns, and column."""


def grid(cells: Cells, columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and lines of a table whose lines stand in the order in which they come."""
    found = list(dict.fromkeys(line for line, _ in cells))
    head = [""] * len(found[0]) if found else []
    return [*head, *columns], [
        [*line, *(cells.get((line, column), "") for column in columns)] for line in found
    ]


def sections(rows: pd.DataFrame, body: Any, level: int = 2) -> str:
    """A heading and a body for each setting and dataset, in the order of the rows; settings are
    named if there are several.
    """
    parts = []
    for (setting, dataset), block in rows.groupby(["setting", "dataset"], sort=False):
        of_setting = f", setting {setting}" if rows["setting"].nunique() > 1 else ""
        parts.append(f"{'#' * level} {dataset_title(str(dataset))}{of_setting}\n\n{body(block)}")
    return "\n".join(parts)


def line_name(row: Mapping[str, Any], options: Iterable[str]) -> str:
    """The method with the options that a row has: ``FedDEP, prototypes=3``."""
    known = [f"{option}={value(row[option])}" for option in options if row[option] is not None]
    return ", ".join([method_title(row["method"]), *known])


def in_common(short: Mapping[str, str]) -> str:
    """A line a method whose variants all have changes that a table leaves out; ``short`` are names
    as the table has them.
    """
    common = {}
    for spelled, told in short.items():
        changes, different = changes_of(spelled), changes_of(told)
        common[variants.base(spelled)] = ", ".join(
            f"`{key}={value(each)}`" for key, each in changes.items() if key not in different
        )
    return "".join(
        f"{method_title(name)}: {changes}.\n\n" for name, changes in common.items() if changes
    )


def value(option: Any) -> str:
    """The value of an option, empty where there is none."""
    if option is None:
        return ""
    return option if isinstance(option, str) else f"{option:g}"


def number(quantity: float | None, form: str = ".4g") -> str:
    """A number in a format, empty where there is none."""
    if quantity is None:
        return ""
    return "∞" if math.isinf(quantity) else format(quantity, form)


def plus_minus(mean: float | None, std: float | None) -> str:
    """``0.8650 ± 0.0040``, the mean alone, or nothing."""
    return number(mean, ".4f") + ("" if mean is None or std is None else f" ± {std:.4f}")


def printed(mean: float, std: float | None) -> str:
    """A paper's number, whose standard deviation has no more digits than the paper gives."""
    return plus_minus(mean, std).removesuffix("0" if std is not None else "")


def interval(mean: float | None, low: float | None, high: float | None) -> str:
    """``+0.0120 [+0.0010, +0.0230]``, the mean alone, or nothing."""
    return number(mean, "+.4f") + (
        "" if mean is None or low is None else f" [{low:+.4f}, {high:+.4f}]"
    )


def flaw(row: Mapping[str, Any], prefix: str = "") -> str | None:
    """The flaw that most runs of a number have, by the shares that stand beside it; None where
    there is nothing.
    """
    return next((name for name in MARKS if (row.get(f"{prefix}{name}") or 0) > 0.5), None)


def mark(row: Mapping[str, Any], prefix: str = "") -> str:
    """The mark of a number whose runs mostly have a flaw, or nothing."""
    found = flaw(row, prefix)
    return f" {MARKS[found]}" if found else ""


def explained(text: str) -> str:
    """A page's text, followed by what the marks mean that it has."""
    notes = [
        f"`{sign}`: most of these runs {_EXPLAINED[name]}."
        for name, sign in MARKS.items()
        if f" {sign}" in text
    ]
    return "\n\n".join([text.rstrip(), *notes]) + "\n" if notes else text
