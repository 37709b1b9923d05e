"""A real run: the setting of the FedDEP paper on Cora with five clients, and what it must reach."""

from feddep import frameworks
from feddep.graph import Graph
from feddep.partition import louvain
from feddep.problem import Problem
from feddep.settings import Setting
from feddep.splits import random_split

SETTING = Setting("sgd", 0.1, 0.0, 32, 5, 20, 1, 2, 128, 0.5)  # 20 of the paper's 50 rounds


def test_federated_training_comes_near_global_and_local_does_not(cora: Graph):
    split = random_split(cora.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    partition = louvain(cora, 5, 0)
    accuracy = {}
    for name in ("global", "fedavg", "local"):
        framework = frameworks.load(name)
        problem = Problem(name, cora, split, partition if framework.PARTITIONED else None, SETTING, 0)
        histories = framework.run(problem, framework.Parameters()).histories
        accuracy[name] = sum(history.best_test for history in histories) / len(histories)
    assert accuracy["global"] > 0.84
    assert accuracy["fedavg"] > 0.83
    assert 0.35 < accuracy["local"] < 0.70
