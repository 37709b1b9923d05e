"""Table 1 measured: operations against counts by hand, bytes against communications, formulas by hand."""

from functools import cache
from typing import Any

import pytest
import torch
from small import case_of, page, small_task

from feddep.methods.feddep import GeneratorParameters, mending
from feddep.methods.feddep.generation import nearest_in
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer
from feddep.training.task import Task
from studies.measuring import tables_of
from studies.overhead.measure import SCHEMES
from studies.overhead.work import Counted, operations_of_distances

COMPARED = tuple(SCHEMES)
DGEN = {"prototypes": 4, "embedding": 6, "pretraining_epochs": 1, "generator_epochs": 2, "hidden_from": "all"}
NEIGHGEN = {
    "embedding": 6,
    "generator_width": 8,
    "generator_batch": 16,
    "generator_local_epochs": 1,
    "generator_federated_epochs": 2,
}
SMALL = {"feddep": DGEN, "feddep_wo_proto": DGEN, "fedsage_plus": NEIGHGEN}
EPOCHS = 2

Rows = list[dict[str, Any]]


@cache
def measured(name: str, clients: int = 3, **changes: Any) -> tuple[Task, Rows]:
    """A task with the results of all steps, and what is measured on it."""
    case = case_of(name, small_task(clients, nodes=120, delta=5), **{**SMALL[name], **changes})
    return case.task, tables_of("overhead", case)["overhead"]


def cell(rows: Rows, quantity: str, client: int | str = "all") -> dict[str, Any]:
    return next(row for row in rows if (row["quantity"], row["client"]) == (quantity, client))


def number(rows: Rows, quantity: str, client: int | str = "all", column: str = "measured") -> float:
    return cell(rows, quantity, client)[column]


def test_a_search_costs_what_counting_by_hand_gives():
    n, slots, d = 3, 2, 4
    others = [torch.rand(k, d) for k in (5, 7)]
    points, chosen = torch.rand(n, slots, d), torch.rand(n, slots) < 0.5
    search = Counted(nearest_in(others))
    for found, expected in zip(search(points, chosen), nearest_in(others)(points, chosen), strict=True):
        assert torch.equal(found[:], expected[:])
    by_hand = 0
    for k in (5, 7):
        by_hand += k * d + k * d  # squares of the candidates, and their sums
        by_hand += 2 * n * slots * d * k  # inner products of every point and candidate
        by_hand += n * slots * k * 3  # doubled, taken from the squares, the least of a row sought
    assert search.operations == [by_hand]
    assert search.calls == [(points, chosen)]


@pytest.mark.parametrize("others", [1, 2, 4])
def test_distances_cost_what_counting_by_hand_gives(others):
    n, slots, d = 3, 2, 4
    points, chosen = torch.rand(n, slots, d), torch.ones(n, slots, dtype=torch.bool)
    each, slot = n * slots * d, n * slots
    forward = each + each + each  # differences, squares, and their sums over coordinates
    forward += slot + slot + 3  # those that count, their sum; divided by n, weighted, added to the loss
    backward = 2 + slot  # weight and n, those that count
    backward += 3 * each  # of a square: the power, twice it, times the gradient
    total = others * (forward + backward) + (others - 1) * each  # gradients of the same embeddings are added up
    assert (
        operations_of_distances(points, chosen, list(torch.rand(others, n, slots, d)), GeneratorParameters(scale="paper"))
        == total
    )


@pytest.mark.parametrize(
    ("name", "where"), [("feddep", mending), ("feddep_wo_proto", mending), ("fedsage_plus", NeighGenTrainer)]
)
def test_what_is_counted_is_the_training_that_the_step_does(name, where, monkeypatch):
    """The generators whose training is counted end with the very weights of the step's: they generate the same."""
    done: list[list[torch.Tensor]] = []
    mend = where.mend

    def recording(*args: Any) -> Any:
        result = mend(*args)
        done.append(list(result.values() if isinstance(result, dict) else result))
        return result

    monkeypatch.setattr(where, "mend", recording)
    measured.__wrapped__(name)
    clients = len(done) // 2
    assert clients == 3
    for made, counted in zip(done[:clients], done[clients:], strict=True):
        assert all(torch.equal(tensor, again) for tensor, again in zip(made, counted, strict=True))


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("clients", [1, 3])
def test_bytes_are_those_of_the_communication_logs_and_our_formulas_give_them_exactly(name, clients):
    task, lines = measured(name, clients)
    stages = [stage for stage in ("prototypes", "generator") if stage in task.step_results]
    sent = sum(row["bytes"] for stage in stages for row in task.step_results[stage].communication)
    total, epoch = number(lines, "bytes_total"), number(lines, "bytes_epoch")
    assert total == sent / (clients if name == "feddep" else sum(nodes_of(name, task)))
    assert total == pytest.approx(number(lines, "bytes_total", column="ours_value"))
    assert epoch == pytest.approx(number(lines, "bytes_epoch", column="ours_value"))
    assert epoch == (0 if name == "feddep" else total / EPOCHS)


def nodes_of(name: str, task: Task) -> list[int]:
    """Number of nodes that an update of each client generates for: those that are not hidden, or a batch of them."""
    sizes = [len(nodes) for nodes in owned(task)]
    return [16] * len(sizes) if name == "fedsage_plus" else [size - round(0.5 * size) for size in sizes]


def owned(task: Task) -> list[Any]:
    assert task.partition is not None
    return [task.partition.nodes(i) for i in range(task.partition.num_clients)]


def test_the_papers_formulas_by_hand():
    wo_proto, ours = measured("feddep_wo_proto")[1], measured("feddep")[1]
    n, m, slots, d, c, epochs = 120, 3, 5, 6, 4, 2
    assert number(wo_proto, "operations", column="paper_value") == n * slots * d
    assert number(wo_proto, "bytes_epoch", column="paper_value") == 4 * m * slots * d
    assert number(wo_proto, "bytes_total", column="paper_value") == 4 * epochs * m * slots * d
    sage = measured("fedsage_plus")[1]
    weights = (6 + 1) + (6 * 256 + 256) + (256 * 8 + 8) + 5 * (8 * 32 + 32)  # dGen, two layers of fGen, and one for each slot
    assert number(sage, "operations", column="paper_value") == pytest.approx(n * number(sage, "sought") * 32)
    assert number(sage, "bytes_epoch", column="paper_value") == 4 * m * weights * d
    assert number(sage, "bytes_total", column="paper_value") == 4 * epochs * m * weights * d
    assert number(ours, "operations", column="paper_value") == m * c**2 * d
    assert number(ours, "bytes_epoch", column="paper_value") == 0
    assert number(ours, "bytes_total", column="paper_value") == 4 * m * c * d


GENERATING = {"generator_optimizer": "adam", "generator_learning_rate": 0.02, "generator_epochs": 20}


def test_the_page_has_formulas_remarks_and_clients():
    rows = [row for name in COMPARED for row in measured(name)[1]]
    variant = [{**row, "method": "feddep,prototypes=2"} for row in measured("feddep", prototypes=2)[1]]
    made = page("overhead", overhead=[*rows, *variant])
    text = made["page.md"]
    assert r"| \|V\| ñ d_z " in text
    assert text.count("| all    |") == len(SCHEMES) + 1
    assert text.count("| FedDEP, prototypes=2 |") == 2  # in both tables
    header = made["table.csv"].splitlines()[0]
    assert header.startswith("dataset,clients,setting,seed,method,client,quantity,of,measured,paper,paper_value,ours")
