"""The archives of gnn-benchmark: adjacency and features as the arrays of two CSR matrices, and a label for each node.

The public archives also hold pickled names of nodes, words and classes; these entries are never opened.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph


def read(directory: Path, release: Release) -> Graph:
    """The graph in the archive's own node order."""
    (name,) = release.files
    with np.load(directory / name, allow_pickle=False) as archive:
        adjacency, features = (
            sp.csr_matrix(tuple(archive[f"{part}_{array}"] for array in ("data", "indices", "indptr")), archive[f"{part}_shape"])
            for part in ("adj", "attr")
        )
        labels = archive["labels"]
    edges = np.column_stack(adjacency.nonzero())
    return Graph.from_edges(edges, features, labels, int(labels.max()) + 1)
