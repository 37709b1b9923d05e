"""Graphs of one's own: an archive of NumPy arrays, a ``Data`` of PyTorch Geometric, or a folder with tables of nodes and edges.

The files need not be trusted: nothing that they hold is executed.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pooch

from feddep.datasets.formats import npz
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError, one_line

REVISION = 1
"""Raised when the same files give another graph."""
_TABLES = (".csv", ".parquet")
_SHOWN = 300
"""Most characters of what another package says about a file."""


def checksums(path: str | Path) -> dict[str, str]:
    """SHA-256 of each file at a path, by what the file is: the name of a table, else its ending.

    Raises:
        DataError: if there is no such file or folder, or it cannot be read.
    """
    return {part: pooch.file_hash(str(file)) for part, file in _files(Path(path)).items()}


def read(path: str | Path) -> Graph:
    """The graph in files of one's own, in the order of its nodes there.

    Args:
        path: a file that ends with ``.npz`` (:mod:`feddep.datasets.formats.npz`) or ``.pt`` (:func:`feddep.datasets.pyg.load`),
            or a folder with ``nodes`` and ``edges``, each ``.csv`` or ``.parquet`` (:mod:`feddep.datasets.formats.node_table`).

    Raises:
        DataError: if there is no such file or folder, or it holds no graph; it names the file and what is wrong with it.
    """
    path = Path(path)
    files = _files(path)
    if ".npz" in files:
        with _naming(path):
            return _checked(Graph.from_edges(*npz.read_parts(path)))
    if ".pt" in files:
        from feddep.datasets import pyg  # takes seconds, with PyTorch, which keys need not wait for

        with _naming(path):
            return _checked(pyg.load(path))
    from feddep.datasets.formats import node_table  # likewise, with pandas

    nodes, edges = (next(file for part, file in files.items() if part.startswith(name)) for name in ("nodes", "edges"))
    with _naming(nodes):
        ids, features, labels, classes = node_table.read_nodes(nodes)
    with _naming(edges):
        pairs = node_table.read_edges(edges, ids)
    with _naming(nodes):
        return _checked(Graph.from_edges(pairs, features, labels, classes))


def _files(path: Path) -> dict[str, Path]:
    """The files at a path, by what they are."""
    with _naming(path):
        if path.is_dir():
            tables = (_table(path, name) for name in ("edges", "nodes"))
            return {table.name: table for table in tables}
        if not path.exists():
            raise DataError("there is no such file or folder; a relative path begins at the working folder")
        if not path.is_file() or path.suffix not in (".npz", ".pt"):
            raise DataError("this is no graph; allowed are a file that ends with .npz or .pt, and a folder of tables")
        with path.open("rb"):
            return {path.suffix: path}


def _table(folder: Path, name: str) -> Path:
    found = [folder / f"{name}{ending}" for ending in _TABLES if (folder / f"{name}{ending}").is_file()]
    if len(found) != 1:
        number = "both" if found else "neither"
        raise DataError(f"the folder has {number} of {name}.csv and {name}.parquet; it must have one of them")
    with found[0].open("rb"):
        return found[0]


def _checked(graph: Graph) -> Graph:
    """A graph that methods can be trained on."""
    if not np.isfinite(graph.features.data).all():
        raise DataError("a feature is not a finite number of single precision")
    if graph.num_features < 1:
        raise DataError("there are no features; a node needs at least one")
    if not 2 <= graph.num_classes <= graph.num_nodes:
        raise DataError(
            f"there are {graph.num_classes} classes for {graph.num_nodes} nodes; allowed are 2 classes to as many as there are "
            "nodes, numbered from 0"
        )
    return graph


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors, also in those that other packages raise, which may be any where it is damaged or hostile."""
    try:
        with np.errstate(over="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DataError as error:
        raise DataError(f"{one_line(str(path))}: {one_line(str(error))}") from None
    except OSError as error:
        raise DataError(f"{one_line(str(path))} cannot be read: {one_line(error.strerror or str(error))}") from None
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")[:_SHOWN]
        raise DataError(f"{one_line(str(path))} is damaged or of another format ({reason})") from None
