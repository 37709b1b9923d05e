"""Scaling of sparse features against the same formula on dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from feddep.graph.scaling import scale
from feddep.utils.errors import DataError

FINITE = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
COUNTS = st.one_of(st.just(np.float32(0)), st.floats(0, 1e6, width=32, allow_subnormal=False))


def matrices(values):
    """Dense matrices, empty ones too; whole columns are dense often enough to matter."""
    return hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
        elements=values,
    )


def dense_minmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    if not x.size:
        return x
    low, high = x.min(axis=0), x.max(axis=0)
    return (x - low) / np.where(high > low, high - low, 1)


def dense_row(x: np.ndarray) -> np.ndarray:
    sums = x.astype(np.float64).sum(axis=1, keepdims=True)
    return x / np.where(sums > 0, sums, 1)


@pytest.mark.parametrize(("how", "dense"), [("row", dense_row), ("minmax", dense_minmax)])
@given(x=matrices(COUNTS))
def test_against_dense(how, dense, x):
    scaled = scale(sp.csr_matrix(x), how)
    assert scaled.dtype == np.float32
    assert scaled.has_canonical_format
    assert (scaled.data != 0).all()
    np.testing.assert_allclose(scaled.toarray(), dense(x), rtol=1e-6, atol=1e-30)


@given(matrices(FINITE))
def test_minmax_is_exact_or_refuses(x):
    """With negative values: either the dense result, or an error just where a zero would not stay
    zero.
    """
    fills_in = bool(((x == 0) & (dense_minmax(x) != 0)).any())
    if fills_in:
        with pytest.raises(DataError):
            scale(sp.csr_matrix(x), "minmax")
    else:
        np.testing.assert_allclose(
            scale(sp.csr_matrix(x), "minmax").toarray(), dense_minmax(x), rtol=1e-6, atol=1e-30
        )


def test_row_sums_are_wider_than_features():
    x = sp.csr_matrix(np.full((1, 4), 3e38, dtype=np.float32))  # the sum is beyond float32
    np.testing.assert_array_equal(scale(x, "row").toarray(), [[0.25] * 4])


@pytest.mark.parametrize("how", ["raw", "row", "minmax"])
def test_input_is_left_as_it_is(how):
    dense = np.array([[2, 0, 1], [3, 5, 0], [4, 0, 0]], dtype=np.float32)
    x = sp.csr_matrix(dense)
    assert (scale(x, how) is x) == (how == "raw")
    np.testing.assert_array_equal(x.toarray(), dense)
    assert x.nnz == 5


def test_what_cannot_be_scaled():
    with pytest.raises(DataError):
        scale(sp.csr_matrix(np.array([[1, -0.5]], dtype=np.float32)), "row")
