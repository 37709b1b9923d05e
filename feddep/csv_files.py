"""Tables as CSV files.  No more is imported here than it takes: what measures should not run again when titles change."""

from pathlib import Path
from typing import TYPE_CHECKING

from feddep.storage import write_text

if TYPE_CHECKING:
    import pandas as pd


def write_csv(target: str | Path, table: "pd.DataFrame", digits: int = 6) -> None:
    """Write a table without its index, Unix line ends; numbers with so many significant digits, what is not known left empty."""
    write_text(target, table.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n"))
