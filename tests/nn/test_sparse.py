import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.nn.sparse import SparseMatrix
from feddep.utils.errors import DataError


@given(
    st.integers(0, 8), st.integers(0, 8), st.integers(1, 5), st.floats(0, 1), st.integers(0, 2**16)
)
def test_product_and_gradient_are_those_of_the_dense_matrix(rows, columns, width, density, seed):
    rng = np.random.default_rng(seed)
    matrix = sp.random(rows, columns, density, "csr", dtype=np.float32, random_state=rng)
    dense = torch.from_numpy(matrix.toarray())
    w, upstream = torch.randn(columns, width), torch.randn(rows, width)
    ours, theirs = w.clone().requires_grad_(), w.clone().requires_grad_()

    product = SparseMatrix.from_scipy(matrix) @ ours
    product.backward(upstream)
    (dense @ theirs).backward(upstream)

    torch.testing.assert_close(product, dense @ theirs)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_columns_that_repeat_within_a_row_add_up():
    indptr, indices = np.array([0, 3], dtype=np.int32), np.array([1, 0, 1], dtype=np.int32)
    matrix = SparseMatrix(indptr, indices, np.array([1, 10, 100], dtype=np.float32), (1, 2))
    w = torch.tensor([[1.0], [2.0]], requires_grad=True)
    product = matrix @ w
    product.backward()
    assert product.item() == 10 * 1 + 101 * 2
    assert w.grad.flatten().tolist() == [10, 101]


def test_the_product_with_a_transpose_is_embedding_bags_to_the_last_bit():
    rng = np.random.default_rng(0)
    found = sp.random(50, 40, 0.3, "csr", dtype=np.float32, random_state=rng)
    w = torch.randn(16, 40).T
    arrays = (torch.from_numpy(each) for each in (found.indices, found.indptr[:-1], found.data))
    indices, offsets, values = arrays
    theirs = torch.embedding_bag(w, indices, offsets, mode=0, per_sample_weights=values)[0]
    product = SparseMatrix.from_scipy(found) @ w.requires_grad_()
    assert torch.equal(product, theirs)
    assert torch.equal(
        torch.autograd.grad(product.sum(), w)[0].sum(dim=1) > 0,
        torch.from_numpy(np.bincount(found.indices, minlength=40) > 0),
    )


def test_entries_that_int32_cannot_number_are_refused():
    matrix = sp.csr_matrix((1, 1), dtype=np.float32)
    matrix.indptr = np.array([0, 2**31])
    with pytest.raises(DataError, match="2147483648 entries"):
        SparseMatrix.from_scipy(matrix)


def test_transpose():
    matrix = sp.random(4, 7, 0.5, "csr", dtype=np.float32, random_state=np.random.default_rng(0))
    transpose = SparseMatrix.from_scipy(matrix).transpose()
    assert transpose.shape == (7, 4)
    torch.testing.assert_close(transpose @ torch.eye(4), torch.from_numpy(matrix.toarray().T))


def test_a_symmetric_matrix_is_its_own_transpose():
    half = sp.random(9, 9, 0.3, "csr", dtype=np.float32, random_state=np.random.default_rng(0))
    matrix = sp.csr_matrix(half + half.T)
    plain = SparseMatrix.from_scipy(matrix)
    symmetric = SparseMatrix(
        matrix.indptr, matrix.indices, matrix.data, matrix.shape, symmetric=True
    )
    w = torch.randn(9, 4)
    assert torch.equal(symmetric.multiply_transposed(w), plain.multiply_transposed(w))
