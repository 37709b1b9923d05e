"""Operations counted by the rule, against counts by hand."""

import pytest
import scipy.sparse as sp
import torch
from torch.nn.functional import smooth_l1_loss

from feddep.nn.sparse import SparseMatrix
from studies.overhead.flops import FlopCounter

A, B = torch.rand(3, 4), torch.rand(4, 5)
V = torch.rand(3, 4)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda: A @ B, 2 * 3 * 4 * 5),
        (lambda: torch.addmm(torch.rand(5), A, B), 2 * 3 * 4 * 5 + 3 * 5),
        (lambda: A + V, 12),
        (lambda: A + torch.rand(4), 12),  # one for each element of the result
        (lambda: (A * V).relu().square(), 36),
        (lambda: A < V, 12),
        (lambda: A.sum(), 12),
        (lambda: A.argmin(dim=1), 12),
        (lambda: smooth_l1_loss(A, V), 12),
        (lambda: torch.cat([A, V]).t().reshape(-1)[2:].clone(), 0),
        (lambda: A[torch.tensor([0, 2])], 0),
        (lambda: torch.arange(5) * 3 + 1, 0),
        (lambda: (torch.arange(5) < 3).sum(), 0),
        (lambda: torch.rand(7), 0),
        (lambda: SparseMatrix.from_scipy(sp.csr_matrix([[1, 0, 2], [0, 0, 0], [0, 3, 0]])) @ A, 2 * 3 * 4),
    ],
)
def test_each_kind_of_operation_costs_what_the_rule_says(operation, expected):
    with FlopCounter() as counter:
        operation()
    assert counter.total == expected


def test_the_backward_pass_counts():
    weight = torch.rand(4, 5, requires_grad=True)
    with FlopCounter() as counter:
        (A @ weight).sum().backward()
    assert counter.total == 2 * 3 * 4 * 5 + 3 * 5 + 2 * 4 * 3 * 5  # product, sum, Aᵀ G


@pytest.mark.parametrize(("name", "cost"), [("SGD", 2), ("Adam", 12)])
def test_a_step_of_an_optimiser(name, cost):
    weight = torch.rand(4, 5, requires_grad=True)
    optimizer = getattr(torch.optim, name)([weight], lr=0.1, fused=True)
    weight.grad = torch.rand(4, 5)
    with FlopCounter() as counter:
        optimizer.step()
    assert counter.total in (cost * 20, cost * 20 + 1)  # Adam counts its steps in floating point
