"""Table 1 measured: operations against counts by hand, bytes against communications, formulas by
hand.
"""

from functools import cache
from typing import Any

import pytest
import scipy.sparse as sp
import torch
from small import DGEN, NEIGHGEN, case_of, page, small_task
from torch.nn.functional import smooth_l1_loss

from feddep.methods.feddep import GeneratorParameters, mending
from feddep.methods.feddep.generation import nearest_in
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import Task
from studies.feddep.overhead.flops import FlopCounter
from studies.feddep.overhead.measure import SCHEMES
from studies.feddep.overhead.work import Counted, operations_of_distances
from studies.measuring import tables_of

Rows = list[dict[str, Any]]


@cache
def measured(name: str, clients: int = 3) -> tuple[Task, Rows]:
    """A task with the results of all steps, and what is measured on it."""
    parameters = NEIGHGEN if name == "fedsage_plus" else DGEN
    case = case_of(name, small_task(clients, nodes=120, delta=5), **parameters)
    return case.task, tables_of("overhead", case)["overhead"]


def number(rows: Rows, quantity: str, column: str = "measured") -> float:
    return next(row for row in rows if (row["quantity"], row["client"]) == (quantity, "all"))[
        column
    ]


def test_a_search_costs_what_counting_by_hand_gives():
    g, d = 3, 4
    others = [torch.rand(k, d) for k in (5, 7)]
    chosen = torch.tensor([[True, False], [True, True], [False, False]])
    points = torch.rand(g, d)
    search = Counted(nearest_in(others))
    for found, expected in zip(
        search(points, chosen), nearest_in(others)(points, chosen), strict=True
    ):
        assert torch.equal(found[:], expected[:])
    # Of each candidate the squares, and their sum; with each point the inner product, doubled,
    # taken from the squares, the least.
    assert search.operations == [sum(k * d + k * d + 2 * g * d * k + g * k * 3 for k in (5, 7))]
    assert search.calls == [(points, chosen)]


@pytest.mark.parametrize("others", [1, 2, 4])
def test_distances_cost_what_counting_by_hand_gives(others):
    n, slots, d = 3, 2, 4
    points, chosen = torch.rand(n * slots, d), torch.ones(n, slots, dtype=torch.bool)
    each, slot = n * slots * d, n * slots
    # Differences, squares, their sums over coordinates; those that count, their sum; divided by n,
    # weighted, added to the loss.
    forward = each + each + each + slot + slot + 3
    # Weight and n, those that count; of a square the power, twice it, times the gradient.
    backward = 2 + slot + 3 * each
    # Gradients of the same embeddings are added up.
    total = others * (forward + backward) + (others - 1) * each
    found = list(torch.rand(others, n * slots, d))
    assert (
        operations_of_distances(points, chosen, found, GeneratorParameters(scale="paper")) == total
    )


@pytest.mark.parametrize(
    ("name", "where"),
    [("feddep", mending), ("feddep_wo_proto", mending), ("fedsage_plus", NeighGenTrainer)],
)
def test_what_is_counted_is_the_training_that_the_step_does(name, where, monkeypatch):
    """The generators whose training is counted end with the very weights of the step's: they
    generate the same.
    """
    done: list[list[torch.Tensor]] = []
    mend = where.mend

    def recording(*args: Any) -> Any:
        result = mend(*args)
        done.append(list(result.values() if isinstance(result, dict) else result))
        return result

    monkeypatch.setattr(where, "mend", recording)
    measured.__wrapped__(name)
    assert len(done) == 2 * 3
    torch.testing.assert_close(done[:3], done[3:], rtol=0, atol=0)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("clients", [1, 3])
def test_bytes_are_those_of_the_communication_logs_and_our_formulas_give_them_exactly(
    name, clients
):
    task, lines = measured(name, clients)
    stages = [stage for stage in ("prototypes", "generator") if stage in task.step_results]
    sent = sum(row["bytes"] for stage in stages for row in task.step_results[stage].communication)
    total, epoch = number(lines, "bytes_total"), number(lines, "bytes_epoch")
    # What an update generates for is the nodes that are not hidden, or a batch of them.
    sizes = [len(task.partition.nodes(i)) for i in range(clients)]
    nodes = sum(16 if name == "fedsage_plus" else size - round(0.5 * size) for size in sizes)
    assert total == sent / (clients if name == "feddep" else nodes)
    assert total == pytest.approx(number(lines, "bytes_total", "ours_value"))
    assert epoch == pytest.approx(number(lines, "bytes_epoch", "ours_value"))
    assert epoch == (0 if name == "feddep" else total / 2)


def test_the_papers_formulas_by_hand():
    n, m, d, c, epochs = 120, 3, 6, 4, 2
    # DGen, two layers of fGen, and one for each slot.
    weights = (6 + 1) + (6 * 256 + 256) + (256 * 8 + 8) + 5 * (8 * 32 + 32)
    made, of_dgen = (
        number(measured(name)[1], "generated") for name in ("fedsage_plus", "feddep_wo_proto")
    )
    expected = {
        "feddep_wo_proto": tuple(
            pytest.approx(of_dgen * each) for each in (n * d, 4 * m * d, 4 * epochs * m * d)
        ),
        "fedsage_plus": (
            pytest.approx(n * made * 32),
            4 * m * weights * d,
            4 * epochs * m * weights * d,
        ),
        "feddep": (m * c**2 * d, 0, 4 * m * c * d),
    }
    for name, values in expected.items():
        quantities = ("operations", "bytes_epoch", "bytes_total")
        assert (
            tuple(number(measured(name)[1], each, "paper_value") for each in quantities) == values
        )


def test_the_table_of_the_page_has_formulas():
    made = page("overhead", overhead=[row for name in SCHEMES for row in measured(name)[1]])
    assert made["table.csv"].startswith(
        "dataset,clients,setting,seed,method,client,quantity,of,measured,paper,paper_value,ours"
    )


A, B, V = torch.rand(3, 4), torch.rand(4, 5), torch.rand(3, 4)
WEIGHT = torch.rand(4, 5, requires_grad=True)
WEIGHT.grad = torch.rand(4, 5)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda: A @ B, 2 * 3 * 4 * 5),
        (lambda: torch.addmm(torch.rand(5), A, B), 2 * 3 * 4 * 5 + 3 * 5),
        (lambda: A + torch.rand(4), 12),  # one for each element of the result
        (lambda: (A * V).relu().square(), 36),
        (lambda: A < V, 12),
        (lambda: A.argmin(dim=1), 12),
        (lambda: smooth_l1_loss(A, V), 12),
        (lambda: torch.cat([A, V]).t().reshape(-1)[2:].clone(), 0),
        (lambda: A[torch.tensor([0, 2])], 0),
        (lambda: (torch.arange(5) * 3 < 3).sum(), 0),
        (lambda: torch.rand(7), 0),
        (
            lambda: SparseMatrix.from_scipy(sp.csr_matrix([[1, 0, 2], [0, 0, 0], [0, 3, 0]])) @ A,
            2 * 3 * 4,
        ),
        (
            lambda: torch.autograd.grad((A @ WEIGHT).sum(), WEIGHT),
            2 * 3 * 4 * 5 + 3 * 5 + 2 * 4 * 3 * 5,
        ),  # product, sum, Aᵀ G
        (lambda: torch.optim.SGD([WEIGHT], fused=True).step(), 2 * 20),
        (
            lambda: torch.optim.Adam([WEIGHT], fused=True).step(),
            pytest.approx(12 * 20, abs=1),
        ),  # steps are floating-point
    ],
)
def test_each_kind_of_operation_costs_what_the_rule_says(operation, expected):
    with FlopCounter() as counter:
        operation()
    assert counter.total == expected
