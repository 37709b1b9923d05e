"""Graphs of one's own: an archive of NumPy arrays, a ``Data`` of PyTorch Geometric, or a folder
with two tables.
"""

import hashlib
import math
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from feddep.datasets import formats
from feddep.graph.graph import Graph, class_numbers
from feddep.graph.partition import Partition
from feddep.graph.partitioners import given_partition
from feddep.graph.split import PARTS, Split
from feddep.utils.errors import DataError, Notice, PartitionError, one_line

REVISION = 2
"""Raised when the same files give another graph."""
OWNERS = "client"
"""Name in files of the owner of each node."""
_LFS = b"version https://git-lfs.github.com/"
"""How the text begins that stands for a file that Git LFS has not fetched."""


@dataclass(frozen=True, eq=False)
class Contents:
    """Content of files of one's own.

    Attributes:
        graph: the graph, in the order of its nodes there.
        masks: for each of ``train``, ``val`` and ``test`` that there is a bool a node, shape (n,),
            or several, shape (n, k).
    """

    graph: Graph
    masks: Mapping[str, np.ndarray] = field(default_factory=dict)


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
            features, and of ``source`` and ``target``.

    Raises:
        DataError: if there is no such file or folder, or it holds no graph; it names the file and
            what is wrong with it.
    """
    found = _contents(path)
    counts = np.bincount(
        found.graph.labels[found.graph.labels >= 0], minlength=found.graph.num_classes
    )
    bare, empty = found.graph.num_nodes - counts.sum(), np.flatnonzero(counts == 0)
    for said, what in (
        (
            bare,
            f"{bare} of {found.graph.num_nodes} nodes have no label; they are in the graph, and "
            "in no set of a split",
        ),
        (
            len(empty),
            f"{len(empty)} of {len(counts)} classes have no node, such as {empty[:1].sum()}; "
            "they count as classes",
        ),
        (
            found.masks,
            "it has masks of a split, which are read with split: masks, and not otherwise",
        ),
        (
            found.graph.client is not None,
            f"it has the owner of each node ({OWNERS}), used with partition: given alone",
        ),
    ):
        if said:
            warnings.warn(f"{one_line(str(path))}: {what}", Notice, stacklevel=2)
    return found.graph


def split_of(path: str | Path, seed: int = 0) -> Split:
    """The split that the files of a graph of one's own say.

    Args:
        path: as :func:`read` takes it.
        seed: of k masks a set, that of column ``seed`` modulo k.

    Raises:
        DataError: if there is no graph, or no split of it
            (:meth:`feddep.graph.split.Split.checked`).
    """
    found = _contents(path)
    if set(found.masks) != set(PARTS):
        there = ", ".join(found.masks) or "none"
        raise DataError(
            f"split is masks, but {one_line(str(path))} has {there}; train, val and test are needed"
        )
    with _naming(Path(path)):
        return Split.of_masks(found.masks, seed, found.graph)


def partition_of(path: str | Path) -> Partition:
    """The partition that the files of a graph of one's own say; ``path`` is as :func:`read` takes
    it.

    Raises:
        DataError: if there is no graph.
        PartitionError: if they do not say who owns which node.
    """
    with _naming(Path(path)):
        return given_partition(_contents(path).graph)


def _contents(path: str | Path) -> Contents:
    path = Path(path)
    files = _files(path)
    with _naming(path):
        found = (
            _read_npz(path)
            if ".npz" in files
            else _read_pt(path)
            if ".pt" in files
            else _read_tables(*files.values())
        )
        graph = found.graph
        if not np.isfinite(graph.features.data).all():
            raise DataError("a feature is not a finite number of single precision")
        if graph.num_features < 1:
            raise DataError("there are no features; a node needs at least one")
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
    return found


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
        if path.suffix not in (".npz", ".pt") or not path.is_file():
            raise DataError(
                "there is no such graph; allowed are a file that ends with .npz or .pt, and a "
                "folder of tables"
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
        raise DataError(
            f"{one_line(str(path))} cannot be read, or is damaged or of another format ({reason})"
        ) from None


def _check_size(file: Path) -> None:
    """Make sure, before a file is read, that it is one, and that what it holds fits into memory.

    Raises:
        DataError: if it is not so.
    """
    with file.open("rb") as stream:
        if stream.read(len(_LFS)) == _LFS:
            raise DataError("it is a pointer of Git LFS, not the file; git lfs pull fetches that")
    size = file.stat().st_size
    if file.suffix in (".npz", ".pt"):
        if not zipfile.is_zipfile(file):
            raise DataError(
                "it is no archive, or not a whole one; np.savez and torch.save write archives"
            )
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            for member in members if file.suffix == ".npz" else ():
                with archive.open(member) as stream:
                    version = np.lib.format.read_magic(stream)
                    header = (
                        np.lib.format.read_array_header_1_0
                        if version == (1, 0)
                        else np.lib.format.read_array_header_2_0
                    )
                    shape, _, dtype = header(stream)
                    promised = stream.tell() + math.prod(shape) * dtype.itemsize
                if promised != member.file_size and not dtype.hasobject:
                    raise DataError(
                        f"{member.filename} is {shape}, {promised} bytes, but holds "
                        f"{member.file_size}"
                    )
    elif file.suffix == ".parquet":
        from pyarrow import parquet

        there = parquet.read_metadata(file)
        size = max(size, 4 * there.num_rows * there.num_columns)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        raise DataError(
            f"it holds {size / 2**30:.3g} GiB; this machine has {memory / 2**30:.3g} GiB of memory"
        )


def _read_pt(path: Path) -> Contents:
    from feddep.datasets import pyg  # takes seconds, with PyTorch, which keys need not wait for

    _check_size(path)
    data = pyg.load(path)
    masks = {
        part: pyg.array(data, f"{part}_mask")
        for part in PARTS
        if data.get(f"{part}_mask") is not None
    }
    return Contents(
        _owned(pyg.from_data(data), None if data.get(OWNERS) is None else pyg.array(data, OWNERS)),
        masks,
    )


def _read_npz(path: Path) -> Contents:
    _check_size(path)
    with np.load(path, allow_pickle=False) as archive:
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
    graph = Graph.from_edges(
        np.column_stack(adjacency.nonzero()), features, labels, int(labels.max(initial=-1)) + 1
    )
    return Contents(_owned(graph, owners), masks)


def _read_tables(edges: Path, nodes: Path) -> Contents:
    # Which needs pandas: that takes as long as all else that planning imports.
    from feddep.datasets import (
        own_tables,
    )

    with _naming(Path(nodes.name)):
        _check_size(nodes)
        ids, labels, classes, features, masks, owners = own_tables.read_nodes(nodes)
    with _naming(Path(edges.name)):
        _check_size(edges)
        pairs = own_tables.read_edges(edges, ids)
    return Contents(
        _owned(Graph.from_edges(pairs, sp.csr_matrix(features), labels, classes), owners), masks
    )


def _owned(graph: Graph, owners: np.ndarray | None) -> Graph:
    return graph if owners is None else replace(graph, client=class_numbers(owners))
