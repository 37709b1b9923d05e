"""DGen beside predictions without training: by hand, as the run's own generator, and as averages on the page."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from small import case_of, small_task

from feddep.graph.impairing import Impaired, impair
from feddep.methods.feddep import FedDEPParameters, mending
from feddep.methods.feddep.dgen import Generated
from feddep.methods.feddep.generation import generator_loss, nearest_in
from feddep.methods.shared.impairing_clients import impair_client
from feddep.utils import seeding
from graphs import random_graph
from studies.quality import measure as quality
from studies.quality.measure import Prediction, compare, least_loss, true_means, unseen

FEW: dict[str, Any] = {
    "prototypes": 4,
    "embedding": 6,
    "pretraining_epochs": 2,
    "generator_epochs": 3,
    "hidden_from": "all",
    "scale": "paper",
}
PARAMETERS = FedDEPParameters(**FEW, generator_optimizer="adam")


def impaired_by_hand() -> tuple[Impaired, torch.Tensor]:
    """Nodes 0, 1, 2 remain; 0 misses 3 and 4, 1 misses 4, 2 misses nothing."""
    pairs = np.array([(0, 3), (0, 4), (1, 4)])
    graph = random_graph(3, 2)
    targets = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 4.0]])
    return Impaired(graph, np.arange(3), np.array([3, 4]), np.array([2, 1, 0]), pairs), targets


def test_the_truth_is_the_mean_of_what_is_missing():
    impaired, targets = impaired_by_hand()
    assert true_means(impaired, targets).tolist() == [[1, 2], [0, 4], [0, 0]]


def test_errors_by_hand():
    impaired, targets = impaired_by_hand()
    perfect = Prediction(torch.tensor([[1.0, 2.0], [0.0, 4.0], [9.0, 9.0]]), torch.tensor([2.0, 1.0, 0.0]))
    zero = Prediction(torch.zeros(3, 2), torch.zeros(3))
    usual = Prediction(torch.tensor([[0.5, 3.0]]).expand(3, 2), torch.ones(3))
    judged = np.array([True, True, True])
    rows = {row["guess"]: row for row in compare({"a": perfect, "b": zero, "mean prototype": usual}, impaired, targets, judged)}
    assert rows["a"]["nodes"] == 2  # what the third node would get does not count: it misses nothing
    assert rows["a"]["squared_error"] == 0
    assert rows["a"]["explained"] == 1
    assert rows["b"]["squared_error"] == pytest.approx(((1 + 4) + 16) / 2)
    assert rows["mean prototype"]["squared_error"] == pytest.approx(1.25)
    assert rows["mean prototype"]["explained"] == 0
    assert rows["b"]["explained"] == pytest.approx(1 - 10.5 / 1.25)
    assert [rows[name]["count_error"] for name in rows] == pytest.approx([0, 1, 2 / 3])
    assert [rows[name]["generated"] for name in rows] == pytest.approx([1, 0, 1])
    assert [rows[name]["filled"] for name in rows] == [1, 0, 1]
    assert rows["a"]["count_correlation"] == pytest.approx(1)
    assert np.isnan(rows["b"]["count_correlation"])


def test_no_pair_that_is_judged_was_trained_on():
    task = small_task()
    graph, split = task.subgraphs()[0]
    trained, anew = (impair(graph, split, 0.5, "all", seeding.generator(0, name)) for name in ("one", "two"))
    judged = unseen(anew, trained)

    def pairs(impaired: Impaired, which: np.ndarray) -> set[tuple[int, int]]:
        return {(int(impaired.kept[v]), int(u)) for v, u in impaired.pairs if which[v]}

    learnt = pairs(trained, np.ones(len(trained.kept), dtype=bool))
    assert pairs(anew, np.ones(len(anew.kept), dtype=bool)) & learnt  # what was trained on is there to be left out
    assert not pairs(anew, judged) & learnt
    assert all({(int(anew.kept[v]), int(u)) for w, u in anew.pairs if w == v} & learnt for v in np.flatnonzero(~judged))
    assert not unseen(trained, trained)[trained.missing > 0].any()


@pytest.mark.parametrize(("intra", "cross"), [(1.0, 1.0), (1.0, 0.3), (0.5, 2.0), (1.0, 0.0), (0.0, 1.0)])
def test_the_least_loss_is_what_trying_every_choice_of_targets_finds(intra: float, cross: float):
    impaired, _ = impaired_by_hand()
    draws = seeding.torch_generator(0, "targets")
    others = [torch.rand(3, 2, generator=draws, dtype=torch.float64) for _ in range(3)]
    targets = torch.rand(5, 2, generator=draws, dtype=torch.float64)
    found = least_loss(impaired, targets, others, intra, cross)
    weights = torch.tensor([intra, *[cross] * 3], dtype=torch.float64).unsqueeze(1)

    def least(v: int) -> float:
        own = [targets[u] for w, u in impaired.pairs if w == v]
        chosen = (torch.stack(choice) for choice in itertools.product(own, *others))
        return min(float((weights * (each - (weights * each).sum(dim=0) / weights.sum()).square()).sum()) for each in chosen)

    how = PARAMETERS.model_copy(update={"intra_weight": intra, "cross_weight": cross, "count_weight": 0.0})
    missing, pairs = torch.from_numpy(impaired.missing), torch.from_numpy(impaired.pairs)
    for v in (0, 1):
        slots = torch.zeros(3, 1, dtype=torch.bool)
        slots[v] = True
        generated = Generated(missing.double(), found.unsqueeze(1), slots)
        loss = 3 * generator_loss(generated, missing, pairs, targets, nearest_in(others), how)[0]
        if intra and not cross and v == 0:
            assert torch.allclose(found[v], targets[[3, 4]].mean(dim=0))  # both attain 0, and their mean is the truth
        else:
            assert float(loss) == pytest.approx(least(v), abs=1e-12)
    assert not found[2].any()


def test_it_is_the_generator_of_the_run():
    """The DGen that is measured mends the subgraph as the run's own did."""
    case = case_of("feddep", small_task(), **FEW, generator_optimizer="adam")
    task, prototypes = case.task, case.step("prototypes")
    shared, targets = prototypes.of_clients("prototypes"), prototypes.of_clients("targets")
    client = task.subgraphs()[0]
    impaired = impair_client(task, PARAMETERS, 0, client)
    dgen = quality.train_dgen(task, PARAMETERS, 0, impaired, targets[0], shared)
    search = mending.nearest_of_others(shared, 0)
    _, count, _ = mending.mend(task, PARAMETERS, 0, client, impaired, targets[0], search)
    graph = client[0]
    nothing = Impaired(graph, np.arange(graph.num_nodes), np.empty(0), np.zeros(graph.num_nodes), np.empty((0, 2)))
    measured = quality.predict(dgen, nothing, targets[0], PARAMETERS.bernoulli_rate, task, "client0")
    torch.testing.assert_close(measured["DGen"].count, count)


GUESSES = ("DGen", "zero", "mean prototype", "own prototype", "least loss")
