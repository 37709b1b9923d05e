"""Rows of a data frame: as plain dictionaries, and in the papers' order."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from feddep.reporting.labels import sort_datasets, sort_frameworks


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row, in order; what is not known (NaN, NA) is None."""
    return [{str(key): None if _unknown(value) else value for key, value in row.items()} for row in table.to_dict("records")]


def in_paper_order(summary: pd.DataFrame, by: Sequence[str] = ("setting", "dataset", "framework", "clients")) -> pd.DataFrame:
    """The rows sorted, settings as they come, datasets, frameworks and numbers of clients in the papers' order; index anew.

    Args:
        summary: the table; rows without a framework come before those with one, rows of the whole graph before those of clients.
        by: which columns to sort by, the first first; rows that are equal in them stay as they are.
    """
    ranks = {
        "setting": lambda column: column.map(list(dict.fromkeys(column)).index),
        "dataset": lambda column: column.map(sort_datasets(column).index),
        "framework": lambda column: column.map({name: k for k, name in enumerate(sort_frameworks(column.dropna()))}).fillna(-1),
        "clients": lambda column: column.fillna(0),
    }
    order = pd.DataFrame({name: ranks[name](summary[name]) for name in by})
    return summary.loc[order.sort_values(list(by), kind="stable").index].reset_index(drop=True)


def _unknown(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
