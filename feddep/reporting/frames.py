"""Rows of a data frame: as plain dictionaries, and in the papers' order."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from feddep.reporting.labels import sort_datasets, sort_methods

CELL = ("setting", "dataset", "method", "clients")
"""What tells the rows of a summary over seeds apart."""


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row, in order; what is not known (NaN, NA) is None."""
    return [{str(key): None if _unknown(value) else value for key, value in row.items()} for row in table.to_dict("records")]


def in_paper_order(summary: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """The rows sorted, settings as they come, datasets, methods and numbers of clients in the papers' order; index anew.

    Args:
        summary: the table; rows without a method come before those with one, rows of the whole graph before those of clients.
        by: which columns to sort by, the first first; rows that are equal in them stay as they are.
    """
    ranks = {
        "setting": lambda column: column.map(list(dict.fromkeys(column)).index),
        "dataset": lambda column: column.map(sort_datasets(column).index),
        "method": lambda column: column.map({name: k for k, name in enumerate(sort_methods(column.dropna()))}).fillna(-1),
        "clients": lambda column: column.fillna(0),
    }
    order = pd.DataFrame({name: ranks[name](summary[name]) for name in by})
    return summary.loc[order.sort_values(list(by), kind="stable").index].reset_index(drop=True)


def of_place(table: pd.DataFrame, setting: str, dataset: str) -> pd.DataFrame:
    """The rows of a setting and dataset."""
    return table[(table["setting"] == setting) & (table["dataset"] == dataset)]


def beside_clients(table: pd.DataFrame, clients: int | None) -> pd.DataFrame:
    """The rows of a number of clients, and those of methods that see the whole graph; without a number these alone."""
    whole = table["clients"].isna()
    return table[whole] if clients is None else table[whole | (table["clients"] == clients).fillna(False)]


def client_numbers(table: pd.DataFrame) -> list[int | None]:
    """The numbers of clients in a table, ascending; a None alone where all is of the whole graph."""
    return [*sorted(int(number) for number in table["clients"].dropna().unique())] or [None]


def _unknown(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
