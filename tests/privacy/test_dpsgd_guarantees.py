"""DP-SGD's account of a training: what is counted is what the learner does, and no ε is ever not a number."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_laws import roots_of_edges

from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.nn.sage import GraphSAGE
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.changed_trees import tree_changes
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.privacy.dpsgd_accounting import Epsilons, binomial_changes, edge_level, example_level
from feddep.privacy.dpsgd_guarantees import (
    DpsgdGuarantee,
    PoissonSampling,
    TreeChanges,
    calibrated_guarantee,
    client_trees,
    dpsgd_guarantee,
)
from feddep.training.config import TrainingConfig
from graphs import graphs, random_graph, star


@pytest.mark.parametrize("nodes", [0, 1, 7, 8, 9, 30])
@pytest.mark.parametrize("epochs", [1, 3])
def test_batches_are_those_that_the_learner_draws(nodes, epochs):
    graph = random_graph(30, 60)
    setting = TrainingConfig(batch_size=8, fanout=2, rounds=epochs, hidden_channels=4, dropout=0.0)
    learner = PrivateLearner(graph, np.arange(nodes), setting, 0, "client0", privacy=Privacy())
    model = GraphSAGE(graph.num_features, 4, graph.num_classes, 2, 0.0)
    model.reset_parameters(torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(epochs):
        learner.epoch(model, optimizer)
    assert PoissonSampling.of_training(nodes, 8, epochs) == PoissonSampling(learner.rate, learner.steps)


def test_one_step_and_all_steps_on_both_levels():
    sampling = PoissonSampling(0.1, 30)
    example, edge = dpsgd_guarantee(2.0, sampling, 1e-5), dpsgd_guarantee(2.0, sampling, 1e-5, TreeChanges.simple(3, 0.1))
    assert (example.level, edge.level) == ("example", "edge")
    assert example.one_step == example_level(2.0, 0.1, 1, 1e-5)
    assert example.all_steps == example_level(2.0, 0.1, 30, 1e-5)
    assert edge.one_step == edge_level(2.0, binomial_changes(3, 0.1), 1, 1e-5)
    assert edge.all_steps == edge_level(2.0, binomial_changes(3, 0.1), 30, 1e-5)
    law = np.array([0.8, 0.15, 0.04, 0.01])
    by_trees = dpsgd_guarantee(2.0, sampling, 1e-5, TreeChanges("trees", law))
    assert by_trees.one_step == edge_level(2.0, law, 1, 1e-5)
    assert by_trees.all_steps == edge_level(2.0, law, 30, 1e-5)
    assert [each.bound for each in (example, edge, by_trees)] == [None, "simple", "trees"]
    assert [each.as_dict()["roots"] for each in (example, edge, by_trees)] == [None, 3, 3]
    assert edge.as_dict()["all_steps"] == edge.all_steps.as_dict()


def test_nobody_to_train_on_spends_nothing():
    for edge in (None, TreeChanges.simple(0, 0.0), TreeChanges.simple(3, 0.0), TreeChanges("trees", np.array([1.0, 0, 0, 0]))):
        nothing = dpsgd_guarantee(2.0, PoissonSampling.of_training(0, 32, 50), 1e-5, edge)
        assert nothing.one_step == nothing.all_steps == Epsilons(0.0, 0.0)
        assert nothing.remark() is None


def test_a_budget_is_kept_with_little_to_spare():
    for edge in (TreeChanges.simple(2, 0.2), TreeChanges("trees", np.array([0.8, 0.15, 0.05]))):
        found = calibrated_guarantee(3.0, PoissonSampling(0.2, 20), 1e-5, edge)
        assert 2.9 < found.all_steps.least <= 3.0
        assert dpsgd_guarantee(0.98 * found.sigma, PoissonSampling(0.2, 20), 1e-5, edge).all_steps.least > 3.0


def test_a_budget_that_cannot_be_kept_names_what_it_was_for():
    with pytest.raises(
        PrivacyError, match=r"δ = 1e-05 for 500 steps at the sampling rate 0\.5 to hide an edge .*\(simple bound\); "
    ):
        calibrated_guarantee(0.001, PoissonSampling(0.5, 500), 1e-5, TreeChanges.simple(10, 0.5))
    with pytest.raises(
        PrivacyError, match=r"to hide an edge in the trees of up to 1 training nodes \(bound by trees\); the least"
    ):
        calibrated_guarantee(0.0001, PoissonSampling(0.5, 500), 1e-5, TreeChanges("trees", np.array([0.5, 0.5])))


def test_what_is_vacuous_is_said():
    assert dpsgd_guarantee(2.0, PoissonSampling(0.1, 30), 1e-5).remark() is None
    remark = dpsgd_guarantee(2.0, PoissonSampling(0.1, 30), 1e-5, TreeChanges.simple(50, 0.1)).remark()
    assert remark is not None
    assert remark.startswith("an edge in the trees of up to 50 training nodes (simple bound): ")
    assert remark.endswith("the guarantee is vacuous")
    assert "no ε at all" in str(dpsgd_guarantee(0.0, PoissonSampling(0.1, 30), 1e-5).remark())
    assert DpsgdGuarantee("edge", "simple", 2.0, 1, Epsilons(1.0, 1.0), Epsilons(math.inf, math.inf)).remark().count("∞") == 1
    assert dpsgd_guarantee(0.0, PoissonSampling(0.0, 30), 1e-5).remark() is None  # nobody is ever sampled


TERMS = st.tuples(st.floats(0.3, 8), st.floats(0.01, 1), st.integers(1, 20), st.floats(-12, -2))


@settings(max_examples=8)
@given(TERMS, st.integers(0, 30), st.integers(1, 10))
def test_an_edge_costs_the_more_the_more_read_it(terms, roots, more):
    sigma, rate, steps, power = terms
    few, many = (
        dpsgd_guarantee(sigma, PoissonSampling(rate, steps), 10.0**power, TreeChanges.simple(k, rate))
        for k in (roots, roots + more)
    )
    for one, other in ((few.one_step, many.one_step), (few.all_steps, many.all_steps), (few.one_step, few.all_steps)):
        assert one.rdp <= other.rdp * (1 + 1e-3) + 1e-6
        assert one.pld <= other.pld * (1 + 2e-3) + 1e-3
        assert not any(math.isnan(value) for value in (*vars(one).values(), *vars(other).values()))


@settings(max_examples=30)
@given(graphs(), st.integers(1, 3), st.integers(1, 4), st.data())
def test_clients_are_their_own_graphs(graph, layers, fanout, data):
    n = graph.num_nodes
    owner = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    owner[0] = 0
    kinds = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    split = Split(*(np.flatnonzero(kinds == kind) for kind in range(3)))
    partition = Partition(owner, int(owner.max()) + 1)
    for client in client_trees(graph, partition, split, layers, fanout):
        nodes = np.flatnonzero(owner == client.client)
        own, roots = graph.subgraph(nodes), np.flatnonzero(kinds[nodes] == 0)
        counts = roots_of_edges(own, roots, layers)
        assert (client.nodes, client.edges, client.training) == (len(nodes), len(own.edges()), len(roots))
        assert client.roots == max(counts.tolist(), default=0)
        changes = tree_changes(own, roots, layers, fanout)
        assert (client.changes[: client.edges] != changes).nnz == 0
        assert client.changed >= changes.sum(axis=1).max(initial=0)
        assert client.worst_edge(0.3).roots == client.roots == len(client.worst_edge(0.3).law) - 1
    (whole,) = client_trees(graph, None, split, layers, fanout)
    assert whole.changes.shape == (whole.edges, whole.training)
    assert whole.name == "the graph"
    assert whole.training == len(split.train)


def test_lists_with_neighbours_at_other_clients_count_as_well():
    graph, everybody = random_graph(30, 80), np.arange(30)
    none = np.array([], dtype=int)
    partition = Partition(everybody % 2, 2)
    for client in client_trees(graph, partition, Split(everybody, none, none), 2, 3):
        nodes = partition.nodes(client.client)
        own = graph.subgraph(nodes)
        wide = tree_changes(own, np.arange(len(nodes)), 2, 3, graph.degrees[nodes] - own.degrees)
        assert client.changes.shape == (2 * client.edges, len(nodes))
        assert (client.changes[client.edges :] != wide).nnz == 0


def test_what_does_not_belong_together_is_refused():
    graph, split = star(3), Split(np.arange(2), np.array([2]), np.array([3]))
    with pytest.raises(PrivacyError, match="the partition divides 9 nodes and the graph has 4"):
        client_trees(graph, Partition(np.arange(9) % 2, 2), split, 2, 5)
    with pytest.raises(PrivacyError, match="the split has 3 nodes, some beyond the 4 that the graph has"):
        client_trees(graph, None, Split(np.arange(1), np.array([2]), np.array([8])), 2, 5)
    with pytest.raises(PrivacyError, match="number of hops L is 0"):
        client_trees(graph, None, split, 0, 5)


@pytest.mark.parametrize(
    ("counts", "named"),
    [((-1, 8, 1), "training nodes n is -1"), ((5, 0, 1), "batch size B is 0"), ((5, 8, 0), "number of epochs is 0")],
)
def test_counts_out_of_range_are_refused(counts, named):
    with pytest.raises(PrivacyError, match=named):
        PoissonSampling.of_training(*counts)
