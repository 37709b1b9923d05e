"""Tables as CSV files."""

from pathlib import Path
from typing import TYPE_CHECKING

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
