"""The archives of gnn-benchmark: adjacency and features as the arrays of two CSR matrices, and a label for each node.

The public archives also hold pickled names of nodes, words and classes; these entries are never opened.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError


def read(directory: Path, release: Release) -> Graph:
    """The graph in the archive's own node order."""
    (name,) = release.files
    return Graph.from_edges(*read_parts(directory / name))


def read_parts(path: Path) -> tuple[np.ndarray, sp.csr_matrix, np.ndarray, int]:
    """What an archive holds, which need not be trusted: no array of Python objects is read.

    Returns:
        Node pairs, shape (m, 2); features, which may also be dense there, as ``attr_matrix``, shape (n, F); labels, shape (n,);
        the number of classes, which is the largest label and 1.

    Raises:
        DataError: if an array is missing, or of another type or shape.
        Exception: of what is no archive, whatever NumPy raises.
    """
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        adjacency = _matrix(archive, "adj")
        labels = _array(archive, "labels", "iu", 1)
        dense = "attr_matrix" in archive
        features = sp.csr_matrix(_array(archive, "attr_matrix", "biuf", 2)) if dense else _matrix(archive, "attr")
    nodes = features.shape[0]
    if labels.shape != (nodes,) or adjacency.shape != (nodes, nodes):
        sizes = f"the shape of labels is {labels.shape} and of the adjacency matrix {adjacency.shape}"
        raise DataError(f"{sizes}, where {nodes} nodes have features; it must be ({nodes},) and ({nodes}, {nodes})")
    return np.column_stack(adjacency.nonzero()), features, labels, int(labels.max(initial=-1)) + 1


def _matrix(archive: np.lib.npyio.NpzFile, part: str) -> sp.csr_matrix:
    data, indices, indptr = (
        _array(archive, f"{part}_{name}", kinds, 1) for name, kinds in (("data", "biuf"), ("indices", "iu"), ("indptr", "iu"))
    )
    shape = tuple(_array(archive, f"{part}_shape", "iu", 1).tolist())
    try:
        matrix = sp.csr_matrix((data, indices, indptr), shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{part}_data, {part}_indices, {part}_indptr and {part}_shape are no CSR matrix ({error})") from None
    return matrix


def _array(archive: np.lib.npyio.NpzFile, name: str, kinds: str, axes: int) -> np.ndarray:
    """An array of numbers whose type is of one of these kinds, such as ``iu`` for integers."""
    if name not in archive:
        raise DataError(f"{name} is missing; there are {', '.join(archive)}")
    try:
        array = archive[name]
    except ValueError as error:  # Python objects, or no array
        raise DataError(f"{name} is no array of numbers ({error})") from None
    if array.dtype.kind not in kinds or array.ndim != axes:
        allowed = f"{'integers' if kinds == 'iu' else 'numbers'} in {axes} {'dimension' if axes == 1 else 'dimensions'}"
        raise DataError(f"{name} has type {array.dtype} and shape {array.shape}; it must be {allowed}")
    return array
