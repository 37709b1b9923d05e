"""How generated embeddings are compared with guesses: by hand on a small graph, and what is trained is FedDEP's DGen."""

import numpy as np
import pytest
import torch
from test_frameworks import problem_of

from feddep import mending, quality
from feddep.frameworks import feddep
from feddep.generation import nearest_in
from feddep.impairing import Impaired
from feddep.quality import Guess, compare, true_means
from feddep.steps import make_all
from graphs import random_graph

PARAMETERS = feddep.Parameters(
    prototypes=4, embedding=6, pretraining_epochs=2, generator_epochs=3, hidden_from="all", generator_optimizer="adam"
)


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
    perfect = Guess(torch.tensor([[1.0, 2.0], [0.0, 4.0], [9.0, 9.0]]), torch.tensor([2.0, 1.0, 0.0]))
    zero = Guess(torch.zeros(3, 2), torch.zeros(3))
    usual = Guess(torch.tensor([[0.5, 3.0]]).expand(3, 2), torch.ones(3))
    rows = {row["guess"]: row for row in compare({"a": perfect, "b": zero, "mean prototype": usual}, impaired, targets)}
    assert rows["a"]["nodes"] == 2  # what the third node would get does not count: it misses nothing
    assert rows["a"]["squared_error"] == 0
    assert rows["a"]["explained"] == 1
    assert rows["b"]["squared_error"] == pytest.approx(((1 + 4) + 16) / 2)
    assert rows["mean prototype"]["squared_error"] == pytest.approx(1.25)
    assert rows["mean prototype"]["explained"] == 0
    assert rows["b"]["explained"] == pytest.approx(1 - 10.5 / 1.25)
    assert [rows[name]["count_error"] for name in rows] == pytest.approx([0, 1, 2 / 3])
    assert [rows[name]["generated"] for name in rows] == pytest.approx([1, 0, 1])


def test_it_is_the_generator_of_the_run():
    """The DGen that is measured mends the subgraph as the run's own did."""
    problem = problem_of("feddep")
    made = make_all(problem, PARAMETERS, feddep.steps(PARAMETERS))
    shared, targets = made["prototypes"].of_clients("prototypes"), made["prototypes"].of_clients("targets")
    impaired = mending.impair_client(problem, PARAMETERS, 0, problem.subgraphs()[0])
    dgen = quality.train_dgen(problem, PARAMETERS, 0, impaired, targets[0], shared[1:])
    _, count, _ = mending.mend(problem, PARAMETERS, 0, problem.subgraphs()[0], impaired, targets[0], nearest_in(shared[1:]))
    graph = problem.subgraphs()[0][0]
    nothing = Impaired(graph, np.arange(graph.num_nodes), np.empty(0), np.zeros(graph.num_nodes), np.empty((0, 2)))
    measured = quality.guesses_of(dgen, nothing, targets[0], PARAMETERS, problem, "client0")
    torch.testing.assert_close(measured["DGen"].count, count)


def test_a_row_for_each_client_choice_and_guess():
    problem = problem_of("feddep")
    made = make_all(problem, PARAMETERS, feddep.steps(PARAMETERS)[:2])
    rows = quality.measure(problem, PARAMETERS, made)
    assert len(rows) == 3 * 2 * 4
    assert {row["hidden"] for row in rows} == set(quality.HIDDEN)
    assert all(row["explained"] == 0 for row in rows if row["guess"] == "mean prototype")
    assert rows == quality.measure(problem, PARAMETERS, made)
