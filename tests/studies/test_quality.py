"""DGen beside predictions without training: by hand, as the run's own generator, and as averages on the page."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small import case_of, measured, of_run, page, small_task

from feddep.experiment.plan import Run
from feddep.graph.impairing import Impaired, impair
from feddep.methods.feddep import FedDEPParameters, mending
from feddep.methods.feddep.dgen import Generated
from feddep.methods.feddep.generation import generator_loss, nearest_in
from feddep.methods.shared.impairing_clients import impair_client
from feddep.utils import seeding
from graphs import random_graph
from studies.measuring import frame
from studies.quality import measure as quality
from studies.quality.measure import Prediction, compare, correlation, least_loss, true_means, unseen
from studies.quality.page import summarise

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


def test_nodes_with_and_without_a_prediction_apart():
    impaired, targets = impaired_by_hand()
    half = Prediction(torch.tensor([[1.0, 2.5], [0.0, 0.0], [9.0, 9.0]]), torch.zeros(3))
    usual = Prediction(torch.tensor([[0.5, 3.0]]).expand(3, 2), torch.ones(3))
    judged = np.array([True, True, True])
    row = compare({"half": half, "mean prototype": usual}, impaired, targets, judged)[0]
    assert row["filled"] == 0.5
    assert row["explained_filled"] == pytest.approx(1 - 0.25 / 1.25)
    assert row["explained_empty"] == pytest.approx(1 - 16 / 1.25)
    assert row["explained"] == pytest.approx(1 - 16.25 / 2.5)
    row = compare({"half": half, "mean prototype": usual}, impaired, targets, np.array([True, False, True]))[0]
    assert row["nodes"] == 1
    assert row["explained"] == row["explained_filled"] == pytest.approx(1 - 0.25 / 1.25)
    assert np.isnan(row["explained_empty"])


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


def test_a_correlation_by_hand():
    assert correlation(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2, 4, 6])) == pytest.approx(1)
    assert correlation(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 1])) == pytest.approx(0)
    assert np.isnan(correlation(torch.ones(3), torch.tensor([1, 0, 1])))


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


def test_numbers_by_degree():
    """Of a node's neighbours as many are hidden as remain, where half of the nodes are hidden."""
    task = small_task()
    graph, split = task.subgraphs()[0]
    impaired = impair(graph, split, 0.25, "all", seeding.generator(0, "hidden"))
    targets = torch.ones(graph.num_nodes, 6)
    guesses = quality.predict(mending.new_dgen(task, PARAMETERS, 0).eval(), impaired, targets, 1.0, task, "client0")
    expected = impaired.graph.degrees * len(impaired.hidden) / len(impaired.kept)
    assert guesses["own prototype"].count.numpy() == pytest.approx(expected)


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


def test_a_row_for_each_client_choice_and_prediction():
    case = case_of("feddep", small_task(), **FEW, generator_optimizer="adam")
    rows = measured("quality", case)
    assert len(rows) == 3 * 2 * 5
    assert set(rows["hidden"]) == set(quality.HIDDEN)
    assert rows.loc[rows["guess"] == "mean prototype", "explained"].eq(0).all()
    assert rows.equals(measured("quality", case))


GUESSES = ("DGen", "zero", "mean prototype", "own prototype", "least loss")


def rows_of(run: Run) -> list[dict[str, Any]]:
    """What a run has measured: DGen explains 0.2 with seed 0 and 0.4 with seed 1, nothing else does; client 0 gets nothing."""
    explained = {0: 0.1 + 0.2 * run.seed, 1: 0.3 + 0.2 * run.seed}
    return [
        {**of_run(run), "client": client, "hidden": hidden, "guess": guess, "explained": share if guess == "DGen" else 0.0}
        | {"generated": 0.25 * client, "count_error": 1.0 + client, "filled": 0.5 * client, "count_correlation": 0.5}
        | {"explained_filled": 0.7 if client else None, "explained_empty": -0.5}
        for client, share in explained.items()
        for hidden in quality.HIDDEN
        for guess in GUESSES
    ]


@pytest.fixture
def table() -> pd.DataFrame:
    """Two variants of FedDEP with two seeds each."""
    runs = [Run("quick", "cora", 2, f"feddep,prototypes={count}", seed) for count in (3, 4) for seed in (0, 1)]
    return frame([row for run in runs for row in rows_of(run)])


def test_means_over_clients_then_over_seeds(table):
    summary = summarise(table)
    assert len(summary) == 2 * 2 * len(GUESSES)
    assert set(summary["method"]) == {"feddep,prototypes=3", "feddep,prototypes=4"}
    row = summary[(summary["guess"] == "DGen") & (summary["hidden"] == "anew")].iloc[0]
    assert row["seeds"] == 2
    assert row["explained_mean"] == pytest.approx(0.3)  # 0.2 with seed 0, 0.4 with seed 1
    assert row["explained_std"] == pytest.approx(0.2 / 2**0.5)
    assert row["generated"] == pytest.approx(0.125)
    assert row["silent"] == pytest.approx(0.5)  # client 0 of two generates nothing
    assert row["count_error"] == pytest.approx(1.5)
    assert row["explained_filled"] == pytest.approx(0.7)  # of client 1 alone, as client 0 generates nothing


def test_the_page(table):
    made = page("quality", quality=table.to_dict("records"))
    assert made["page.md"].count("0.3000 ± 0.1414") == 2
    assert len(made["table.csv"]) == 20
