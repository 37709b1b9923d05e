"""Tables as CSV files."""

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
    are.

    Raises:
        DataError: if it has other columns.
    """
    text = table.to_csv(index=False, lineterminator="\n")
    if target.is_file():
        header, _, lines = text.partition("\n")
        former = target.read_text(encoding="utf-8").rstrip("\n") + "\n"
        if former.partition("\n")[0] != header:
            raise DataError(f"{target} does not have the columns {header}; nothing was added to it")
        text = former + lines
    write_text(target, text)


def read_checked(
    file: Path,
    types: Mapping[str, str],
    allowed: Mapping[str, str | tuple[float, float]],
    optional: Collection[str],
) -> "pd.DataFrame":
    """Read a table that git keeps, and check each of its cells.

    Args:
        file: the CSV file; its column ``key`` has each key once.
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

    try:
        table = pd.read_csv(io.StringIO(text), dtype=types, keep_default_na=False, na_values=[""])
    except (ValueError, TypeError, OverflowError):  # which do not say of what cell they are
        spelled = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        for name in types.keys() & {*spelled}:
            pattern = _SPELLED.get(types[name], ".*")
            _check_cells(spelled[name], spelled[name].str.fullmatch(pattern), types[name])
        raise
    names = [str(name) for name in table]
    # The first cells are no column where each line has one cell more than the header.
    shifted = not isinstance(table.index, pd.RangeIndex)
    if shifted or not types.keys() - set(optional) <= set(names) <= types.keys():
        raise ValueError(f"its columns are {', '.join(names)[:200]}")
    if not text.endswith("\n"):
        raise ValueError("its last line is cut off")
    for name in names:
        cells, rule = table[name], allowed.get(name, "some text")
        if isinstance(rule, tuple):
            fits, rule = cells.between(*rule), f"{rule[0]:g} to {rule[1]:.3g}"
        else:
            fits = cells.str.fullmatch(rule) if name in allowed else cells.notna()
        known = cells.notna()
        _check_cells(cells, fits | ~known if name in optional else fits & known, rule)
    _check_cells(table["key"], ~table["key"].duplicated(), "each key once")
    return table


def _check_cells(cells: "pd.Series[Any]", fits: "pd.Series[Any]", rule: object) -> None:
    """Raise a ValueError that names the first cell that does not fit."""
    if not fits.all():
        line = int(fits.to_numpy(dtype=bool).argmin())
        shown = cells.astype("string").fillna("").iloc[line][:80] or "empty"
        raise ValueError(f"{cells.name} is {shown} in line {line + 2}, where {rule} is allowed")
