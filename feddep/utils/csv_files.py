"""Tables as CSV files."""

from pathlib import Path
from typing import TYPE_CHECKING

from feddep.utils.errors import DataError
from feddep.utils.files import write_text

if TYPE_CHECKING:
    import pandas as pd


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
