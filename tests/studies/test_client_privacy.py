"""The guarantees of all clients: each line held against the module that it comes from."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from small import case_of, of_run, page, task_of

from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.privacy.accountant import SamplingParameters, published_guarantee
from feddep.privacy.changed_trees import most_changed, tree_changes
from feddep.privacy.client_guarantees import client_trees, sampling_guarantees
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level, example_level
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from graphs import graphs, random_graph, star
from sampling_laws import enumerated_delta, multisets, roots_of_edges
from studies.client_privacy.measure import DELTA, client_guarantees
from studies.client_privacy.page import weakest
from studies.measuring import frame, tables_of

SETTING = TrainingConfig(batch_size=8, fanout=2, rounds=3, local_epochs=2, hidden_channels=4)


def test_every_line_of_a_client():
    graph = random_graph(60, 140)
    partition = Partition(np.arange(60) % 2, 2)
    split = Split(np.arange(36), np.arange(36, 48), np.arange(48, 60))
    lines = list(client_guarantees(Task("small", graph, split, partition, SETTING, 0), {"mine": 3.0}))
    assert len(lines) == 2 * (4 + 6)
    for trees in client_trees(graph, partition, split, 2, 2):
        own = graph.subgraph(partition.nodes(trees.client))
        here = {(line.hidden, line.accounting, line.bound): line for line in lines if line.client == trees.client}
        assert here["median node", "published", ""].times == 12
        rate, steps, roots = 8 / 18, 18, int(roots_of_edges(own, np.arange(18), 2).max())
        for bound, law in (("trees", most_changed(trees.changes, rate)), ("simple", binomial_changes(roots, rate))):
            found = here["edge", "pld", bound]
            assert (found.all.epsilon, found.all.delta) == (edge_level(3.0, law, steps, DELTA).pld, pytest.approx(DELTA))
            assert (found.roots, found.times, found.method) == (roots, steps, "mine")
        assert here["edge", "pld", "trees"].all.epsilon < here["edge", "pld", "simple"].all.epsilon
        assert here["example", "rdp", ""].one.epsilon == example_level(3.0, rate, 1, DELTA).rdp


@given(graphs(max_nodes=6), st.integers(1, 3))
def test_worst_and_median_node_are_those_of_the_laws(graph, fanout):
    def exact(degree: int) -> float:
        """The larger δ of losing a neighbour and of gaining one."""
        laws = [multisets(range(length), fanout) for length in range(max(degree - 1, 0), degree + 2)]
        return float(max(enumerated_delta(shorter, longer, 1) for shorter, longer in itertools.pairwise(laws)))

    parameters = SamplingParameters(fanout, layers=2, slack=DELTA)
    found = {(each.hidden, each.accounting): each for each in sampling_guarantees(graph, None, parameters)}
    degrees = sorted(graph.degrees.tolist())
    median = degrees[(len(degrees) - 1) // 2]
    assert found["worst node", "exact"].one.delta == pytest.approx(max(map(exact, degrees)))
    assert found["worst node", "exact"].degree is None
    assert found["median node", "exact"].one.delta == pytest.approx(exact(median))
    assert found["median node", "exact"].all.log_rest == pytest.approx(2 * found["median node", "exact"].one.log_rest)
    for node, degree in (("worst node", degrees[0]), ("median node", median)):
        theorem = published_guarantee(degree, parameters) if degree else None
        assert found[node, "published"].degree == degree
        assert found[node, "published"].one == (theorem and theorem.one)
        assert found[node, "published"].all == (theorem and theorem.composed)


@settings(max_examples=30)
@given(graphs(), st.integers(1, 3), st.integers(1, 4), st.data())
def test_the_trees_of_clients_are_those_of_their_own_graphs(graph, layers, fanout, data):
    """With and without entries for neighbours at other clients in the lists."""
    n = graph.num_nodes
    owner = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    owner[0] = 0
    kinds = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    split = Split(*(np.flatnonzero(kinds == kind) for kind in range(3)))
    for client in client_trees(graph, Partition(owner, int(owner.max()) + 1), split, layers, fanout):
        nodes = np.flatnonzero(owner == client.client)
        own, roots = graph.subgraph(nodes), np.flatnonzero(kinds[nodes] == 0)
        assert client.training == len(roots)
        assert (client.changes[: own.num_edges] != tree_changes(own, roots, layers, fanout)).nnz == 0
        outside = graph.degrees[nodes] - own.degrees
        further = tree_changes(own, roots, layers, fanout, outside) if outside.any() else sp.csr_array((0, len(roots)))
        assert client.changes.shape[0] == own.num_edges + further.shape[0]
        assert (client.changes[own.num_edges :] != further).nnz == 0
    (whole,) = client_trees(graph, None, split, layers, fanout)
    assert (whole.client, whole.changes.shape) == (None, (graph.num_edges, len(split.train)))


def test_a_client_without_edges_or_training_nodes():
    split = Split(np.array([0]), np.array([1]), np.array([2, 3]))
    task = Task("small", star(3), split, Partition(np.array([0, 1, 1, 1]), 2), SETTING, 0)
    lines = list(client_guarantees(task, {"mine": 3.0}))
    noised = {(each.client, each.hidden): each for each in lines if each.mechanism == "dpsgd"}
    assert [key for key, each in noised.items() if each.all.epsilon > 0] == [(0, "example")]
    assert (noised[1, "example"].times, noised[1, "edge"].roots, noised[1, "example"].roots) == (0, 0, None)


def test_what_promises_nothing_is_worst():
    """From the best to the worst client: by the exact δ, by the published one, by ε, and without any ε."""
    found = [(-1, -9, 9), (-2, -0.1, 1), (-2, -0.1, 2), (-2, -np.inf, 0), (-2, None, None)]
    rows = [
        {**of_run(), "hidden": "worst node", "client": client, "accounting": accounting}
        | {"log10_rest_one": rest, "epsilon": epsilon, "log10_rest": rest}
        for client, (exact, published, ε) in enumerate(found)
        for accounting, rest, epsilon in (("published", published, ε), ("exact", exact, 0.0))
    ]
    for last in range(5):
        assert {*weakest(frame(rows[: 2 * last + 2]))["client"], *weakest(frame(rows[2 * last + 1 :: -1]))["client"]} == {last}


def test_the_page_shows_sampling_once_and_noise_of_each_method():
    made = [tables_of("client_privacy", case_of(name, task_of(), steps=False)) for name in ("fedavg", "fedgnn")]
    assert {row["mechanism"] for row in made[0]["guarantees"]} == {"sampling"}
    rows = [row for tables in made for row in tables["guarantees"]]
    rows += [{**row, "method": "feddep_wo_nfdp"} for row in rows if row["method"] == "fedgnn"]
    files = page("client_privacy", guarantees=rows, settings=made[0]["settings"])
    table = files["table.csv"]
    assert table.groupby("method").size().to_dict() == {"": 3 * 4, "fedgnn": 3 * 6, "feddep_wo_nfdp": 3 * 6}
    noised = table[(table["method"] == "fedgnn") & (table["hidden"] == "example") & (table["accounting"] == "pld")]
    (line,) = [line for line in files["page.md"].splitlines() if "| FedGNN " in line]
    assert f"{noised['epsilon'].max():.4g}" in [cell.strip() for cell in line.split("|")]
    assert files["page.md"].count("| median node |") == 1
