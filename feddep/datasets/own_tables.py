"""Graphs of one's own as two tables, of nodes and of edges, in CSV or Parquet."""

import csv
import functools
import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from feddep.graph.graph import class_numbers
from feddep.graph.split import PARTS
from feddep.utils.errors import DataError, Notice, one_line, out_of_memory

_TEXT = ("id", "label", "split", "client", "source", "target")
"""Columns of CSV that are text whatever they look like, so that 007 is not 7."""


def read_nodes(
    path: Path,
) -> tuple[pd.Index, np.ndarray, int, pd.DataFrame, dict[str, np.ndarray], np.ndarray | None]:
    """The table of nodes.

    Labels and clients that are whole numbers are those, others are names, numbered in alphabetical
    order.  An empty cell is no label.

    Returns:
        Ids; labels and the number of classes; the columns of features; masks by part, of the column
        ``split``; owners, of the column ``client``, or None.

    Raises:
        DataError: if a column is missing, occurs twice or has no name, or a cell is not what its
            column holds.
    """
    table = _read(path, "id", "label")
    ids = pd.Index(_names(table, "id"))
    if ids.has_duplicates:
        raise DataError(
            f"the id {ids[ids.duplicated()][0]} occurs twice; each node has an id of its own"
        )
    (labels, classes), masks, owners = _numbered(table["label"]), {}, None
    if "split" in table:
        parts = table["split"]
        if len(wrong := parts[parts.notna() & ~parts.isin(PARTS)]):
            raise DataError(
                f"split is {wrong.iloc[0]} in a row; {', '.join(PARTS)} or an empty cell are "
                "allowed"
            )
        masks = {part: (parts == part).to_numpy() for part in PARTS}
    if "client" in table:
        owners, _ = _numbered(_names(table, "client"))
    return (
        ids,
        labels,
        classes,
        _features(table.drop(columns=[*_TEXT], errors="ignore")),
        masks,
        owners,
    )


def read_edges(path: Path, ids: pd.Index) -> np.ndarray:
    """The table of edges, as pairs of positions in ``ids``; int64, shape (m, 2).  Other columns
    than the two are not read.

    Raises:
        DataError: if a column is missing, or an edge names no node.
    """
    table = _read(path, "source", "target")
    if more := [str(name) for name in table if name not in ("source", "target")]:
        warnings.warn(
            f"{path}: the columns {', '.join(more)} of edges are not read", Notice, stacklevel=2
        )
    ends = [_names(table, name) for name in ("source", "target")]
    pairs = np.column_stack([ids.get_indexer(pd.Index(end)) for end in ends])
    unknown = [
        end[found < 0].iloc[0]
        for end, found in zip(ends, pairs.T, strict=True)
        if (found < 0).any()
    ]
    if unknown:
        raise DataError(f"an edge names {unknown[0]}, which is the id of no node")
    return pairs


def _read(path: Path, *columns: str) -> pd.DataFrame:
    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
        table = table.reset_index([name for name in table.index.names if name is not None])
        names = [str(name) for name in table]
    else:
        try:
            names, table = _read_csv(path)
        except UnicodeDecodeError:
            raise DataError("it is not text in UTF-8") from None
        except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
            if out_of_memory(error):
                raise
            raise DataError(
                "a row has more cells than the first, which names the columns, or a quote stays "
                "open; a number has no comma, its decimals follow a point "
                f"({one_line(str(error))[:200]})"
            ) from None
    for name in names:
        if not name:
            raise DataError(
                "a column has no name; a number of the row, as pandas writes it, must be left "
                "out (index=False)"
            )
        if names.count(name) > 1:
            raise DataError(
                f"the column {name} occurs {names.count(name)} times; each column needs a name "
                "of its own"
            )
    table.columns = pd.Index(names)
    for column in columns:
        if column not in table:
            raise DataError(
                f"the column {column} is missing; there are {', '.join(names) or 'none'}"
            )
    for name in set(_TEXT) & set(names):
        if table[name].dtype.kind in "OT":
            kind = pd.api.types.infer_dtype(table[name], skipna=True)
            if kind not in ("string", "empty", "categorical"):
                raise DataError(f"the column {name} holds {kind}; integers or text are allowed")
            stripped = table[name].str.strip()
            table[name] = stripped.mask(stripped == "")
    return table


def _read_csv(path: Path) -> tuple[list[str], pd.DataFrame]:
    with (gzip.open if path.suffix == ".gz" else open)(
        path, "rt", encoding="utf-8-sig", newline=""
    ) as stream:
        names = [name.strip() for name in next(csv.reader(stream), [])]
    if len(names) == 1:
        raise DataError(
            f"the first row is one cell, {one_line(names[0])[:80]!r}; it must name several "
            "columns, separated by commas, and decimals must follow a point"
        )
    read: Any = functools.partial(
        pd.read_csv,
        path,
        names=range(len(names)),
        skiprows=1,
        encoding="utf-8-sig",
        index_col=False,
        keep_default_na=False,  # so that NA may be the name of a class
        na_values=[""],
        low_memory=False,
        float_precision="round_trip",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        table = read(dtype={number: str for number, name in enumerate(names) if name in _TEXT})
        few = [
            number
            for number, column in table.items()
            if column.dtype.kind == "f"
            and ((column.round(3) == column) & (abs(column) < 1000)).all()
        ]
        for number, cells in read(usecols=few, dtype=str).items() if few else ():
            if _is_grouped(cells.str.strip()):
                warnings.warn(
                    f"{path}: the column {names[number]} has cells like 1.234 and whole numbers of "
                    "up to three digits; a point is read as that of decimals, not of thousands",
                    Notice,
                    stacklevel=2,
                )
    return names, table


def _is_grouped(cells: pd.Series) -> bool:
    """Whether a column mixes whole numbers below 1000 with cells that a point may part into groups
    of three digits, and has no other.
    """
    alike = cells.str.fullmatch(r"-?(\d{1,3}|[1-9]\d{0,2}\.\d{3})").all()
    return bool(alike) and cells.str.contains(".", regex=False).nunique() == 2


def _names(table: pd.DataFrame, name: str) -> pd.Series:
    """A column of integers or text as text."""
    column = table[name]
    if column.isna().any():
        raise DataError(
            f"{name} is missing in row {int(np.argmax(column.isna())) + 1}; every row needs one"
        )
    if column.dtype.kind in "fcmM":
        raise DataError(f"{name} has type {column.dtype}; integers or text are allowed")
    return column.astype(str)


def _numbered(cells: pd.Series) -> tuple[np.ndarray, int]:
    """The number of each cell's class, −1 for an empty one, and the number of classes."""
    there = cells.notna().to_numpy()
    numbers, found = pd.to_numeric(cells, errors="coerce"), np.full(len(cells), -1)
    if (numbers.isna().to_numpy() & there).any():
        names, found[there] = np.unique(cells[there].to_numpy(dtype=str), return_inverse=True)
        return found, len(names)
    found = class_numbers(numbers.to_numpy(np.float64, na_value=np.nan))
    return found, int(found.max(initial=-1)) + 1


def _features(table: pd.DataFrame) -> pd.DataFrame:
    for name, column in table.items():
        numbers = pd.to_numeric(column, errors="coerce")
        wrong = numbers.isna().to_numpy()
        if column.dtype.kind in "cmM" or wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"the column {name} has {one_line(str(column.iloc[row]))[:80]!r} in row {row + 1}; "
                "a feature is a number for every node, its decimals after a point"
            )
        table[name] = numbers
    return table
