"""Training with a graph and a fan-out for each hop is ordinary training where nothing is
special.
"""

import numpy as np
import torch

from divided import random_task, trained
from feddep.methods.shared.cross_edges import cross_edges
from feddep.methods.shared.expansion import ExpandedSubgraph, new_expanded_model
from feddep.training.learner import Learner, new_optimizer
from small_models import flat


def test_without_cross_client_edges_it_trains_as_any_client_does():
    task = random_task(clients=1, dropout=0.3)
    (graph, split), own = task.subgraphs()[0], cross_edges(task)[0]
    subgraph = ExpandedSubgraph(task, graph, own, [1])
    ours, reference = new_expanded_model(task, [1]), trained(task)
    ours.load_state_dict(reference.state_dict())
    for model, learner in (
        (
            ours,
            Learner(
                [subgraph.wide, subgraph.narrow],
                split.train,
                task.setting,
                task.seed,
                "client0",
                table=subgraph.table,
            ),
        ),
        (reference, Learner(graph, split.train, task.setting, task.seed, "client0")),
    ):
        for _ in range(2):
            learner.epoch(model, new_optimizer(model, task.setting))
    assert torch.equal(flat(ours.parameters()), flat(reference.parameters()))


def test_fanouts_may_change_between_epochs():
    task = random_task(edges=90)
    graph, split = task.subgraphs()[0]
    learner = Learner(graph, split.train, task.setting, task.seed, "client0")
    model = trained(task)
    seen = []
    model.register_forward_pre_hook(
        lambda module, inputs: seen.append((inputs[0].fanouts, inputs[0].nodes.shape[1]))
    )
    for fanouts in ((1, 2), (3, 1)):
        learner.fanouts = fanouts
        assert np.isfinite(learner.epoch(model, new_optimizer(model, task.setting)))
    assert set(seen) == {((1, 2), 6), ((3, 1), 8)}
