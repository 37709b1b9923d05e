"""DGen beside predictions without training: by hand, and as the run's own generator."""

import itertools

import numpy as np
import pytest
import torch
from small import DGEN, case_of, small_task

from feddep.graph.impairing import Impaired, impair
from feddep.methods.feddep import FedDEPParameters, mending
from feddep.methods.feddep.dgen import Generated
from feddep.methods.feddep.generation import generator_loss, nearest_in
from feddep.methods.shared.impairing_clients import impair_client
from feddep.utils import seeding
from graphs import random_graph
from studies.feddep.quality import measure as quality
from studies.feddep.quality.measure import Prediction, compare, least_loss, true_means, unseen

IMPAIRED = Impaired(
    random_graph(3, 2),
    np.arange(3),
    np.array([3, 4]),
    np.array([2, 1, 0]),
    np.array([(0, 3), (0, 4), (1, 4)]),
)
"""Nodes 0, 1, 2 remain; 0 misses 3 and 4, 1 misses 4, 2 misses nothing."""


def test_errors_by_hand():
    targets = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 4.0]])
    assert true_means(IMPAIRED, targets).tolist() == [[1, 2], [0, 4], [0, 0]]
    perfect = Prediction(
        torch.tensor([[1.0, 2.0], [0.0, 4.0], [9.0, 9.0]]), torch.tensor([2.0, 1.0, 0.0])
    )
    zero = Prediction(torch.zeros(3, 2), torch.zeros(3))
    usual = Prediction(torch.tensor([[0.5, 3.0]]).expand(3, 2), torch.ones(3))
    found = compare(
        {"a": perfect, "b": zero, "mean prototype": usual},
        IMPAIRED,
        targets,
        np.ones(3, dtype=bool),
    )
    a, b, c = found  # what the third node would get does not count: it misses nothing
    assert [(row["guess"], row["nodes"]) for row in found] == [
        ("a", 2),
        ("b", 2),
        ("mean prototype", 2),
    ]
    assert [row["squared_error"] for row in found] == pytest.approx([0, ((1 + 4) + 16) / 2, 1.25])
    assert [row["explained"] for row in found] == pytest.approx([1, 1 - 10.5 / 1.25, 0])
    assert [row["count_error"] for row in found] == pytest.approx([0, 1, 2 / 3])
    assert [row["generated"] for row in found] == [row["filled"] for row in found] == [1, 0, 1]
    assert (a["explained_filled"], b["explained_empty"]) == (a["explained"], b["explained"])
    assert np.isnan(
        [
            a["explained_empty"],
            b["explained_filled"],
            b["count_correlation"],
            c["count_correlation"],
        ]
    ).all()
    assert a["count_correlation"] == pytest.approx(1)


def test_no_pair_that_is_judged_was_trained_on():
    trained, anew = (
        impair(*small_task().subgraphs()[0], 0.5, "all", seeding.generator(0, name))
        for name in ("one", "two")
    )
    learnt = {(int(trained.kept[v]), int(u)) for v, u in trained.pairs}
    again = {int(v) for v, u in anew.pairs if (int(anew.kept[v]), int(u)) in learnt}
    assert set(np.flatnonzero(~unseen(anew, trained))) == again != set()
    assert not unseen(trained, trained)[trained.missing > 0].any()


@pytest.mark.parametrize(
    ("intra", "cross"), [(1.0, 1.0), (1.0, 0.3), (0.5, 2.0), (1.0, 0.0), (0.0, 1.0)]
)
def test_the_least_loss_is_what_trying_every_choice_of_targets_finds(intra: float, cross: float):
    draws = seeding.torch_generator(0, "targets")
    others = [torch.rand(3, 2, generator=draws, dtype=torch.float64) for _ in range(3)]
    targets = torch.rand(5, 2, generator=draws, dtype=torch.float64)
    found = least_loss(IMPAIRED, targets, others, intra, cross)
    weights = torch.tensor([intra, *[cross] * 3], dtype=torch.float64).unsqueeze(1)

    def least(v: int) -> float:
        own = [targets[u] for w, u in IMPAIRED.pairs if w == v]
        chosen = (torch.stack(choice) for choice in itertools.product(own, *others))
        return min(
            float((weights * (each - (weights * each).sum(dim=0) / weights.sum()).square()).sum())
            for each in chosen
        )

    how = FedDEPParameters(scale="paper", intra_weight=intra, cross_weight=cross, count_weight=0.0)
    missing, pairs = torch.from_numpy(IMPAIRED.missing), torch.from_numpy(IMPAIRED.pairs)
    for v in (0, 1):
        slots = torch.arange(3).unsqueeze(1) == v
        generated = Generated(missing.double(), found[v : v + 1], slots)
        loss = 3 * generator_loss(generated, missing, pairs, targets, nearest_in(others), how)[0]
        if intra and not cross and v == 0:
            # Both attain 0, and their mean is the truth.
            assert torch.allclose(found[v], targets[[3, 4]].mean(dim=0))
        else:
            assert float(loss) == pytest.approx(least(v), abs=1e-12)
    assert not found[2].any()


def test_it_is_the_generator_of_the_run():
    """The DGen that is measured mends the subgraph as the run's own did."""
    case = case_of("feddep", small_task(), **DGEN, generator_optimizer="adam")
    task, parameters = case.task, case.parameters
    shared, targets = (
        case.step("prototypes").of_clients(name) for name in ("prototypes", "targets")
    )
    graph, _ = client = task.subgraphs()[0]
    impaired = impair_client(task, parameters, 0, client)
    dgen = quality.train_dgen(task, parameters, 0, impaired, targets[0], shared)
    search = mending.nearest_of_others(shared, 0)
    _, count, _ = mending.mend(task, parameters, 0, client, impaired, targets[0], search)
    nothing = Impaired(
        graph, np.arange(graph.num_nodes), np.empty(0), np.zeros(graph.num_nodes), np.empty((0, 2))
    )
    measured = quality.predict(
        dgen, nothing, targets[0], parameters.bernoulli_rate, task, "client0"
    )
    torch.testing.assert_close(measured["DGen"].count, count)
