"""Graphs of one's own: an archive of NumPy arrays, a ``Data`` of PyTorch Geometric, or a folder
with two tables.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from feddep.datasets import formats
from feddep.graph.graph import Graph, class_numbers
from feddep.graph.partition import Partition
from feddep.graph.partitioners import given_partition
from feddep.graph.split import PARTS, Split
from feddep.utils.errors import DataError, Notice, PartitionError, one_line, out_of_memory

REVISION = 2
"""Raised when the same files give another graph."""
ENDINGS = ("npz", "pt")
"""Endings of files that are read here."""
ADDED: dict[str, Callable[[Path], Graph]] = {}
"""Readers of plugins, by the ending of a file, without its dot."""
OWNERS = "client"
"""Name in files of the owner of each node."""
_ROWS = 10
"""A column of so many rows or more that counts them is no feature."""
_LFS = b"version https://git-lfs.github.com/"
"""How the text begins that stands for a file that Git LFS has not fetched."""


Contents = tuple[Graph, dict[str, np.ndarray]]
"""Content of files of one's own: the graph, in the order of its nodes there; and for each of
``train``, ``val`` and ``test`` that there is a bool a node, shape (n,), or several, shape (n, k).
"""
_Read = tuple[Graph, dict[str, np.ndarray], Sequence[str]]
"""The same, and names of the columns of features, where they have some."""


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
    """The graph in files of one's own, in the order of its nodes there; see
    ``docs/guide/own-data.md``.

    Args:
        path: a file ``.npz`` with the arrays of gnn-benchmark
            (:func:`feddep.datasets.formats.read_npz`), features also dense, as ``attr_matrix``; or
            a file ``.pt`` (:func:`feddep.datasets.pyg.load`); or a folder with ``nodes`` and
            ``edges``, each ``.csv``, ``.csv.gz`` or ``.parquet``, of columns ``id``, ``label`` and
            features, and of ``source`` and ``target``; or a file with an ending of :data:`ADDED`.

    Raises:
        DataError: if there is no such file or folder, or it holds no graph; it names the file and
            what is wrong with it.
    """
    graph, masks = _contents(path)
    counts = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.num_classes)
    bare, empty = graph.num_nodes - counts.sum(), np.flatnonzero(counts == 0)
    for said, what in (
        (
            bare,
            f"{bare} of {graph.num_nodes} nodes have no label; they are in the graph, and "
            "in no set of a split",
        ),
        (
            len(empty),
            f"{len(empty)} of {len(counts)} classes have no node, such as {empty[:1].sum()}; "
            "they count as classes",
        ),
        (
            masks,
            "it has masks of a split, which are read with split: masks, and not otherwise",
        ),
        (
            graph.client is not None,
            f"it has the owner of each node ({OWNERS}), used with partition: given alone",
        ),
    ):
        if said:
            warnings.warn(f"{one_line(str(path))}: {what}", Notice, stacklevel=2)
    return graph


def split_of(path: str | Path, seed: int = 0) -> Split:
    """The split that the files of a graph of one's own say.

    Args:
        path: as :func:`read` takes it.
        seed: of k masks a set, that of column ``seed`` modulo k.

    Raises:
        DataError: if there is no graph, or no split of it
            (:meth:`feddep.graph.split.Split.checked`).
    """
    graph, masks = _contents(path)
    if set(masks) != set(PARTS):
        there = ", ".join(masks) or "none"
        raise DataError(
            f"split is masks, but {one_line(str(path))} has {there}; train, val and test are needed"
        )
    with _naming(Path(path)):
        return Split.of_masks(masks, seed, graph)


def partition_of(path: str | Path) -> Partition:
    """The partition that the files of a graph of one's own say; ``path`` is as :func:`read` takes
    it.

    Raises:
        DataError: if there is no graph.
        PartitionError: if they do not say who owns which node.
    """
    graph, _ = _contents(path)
    with _naming(Path(path)):
        return given_partition(graph)


def _contents(path: str | Path) -> Contents:
    path = Path(path)
    files = _files(path)
    for file in files.values():
        with _naming(file):
            _check_fetched(file)
    with _naming(path):
        graph, masks, names = (
            _read_npz(path)
            if ".npz" in files
            else _read_pt(path)
            if ".pt" in files
            else _read_tables(*files.values())
            if path.is_dir()
            else (ADDED[path.suffix[1:]](path), {}, ())
        )
        _check_features(graph.features, names or range(graph.num_features))
        if graph.client is not None and len(graph.client) != graph.num_nodes:
            raise DataError(
                f"{OWNERS} is of {len(graph.client)} nodes; the graph has {graph.num_nodes}"
            )
        if not 2 <= graph.num_classes <= graph.num_nodes:
            allowed = "2 classes to as many as there are nodes, numbered from 0"
            raise DataError(
                f"there are {graph.num_classes} classes for {graph.num_nodes} nodes; allowed "
                f"are {allowed}"
            )
    return graph, masks


def _files(path: Path) -> dict[str, Path]:
    """The files at a path, by what they are."""
    with _naming(path):
        if path.is_dir():
            found = [
                path / f"{name}.{ending}"
                for name in ("edges", "nodes")
                for ending in ("csv", "csv.gz", "parquet")
            ]
            tables = {file.name: file for file in found if file.is_file()}
            if [name.partition(".")[0] for name in tables] != ["edges", "nodes"]:
                there = ", ".join(tables) or "none of them"
                raise DataError(
                    f"the folder has {there}; it must have nodes and edges, each as .csv, "
                    ".csv.gz or .parquet"
                )
            return tables
        endings = [f".{name}" for name in (*ENDINGS, *ADDED)]
        if path.suffix not in endings or not path.is_file():
            raise DataError(
                f"there is no such graph; allowed are a file that ends with {', '.join(endings)}, "
                "and a folder of tables"
            )
        return {path.suffix: path}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors, also in those that other packages raise, which may be any where it
    is damaged.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", Notice)
            yield
    except (DataError, PartitionError) as error:
        raise type(error)(f"{one_line(str(path))}: {one_line(str(error))}") from None
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")[:300]
        full, other = "needs more memory than there is", "is damaged or of another format"
        wrong = full if out_of_memory(error) else f"cannot be read, or {other}"
        raise DataError(f"{one_line(str(path))} {wrong} ({reason})") from None


def _check_fetched(file: Path) -> None:
    """Make sure that a file is more than what stands for it where Git LFS has not fetched it.

    Raises:
        DataError: if it is not.
    """
    with file.open("rb") as stream:
        if stream.read(len(_LFS)) == _LFS:
            raise DataError("it is a pointer of Git LFS, not the file; git lfs pull fetches that")


def _check_features(features: sp.csr_matrix, names: Sequence[object]) -> None:
    """Make sure that there are features, and none that numbers the nodes.

    Raises:
        DataError: if it is not so.
    """
    if features.shape[1] < 1:
        raise DataError("there are no features; a node needs at least one")
    head = features[:_ROWS].toarray()
    counts = (head == head[:1] + np.arange(len(head))[:, None]).all(axis=0)
    for column in np.flatnonzero(counts).tolist() if len(head) == _ROWS else ():
        from_0 = features[:, [column]].toarray().ravel() - np.arange(features.shape[0])
        if from_0[0] in (0, 1) and (from_0 == from_0[0]).all():
            raise DataError(
                f"the feature {names[column]} numbers the nodes, which is no feature; leave it "
                "out, or call it id in a table"
            )


def _read_pt(path: Path) -> _Read:
    from feddep.datasets import pyg  # takes seconds, with PyTorch, which keys need not wait for

    data = pyg.load(path)
    masks = {
        part: pyg.array(data, f"{part}_mask")
        for part in PARTS
        if data.get(f"{part}_mask") is not None
    }
    owners = None if data.get(OWNERS) is None else pyg.array(data, OWNERS)
    return _owned(pyg.from_data(data), owners), masks, ()


def _read_npz(path: Path) -> _Read:
    with np.load(path, allow_pickle=False) as archive:
        parts = ["adj"] if "attr_matrix" in archive else ["adj", "attr"]
        needed = ["labels", *(f"{part}_{each}" for part in parts for each in formats.CSR)]
        if missing := [name for name in needed if name not in archive]:
            there = ", ".join(archive.files) or "none"
            raise DataError(f"the array {missing[0]} is missing; there are {there}")
        adjacency, labels = formats.csr_of(archive, "adj"), class_numbers(archive["labels"])
        features = (
            archive["attr_matrix"] if "attr_matrix" in archive else formats.csr_of(archive, "attr")
        )
        masks = {part: archive[f"{part}_mask"] for part in PARTS if f"{part}_mask" in archive}
        owners = archive.get(OWNERS, None)
    nodes = features.shape[0]
    if labels.shape != (nodes,) or adjacency.shape != (nodes, nodes):
        found = (
            f"labels are of {len(labels)} nodes, and the adjacency matrix has shape "
            f"{adjacency.shape}"
        )
        raise DataError(f"{found}; there are features of {nodes} nodes")
    if (adjacency.data != 1).any():
        what = "adj_data has weights of edges, which are not read"
        warnings.warn(f"{one_line(str(path))}: {what}", Notice, stacklevel=2)
    graph = Graph.from_edges(
        np.column_stack(adjacency.nonzero()), features, labels, int(labels.max(initial=-1)) + 1
    )
    return _owned(graph, owners), masks, ()


def _read_tables(edges: Path, nodes: Path) -> _Read:
    # Which needs pandas: that takes as long as all else that planning imports.
    from feddep.datasets import (
        own_tables,
    )

    with _naming(Path(nodes.name)):
        ids, labels, classes, table, masks, owners = own_tables.read_nodes(nodes)
        features = table.to_numpy(np.float64)
    with _naming(Path(edges.name)):
        pairs = own_tables.read_edges(edges, ids)
    graph = Graph.from_edges(pairs, features, labels, classes, table.columns.tolist())
    return _owned(graph, owners), masks, table.columns.tolist()


def _owned(graph: Graph, owners: np.ndarray | None) -> Graph:
    return graph if owners is None else replace(graph, client=class_numbers(owners))
