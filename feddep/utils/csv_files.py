"""Tables as CSV files."""

import hashlib
import io
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddep.utils.errors import DataError, one_line
from feddep.utils.files import write_text

if TYPE_CHECKING:
    import pandas as pd

FROM_0 = (0, sys.float_info.max)
"""Numbers that are finite and not negative."""
PRINTED = r"[^\x00-\x1f]+"
"""Any text without control characters."""
_SPELLED = {
    "int64": r"-?\d+",
    "Int64": r"(-?\d+)?",
    "float64": r"(-?\d+(\.\d+)?(e[+-]?\d+)?)?",
    "boolean": "(True|False)?",
}
"""Patterns of the cells of a type."""


def csv_text(table: "pd.DataFrame", digits: int = 6) -> str:
    """A table without its index, Unix line ends; numbers with so many significant digits, what is
    not known left empty.
    """
    return table.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")


def write_csv(target: str | Path, table: "pd.DataFrame", digits: int = 6) -> None:
    """Write a table as :func:`csv_text` has it."""
    write_text(target, csv_text(table, digits))


def append_rows(target: Path, table: "pd.DataFrame") -> None:
    """Add rows at the end of a CSV file, which is made if it is not there; its lines stay as they
    are.  In the last column, ``digest``, is that of each row's cells.

    Raises:
        DataError: if it has other columns.
    """
    cells = _cells(table.to_csv(index=False))
    text = cells.assign(digest=_digests(cells)).to_csv(index=False, lineterminator="\n")
    if target.is_file():
        header, _, lines = text.partition("\n")
        former = target.read_text(encoding="utf-8").rstrip("\n") + "\n"
        if former.partition("\n")[0] != header:
            raise DataError(f"{target} does not have the columns {header}; nothing was added to it")
        text = former + lines
    write_text(target, text)


def _cells(text: str) -> "pd.DataFrame":
    """The texts of the cells of a CSV file."""
    import pandas as pd

    return pd.read_csv(io.StringIO(text), dtype=object, na_filter=False)


def _digests(cells: "pd.DataFrame") -> list[str]:
    """For each row the start of the SHA-256 of its cells and their columns' names, in the order of
    the names; an empty cell counts as one that is not there, so that old rows stay as they are when
    a column is added.
    """
    columns = [
        [f"{name}={cell}\n" if cell else "" for cell in cells[name]]
        for name in sorted({*cells} - {"digest"})
    ]
    return [
        hashlib.sha256("".join(row).encode()).hexdigest()[:8] for row in zip(*columns, strict=True)
    ]


def read_checked(
    file: Path,
    types: Mapping[str, str],
    allowed: Mapping[str, str | tuple[float, float]],
    optional: Collection[str],
) -> "pd.DataFrame":
    """Read a table that git keeps, and check each of its cells.

    Args:
        file: the CSV file, as :func:`append_rows` writes it; its column ``key`` has each key once.
        types: the types of its columns by name.
        allowed: a pattern of a column's texts, or the least and largest of its numbers.
        optional: columns that may be empty, or not be there.

    Raises:
        DataError: if it has other columns or a cell is not allowed; the sentence names line and
            column.
    """
    try:
        return _checked(file.read_text(encoding="utf-8"), types, allowed, optional)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{file} is no table of results: {one_line(str(error))}; take it from git again"
        ) from None


def _checked(
    text: str,
    types: Mapping[str, str],
    allowed: Mapping[str, str | tuple[float, float]],
    optional: Collection[str],
) -> "pd.DataFrame":
    """The table of a text; arguments are those of :func:`read_checked`.

    Raises:
        ValueError: what is not as it should be; where pandas finds it, other errors too.
    """
    import pandas as pd

    cells, types = _cells(text), {**types, "digest": "string"}
    try:
        table = pd.read_csv(io.StringIO(text), dtype=types, keep_default_na=False, na_values=[""])
    except (ValueError, TypeError, OverflowError):  # which do not say of what cell they are
        for name in types.keys() & {*cells}:
            pattern = _SPELLED.get(types[name], ".*")
            _check_cells(cells[name], cells[name].str.fullmatch(pattern), types[name])
        raise
    names = [str(name) for name in table]
    # The first cells are no column where each line has one cell more than the header.
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError("its lines have more cells than the header")
    if wrong := (types.keys() - {*optional} - {*names}) | ({*names} - types.keys()):
        raise ValueError(f"columns are missing or not known: {', '.join(sorted(wrong))[:200]}")
    if not text.endswith("\n"):
        raise ValueError("its last line is cut off")
    for name in names:
        column, rule = table[name], allowed.get(name, "some text")
        if isinstance(rule, tuple):
            fits, rule = column.between(*rule), f"{rule[0]:g} to {rule[1]:.3g}"
        else:
            fits = column.str.fullmatch(rule) if name in allowed else column.notna()
        known = column.notna()
        _check_cells(column, fits | ~known if name in optional else fits & known, rule)
    _check_cells(table["key"], ~table["key"].duplicated(), "each key once")
    changed = table["key"][table["digest"] != _digests(cells)]
    if len(changed):
        raise ValueError(
            f"line {changed.index[0] + 2}, of the key {changed.iloc[0]}, is not as it was written "
            "(its cells do not have its digest)"
        )
    return table.drop(columns="digest")


def _check_cells(cells: "pd.Series[Any]", fits: "pd.Series[Any]", rule: object) -> None:
    """Raise a ValueError that names the first cell that does not fit."""
    if not fits.all():
        line = int(fits.to_numpy(dtype=bool).argmin())
        shown = cells.astype("string").fillna("").iloc[line][:80] or "empty"
        raise ValueError(f"{cells.name} is {shown} in line {line + 2}, where {rule} is allowed")
