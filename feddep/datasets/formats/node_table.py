"""Tables as CSV or Parquet: ``nodes`` with ``id``, ``label`` and features, ``edges`` with ``source`` and ``target``."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from feddep.utils.errors import DataError

_TEXT = {"id": str, "label": str, "source": str, "target": str}
"""Columns of CSV that are text whatever they look like, so that 007 is not 7."""


def read_nodes(path: Path) -> tuple[pd.Index, np.ndarray, np.ndarray, int]:
    """Nodes in the order of the rows.

    Returns:
        The nodes' ids as text; features, columns in their order, float32, shape (n, F); labels, int64, shape (n,); the number of
        classes.  Labels that are integers are the numbers of classes, others are names, numbered in alphabetical order.

    Raises:
        DataError: if a column is missing, a feature is no number, an id is not unique, or a value is missing.
        Exception: of what is no table, whatever pandas raises.
    """
    table = _read(path, ["id", "label"])
    ids = pd.Index(_text(table, "id"))
    if ids.has_duplicates:
        raise DataError(f"the id {ids[ids.duplicated()][0]} occurs twice; each node has an id of its own")
    names = [name for name in table if name not in ("id", "label")]
    for name in names:
        if table[name].dtype.kind not in "biuf":
            raise DataError(f"the column {name} has type {table[name].dtype}; a feature must be a number")
        if missing := _where(table[name].isna()):
            raise DataError(f"the column {name} has no number in row {missing}; every node needs one")
    labels, classes = _classes(_text(table, "label"))
    return ids, table[names].to_numpy(np.float32), labels, classes


def read_edges(path: Path, ids: pd.Index) -> np.ndarray:
    """Edges as pairs of rows of the nodes with these ids; int64, shape (m, 2).

    Raises:
        DataError: if there are other columns than two, or an edge names no node.
        Exception: of what is no table, whatever pandas raises.
    """
    table = _read(path, ["source", "target"])
    if others := [name for name in table if name not in ("source", "target")]:
        raise DataError(f"there is a column {others[0]}; allowed are source and target alone, as edges have no weights")
    ends = [_text(table, name) for name in ("source", "target")]
    found = [ids.get_indexer(pd.Index(end)) for end in ends]
    for end, nodes in zip(ends, found, strict=True):
        if row := _where(pd.Series(nodes < 0)):
            raise DataError(f"{end.name} is {end.iloc[row - 1]} in row {row}, which is the id of no node")
    return np.column_stack(found).astype(np.int64)


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    with path.open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows that are longer than the header
        if path.suffix == ".csv":
            types: Any = _TEXT
            table = pd.read_csv(stream, encoding="utf-8-sig", index_col=False, dtype=types, low_memory=False)
        else:
            try:
                table = pd.read_parquet(stream, engine="pyarrow")
            except ImportError:
                raise DataError("pyarrow is not installed; install it with `pip install pyarrow`, or use CSV") from None
    for column in columns:
        if column not in table:
            raise DataError(f"the column {column} is missing; there are {', '.join(map(str, table)) or 'none'}")
    return table


def _text(table: pd.DataFrame, name: str) -> pd.Series:
    """A column of integers or text as text."""
    column = table[name]
    if missing := _where(column.isna()):
        raise DataError(f"{name} is missing in row {missing}; every row needs one")
    if column.dtype.kind in "fcmM":
        raise DataError(f"{name} has type {column.dtype}; integers or text are allowed")
    return column.astype(str)


def _where(wrong: pd.Series) -> int:
    """The first row that is wrong, counted from 1; 0 if none is."""
    return int(np.argmax(wrong.to_numpy())) + 1 if wrong.any() else 0


def _classes(labels: pd.Series) -> tuple[np.ndarray, int]:
    numbers = pd.to_numeric(labels, errors="coerce")
    if numbers.isna().any():
        names, found = np.unique(labels.to_numpy(dtype=object), return_inverse=True)
        return found.astype(np.int64), len(names)
    if not labels.str.fullmatch(r"[+-]?[0-9]{1,9}").all():
        wrong = labels[~labels.str.fullmatch(r"[+-]?[0-9]{1,9}")].iloc[0]
        raise DataError(f"a label is {wrong}; the number of a class is an integer from 0, its name no number")
    return numbers.to_numpy(np.int64), int(numbers.max()) + 1 if len(numbers) else 0
