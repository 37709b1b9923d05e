"""A real run: the setting of the FedDEP paper on Cora with five clients, and what it must reach."""

import pytest

from feddep.graph.graph import Graph
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.methods import registry
from feddep.training.config import TrainingConfig
from feddep.training.summary import summary
from feddep.training.task import Task

# 20 of the paper's 50 rounds.
SETTING = TrainingConfig(optimizer="sgd", learning_rate=0.1, rounds=20)


@pytest.mark.data
def test_federated_training_is_better_than_local(cora: Graph):
    split = random_split(cora.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    partition = louvain(cora, 5, 0)
    accuracy = {}
    for name in ("fedavg", "local"):
        method = registry.find(name)
        task = Task(name, cora, split, partition, SETTING, 0)
        reported = summary(method.run(task, method.parameters()))
        accuracy[name] = reported["accuracy"]["best"]
    assert accuracy["fedavg"] > 0.83
    assert 0.35 < accuracy["local"] < 0.70
