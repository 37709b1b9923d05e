import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from feddep.graph.sampling import sample_trees
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.training.config import TrainingConfig
from feddep.training.learner import Learner, new_optimizer
from feddep.utils import seeding
from graphs import random_graph
from small_models import drawn

SETTING = TrainingConfig(
    learning_rate=0.1,
    weight_decay=0.01,
    batch_size=16,
    fanout=3,
    rounds=1,
    hidden_channels=8,
    dropout=0.0,
)
GRAPH = random_graph(50, 120, seed=4)
NODES = np.arange(5, 45)


def new_model() -> GraphSAGE:
    return drawn(GraphSAGE(GRAPH.num_features, 8, GRAPH.num_classes, 2, 0.0))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_an_epoch_is_the_loop_that_the_papers_describe(optimizer):
    setting = SETTING.replace(optimizer=optimizer)
    ours, reference = new_model(), new_model()
    loss = Learner(GRAPH, NODES, setting, 7, "client0").epoch(ours, new_optimizer(ours, setting))

    rng = seeding.generator(7, "client0", "sampling")
    order = rng.permutation(NODES)
    trees = sample_trees(GRAPH, order, (3,) * 2, rng)
    table, losses = FeatureTable(GRAPH.features), []
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    step = kind(reference.parameters(), lr=0.1, weight_decay=0.01)
    for start in range(0, 40, 16):
        batch = order[start : start + 16]
        step.zero_grad()
        each = cross_entropy(
            reference(trees[start : start + 16], table),
            torch.from_numpy(GRAPH.labels[batch]),
            reduction="none",
        )
        each.mean().backward()
        step.step()
        losses += each.tolist()

    assert sorted(order) == NODES.tolist()
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)
    torch.testing.assert_close([*ours.parameters()], [*reference.parameters()])


def test_no_training_nodes_is_no_step():
    model = new_model()
    before = [parameter.clone() for parameter in model.parameters()]
    assert (
        Learner(GRAPH, NODES[:0], SETTING, 0, "client0").epoch(model, new_optimizer(model, SETTING))
        == 0
    )
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
