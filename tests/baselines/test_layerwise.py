"""Layerwise sampling and training are the ordinary ones where nothing is special."""

import numpy as np
import pytest
import torch
from divided import random_problem, trained

from feddep.baselines.border import borders
from feddep.baselines.expansion import ExpandedSubgraph, new_expanded_model
from feddep.baselines.layerwise import LayerwiseLearner, sample_layerwise
from feddep.sampling import sample_trees
from feddep.training import Learner, new_optimizer


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_same_graph_and_fanout_everywhere_is_ordinary_sampling(hops):
    graph, roots = random_problem().graph, np.arange(24)
    ours = sample_layerwise([graph] * hops, roots, [3] * hops, np.random.default_rng(5))
    np.testing.assert_array_equal(ours, sample_trees(graph, roots, 3, hops, np.random.default_rng(5)))


def test_without_a_border_it_trains_as_any_client_does():
    problem = random_problem(clients=1, dropout=0.3)
    (graph, split), border = problem.subgraphs()[0], borders(problem)[0]
    subgraph = ExpandedSubgraph(problem, graph, border, [1])
    ours, reference = new_expanded_model(problem, [1]), trained(problem)
    ours.load_state_dict(reference.state_dict())
    for model, learner in (
        (ours, LayerwiseLearner(problem, subgraph, split.train, [1], "client0")),
        (reference, Learner(graph, split.train, problem.setting, problem.seed, "client0")),
    ):
        for _ in range(2):
            learner.epoch(model, new_optimizer(model, problem.setting))
    for mine, expected in zip(ours.parameters(), reference.parameters(), strict=True):
        assert torch.equal(mine, expected)


def test_stand_ins_are_drawn_for_the_layers_that_they_take_part_in_only():
    problem = random_problem(edges=90, layers=2)
    for (graph, _), border in zip(problem.subgraphs(), borders(problem), strict=True):
        subgraph, n = ExpandedSubgraph(problem, graph, border, [1]), graph.num_nodes
        trees = sample_layerwise([subgraph.wide, subgraph.narrow], np.arange(n), (4, 4), np.random.default_rng(0))
        assert (trees[:, 1:5] >= n).any()
        assert (trees[:, 5:] < n).all()


def test_fanouts_may_change_between_epochs():
    problem = random_problem(edges=90)
    (graph, split), border = problem.subgraphs()[0], borders(problem)[0]
    subgraph = ExpandedSubgraph(problem, graph, border, [])
    learner = LayerwiseLearner(problem, subgraph, split.train, [], "client0")
    model = new_expanded_model(problem, [])
    model.load_state_dict(trained(problem).state_dict())
    for fanouts in ((1, 2), (3, 1)):
        learner.fanouts = fanouts
        assert np.isfinite(learner.epoch(model, new_optimizer(model, problem.setting)))
        assert model.fanouts == fanouts
