"""Graphs of one's own: an archive of NumPy arrays, a ``Data`` of PyTorch Geometric, or a folder with two tables."""

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from feddep.datasets import formats
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError, one_line

if TYPE_CHECKING:
    import pandas as pd

REVISION = 1
"""Raised when the same files give another graph."""

_TEXT = {"id": str, "label": str, "source": str, "target": str}
"""Columns of CSV that are text whatever they look like, so that 007 is not 7."""


def checksums(path: str | Path) -> dict[str, str]:
    """SHA-256 of each file at a path, by what the file is: the name of a table, else its ending.

    Raises:
        DataError: if there is no such file or folder, or it cannot be read.
    """
    found = {}
    for part, file in _files(Path(path)).items():
        with _naming(file), file.open("rb") as stream:
            found[part] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def read(path: str | Path) -> Graph:
    """The graph in files of one's own, in the order of its nodes there.

    Args:
        path: a file ``.npz`` with the arrays of gnn-benchmark (:func:`feddep.datasets.formats.read_npz`), features also dense, as
            ``attr_matrix``; or a file ``.pt`` (:func:`feddep.datasets.pyg.load`); or a folder with ``nodes`` and ``edges``, each
            ``.csv`` or ``.parquet``, of columns ``id``, ``label`` and features, and of ``source`` and ``target``.

    Raises:
        DataError: if there is no such file or folder, or it holds no graph; it names the file and what is wrong with it.
    """
    path = Path(path)
    files = _files(path)
    with _naming(path):
        graph = _read_npz(path) if ".npz" in files else _read_pt(path) if ".pt" in files else _read_tables(*files.values())
        if not np.isfinite(graph.features.data).all():
            raise DataError("a feature is not a finite number of single precision")
        if graph.num_features < 1:
            raise DataError("there are no features; a node needs at least one")
        if not 2 <= graph.num_classes <= graph.num_nodes:
            allowed = "2 classes to as many as there are nodes, numbered from 0"
            raise DataError(f"there are {graph.num_classes} classes for {graph.num_nodes} nodes; allowed are {allowed}")
    return graph


def _files(path: Path) -> dict[str, Path]:
    """The files at a path, by what they are."""
    with _naming(path):
        if path.is_dir():
            found = [path / f"{name}.{ending}" for name in ("edges", "nodes") for ending in ("csv", "parquet")]
            tables = {file.name: file for file in found if file.is_file()}
            if sorted(file.stem for file in tables.values()) != ["edges", "nodes"]:
                there = ", ".join(tables) or "none of them"
                raise DataError(f"the folder has {there}; it must have nodes and edges, each as .csv or as .parquet")
            return tables
        if path.suffix not in (".npz", ".pt") or not path.is_file():
            raise DataError("there is no such graph; allowed are a file that ends with .npz or .pt, and a folder of tables")
        return {path.suffix: path}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors, also in those that other packages raise, which may be any where it is damaged."""
    try:
        with np.errstate(over="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DataError as error:
        raise DataError(f"{one_line(str(path))}: {one_line(str(error))}") from None
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")[:300]
        raise DataError(f"{one_line(str(path))} cannot be read, or is damaged or of another format ({reason})") from None


def _read_pt(path: Path) -> Graph:
    from feddep.datasets import pyg  # takes seconds, with PyTorch, which keys need not wait for

    return pyg.load(path)


def _read_npz(path: Path) -> Graph:
    with np.load(path, allow_pickle=False) as archive:
        adjacency, labels = formats.csr_of(archive, "adj"), archive["labels"]
        dense = "attr_matrix" in archive
        features = sp.csr_matrix(archive["attr_matrix"]) if dense else formats.csr_of(archive, "attr")
    nodes = features.shape[0]
    if labels.dtype.kind not in "iu" or labels.shape != (nodes,) or adjacency.shape != (nodes, nodes):
        found = f"labels are {labels.dtype} of shape {labels.shape}, and the adjacency matrix has shape {adjacency.shape}"
        raise DataError(f"{found}; with features of {nodes} nodes they must be integers ({nodes},), and ({nodes}, {nodes})")
    return Graph.from_edges(np.column_stack(adjacency.nonzero()), features, labels, int(labels.max(initial=-1)) + 1)


def _read_tables(edges: Path, nodes: Path) -> Graph:
    """Labels that are integers are the numbers of classes, others are names, numbered in alphabetical order."""
    import pandas as pd  # takes as long as all else that planning imports

    with _naming(Path(nodes.name)):
        table = _table(nodes, "id", "label")
        ids, (labels, classes) = pd.Index(_text(table, "id")), _classes(_text(table, "label"))
        if ids.has_duplicates:
            raise DataError(f"the id {ids[ids.duplicated()][0]} occurs twice; each node has an id of its own")
        features = table.drop(columns=["id", "label"])
        for name, column in features.items():
            if column.dtype.kind not in "biuf" or column.isna().any():
                raise DataError(
                    f"the column {name} has type {column.dtype} or misses values; a feature is a number for every node"
                )
    with _naming(Path(edges.name)):
        table = _table(edges, "source", "target")
        if len(table.columns) > 2:
            raise DataError(
                f"the columns are {', '.join(map(str, table))}; allowed are source and target, as edges have no weights"
            )
        ends = [_text(table, name) for name in ("source", "target")]
        pairs = np.column_stack([ids.get_indexer(pd.Index(end)) for end in ends])
        unknown = [end[found < 0].iloc[0] for end, found in zip(ends, pairs.T, strict=True) if (found < 0).any()]
        if unknown:
            raise DataError(f"an edge names {unknown[0]}, which is the id of no node")
    return Graph.from_edges(pairs, features.to_numpy(np.float32), labels, classes)


def _table(path: Path, *columns: str) -> "pd.DataFrame":
    import pandas as pd

    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows that are longer than the header
            table = pd.read_csv(path, encoding="utf-8-sig", index_col=False, dtype=_TEXT, low_memory=False)
    for column in columns:
        if column not in table:
            raise DataError(f"the column {column} is missing; there are {', '.join(map(str, table)) or 'none'}")
    return table


def _text(table: "pd.DataFrame", name: str) -> "pd.Series":
    """A column of integers or text as text."""
    column = table[name]
    if column.isna().any():
        raise DataError(f"{name} is missing in row {int(np.argmax(column.isna())) + 1}; every row needs one")
    if column.dtype.kind in "fcmM":
        raise DataError(f"{name} has type {column.dtype}; integers or text are allowed")
    return column.astype(str)


def _classes(labels: "pd.Series") -> tuple[np.ndarray, int]:
    """The number of each label's class, and the number of classes."""
    import pandas as pd

    numbers = pd.to_numeric(labels, errors="coerce")
    if numbers.isna().any():
        names, found = np.unique(labels.to_numpy(dtype=object), return_inverse=True)
        return found.astype(np.int64), len(names)
    if len(wrong := labels[~labels.str.fullmatch(r"[+-]?[0-9]{1,9}")]):
        raise DataError(f"a label is {wrong.iloc[0]}; the number of a class is an integer from 0, its name no number")
    return numbers.to_numpy(np.int64), int(numbers.max()) + 1 if len(numbers) else 0
