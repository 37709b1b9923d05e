"""Rows of a data frame as plain dictionaries."""

from typing import Any

import pandas as pd


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row, in order; what is not known (NaN, NA) is None."""
    return [{str(key): None if _unknown(value) else value for key, value in row.items()} for row in table.to_dict("records")]


def _unknown(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
