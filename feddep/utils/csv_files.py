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
    import pandas as pd

    def no_table(found: object) -> DataError:
        return DataError(f"{file} is no table of results: {found}; take it from git again")

    def check(cells: "pd.Series[Any]", fits: "pd.Series[Any]", rule: object) -> None:
        if not fits.all():
            line = int(fits.to_numpy(dtype=bool).argmin())
            cell = cells.iloc[line]
            found = "" if pd.isna(cell) else one_line(str(cell))[:80]
            found = f"{cells.name} is {found or 'empty'} in line {line + 2}"
            raise no_table(f"{found}, where {rule} is allowed")

    try:
        text = file.read_text(encoding="utf-8")
        table = pd.read_csv(io.StringIO(text), dtype=types, keep_default_na=False, na_values=[""])
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise no_table(one_line(str(error))) from None
    except (ValueError, TypeError, OverflowError) as error:  # of a cell, which none of them names
        spelled = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        for column in types.keys() & {*spelled}:
            pattern = _SPELLED.get(types[column], ".*")
            check(spelled[column], spelled[column].str.fullmatch(pattern), types[column])
        raise no_table(one_line(str(error))) from None
    names = [str(name) for name in table]
    # The first cells are no column where each line has one cell more than the header.
    shifted = not isinstance(table.index, pd.RangeIndex)
    if shifted or not types.keys() - set(optional) <= set(names) <= types.keys():
        raise no_table(f"its columns are {', '.join(names)[:200]}")
    if not text.endswith("\n"):
        raise no_table("its last line is cut off")
    for column in names:
        cells, rule = table[column], allowed.get(column, "some text")
        if isinstance(rule, tuple):
            fits, rule = cells.between(*rule), f"{rule[0]:g} to {rule[1]:.3g}"
        else:
            fits = cells.str.fullmatch(rule) if column in allowed else cells.notna()
        check(cells, fits | cells.isna() if column in optional else fits & cells.notna(), rule)
    check(table["key"], ~table["key"].duplicated(), "each key once")
    return table
