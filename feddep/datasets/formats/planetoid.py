"""The Planetoid files ``ind.NAME.*``: pickles of sparse features, one-hot labels and neighbour lists.

Nodes 0 … len(allx) − 1 have their features in ``allx`` and labels in ``ally``; line k of ``test.index`` is the node to which
row k of ``tx`` and ``ty`` belongs.  In CiteSeer 15 nodes of the test range are listed in no file; as is usual, they are kept
as nodes without features, without neighbours and with class 0, the argmax of an empty row.
"""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError


def read(directory: Path, release: Release) -> Graph:
    """The graph in the files' own node order; the files must be verified before."""
    paths = {name.split(".", 2)[2]: directory / name for name in release.files}
    allx, tx = (_unpickle(paths[part]).matrix() for part in ("allx", "tx"))
    one_hot = np.concatenate([_unpickle(paths[part]) for part in ("ally", "ty")])
    neighbours = _unpickle(paths["graph"])
    nodes = np.concatenate([np.arange(allx.shape[0]), np.loadtxt(paths["test.index"], dtype=np.int64)])
    num_nodes = int(nodes.max()) + 1

    rows = sp.vstack([allx, tx]).tocoo()
    features = sp.csr_matrix((rows.data, (nodes[rows.row], rows.col)), shape=(num_nodes, rows.shape[1]))
    labels = np.zeros(num_nodes, dtype=np.int64)
    labels[nodes] = one_hot.argmax(axis=1)
    edges = np.array([(node, other) for node, others in neighbours.items() for other in others])
    return Graph.from_edges(edges, features, labels, one_hot.shape[1])


class _PickledCsr:
    """Stands for the sparse matrix class of an old SciPy, whose module no longer exists."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    _shape: tuple[int, int]

    def matrix(self) -> sp.csr_matrix:
        return sp.csr_matrix((self.data, self.indices, self.indptr), shape=self._shape)


_KNOWN_CLASSES: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): _PickledCsr,
}


class _Unpickler(pickle.Unpickler):
    """Loads only the classes that the files hold, so that a pickle cannot run other code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN_CLASSES:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _KNOWN_CLASSES[module, name]


def _unpickle(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            return _Unpickler(stream, encoding="latin1").load()
    except pickle.UnpicklingError as error:
        raise DataError(f"{path} is not a pickle of plain arrays and lists ({error})") from None
