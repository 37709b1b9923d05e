"""Scaling of node features, without filling in the zeros that are not stored."""

import numpy as np
import scipy.sparse as sp

from feddep.utils.errors import DataError

REVISION = 1
"""Raised when the same scaling gives other features."""


def scale(features: sp.csr_matrix, how: str) -> sp.csr_matrix:
    """Scale node features, CSR of shape (n, F), in double precision; returns float32 without stored
    zeros, and leaves ``features`` as it is.

    * ``raw``: x, the very matrix that was given where it is float32;
    * ``row``: x / Σ x over the node's row, so that each row sums to 1; an empty row stays empty;
    * ``minmax``: (x − min) / (max − min) over the column, so that each column spans [0, 1]; a
        constant column becomes 0.

    Raises:
        DataError: if ``row`` meets a negative value, or ``minmax`` meets a column with both zeros
            and negative values.
    """
    if how == "raw":
        return features.astype(np.float32, copy=False)
    scaled = _row(features) if how == "row" else _minmax(features)
    result = sp.csr_matrix(
        (scaled.astype(np.float32), features.indices, features.indptr),
        shape=features.shape,
        copy=True,
    )
    result.eliminate_zeros()
    return result


def _row(features: sp.csr_matrix) -> np.ndarray:
    """The stored values, each divided by the sum of its row."""
    if features.nnz and features.data.min() < 0:
        raise DataError(
            "features: row needs values of at least 0, but the smallest is "
            f"{features.data.min():g}; use raw or minmax"
        )
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    # bincount adds in float64.
    return features.data / np.bincount(rows, weights=features.data)[rows]


def _minmax(features: sp.csr_matrix) -> np.ndarray:
    """The stored values, each mapped from [min, max] of its column to [0, 1].

    What is not stored is 0 and must map to 0.  It does where the minimum is 0, which covers every
    column of counts or TF-IDF weights, and a column whose minimum is above 0 stores all its values.
    """
    if not features.nnz:
        return features.data.astype(np.float64)
    low = features.min(axis=0).toarray().ravel().astype(np.float64)
    high = features.max(axis=0).toarray().ravel().astype(np.float64)
    stored = np.bincount(features.indices, minlength=features.shape[1])
    filled_in = np.flatnonzero((low < 0) & (stored < features.shape[0]))
    if len(filled_in):
        column = filled_in[0]
        raise DataError(
            f"features: minmax would replace the zeros of column {column}, whose minimum is "
            f"{low[column]:g}, "
            "and the features would no longer be sparse; use raw"
        )
    span = np.where(high > low, high - low, 1.0)
    return (features.data - low[features.indices]) / span[features.indices]
