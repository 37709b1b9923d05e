"""Rows of a data frame: as plain dictionaries, and in the papers' order."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import pandas as pd

from feddep.reporting.labels import sort_datasets, sort_methods

CELL = ("setting", "dataset", "method", "clients")
"""Columns that identify a row of a summary over seeds."""


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row, in order; what is not known (NaN, NA) is None."""
    return [
        {str(key): None if _unknown(value) else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]


def _unknown(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def ordered(values: Iterable[Any]) -> list[Any]:
    """Distinct values but unknown ones: numbers ascending, and with anything else among them as
    they come.
    """
    found = list(dict.fromkeys(value for value in values if not _unknown(value)))
    return sorted(found) if all(isinstance(value, Real) for value in found) else found


def in_paper_order(table: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """The rows sorted, datasets and methods in the papers' order, settings as they come; index
    anew.

    Args:
        table: the table; rows without a value, such as those of the whole graph, come before those
            with one.
        by: which columns to sort by, the first first; rows that are equal in them stay as they are.
    """
    orders: dict[str, Callable[[Iterable[Any]], Iterable[Any]]] = {
        "setting": dict.fromkeys,
        "dataset": sort_datasets,
        "method": sort_methods,
    }

    def places(column: pd.Series) -> pd.Series:
        order = orders.get(str(column.name), ordered)(column.dropna())
        return column.map({value: place for place, value in enumerate(order)})

    return table.sort_values(
        list(by), key=places, na_position="first", kind="stable", ignore_index=True
    )


def of_place(table: pd.DataFrame, setting: str, dataset: str) -> pd.DataFrame:
    """The rows of a setting and dataset."""
    return table[(table["setting"] == setting) & (table["dataset"] == dataset)]


def beside_clients(table: pd.DataFrame, clients: int | None) -> pd.DataFrame:
    """The rows of a number of clients, and those of methods that see the whole graph; without a
    number these alone.
    """
    whole = table["clients"].isna()
    return (
        table[whole]
        if clients is None
        else table[whole | (table["clients"] == clients).fillna(False)]
    )


def client_numbers(table: pd.DataFrame) -> list[int | None]:
    """The numbers of clients in a table, ascending; a None alone where all is of the whole
    graph.
    """
    return [*sorted(int(number) for number in table["clients"].dropna().unique())] or [None]
