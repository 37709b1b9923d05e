"""Three NumPy arrays: edges, features and labels, as :mod:`feddep.datasets.package_loaders` gives them."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError

_ROWS = 100_000
"""Rows of features that are made sparse at a time, as that takes several times their memory."""


def read(directory: Path, release: Release) -> Graph:
    """The graph in the order of the arrays' rows; ``release.files`` are edges, features and labels in this order."""
    try:
        edges, features, labels = (np.load(directory / name, mmap_mode="r", allow_pickle=False) for name in release.files)
        rows = [sp.csr_matrix(features[start : start + _ROWS]) for start in range(0, len(features), _ROWS)]
        return Graph.from_edges(edges, sp.vstack(rows, format="csr"), labels, int(labels.max()) + 1)
    except (ValueError, TypeError, EOFError) as error:
        raise DataError(f"{directory} holds no arrays of a graph ({error}); delete it and run the stage download again") from None
