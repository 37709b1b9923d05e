"""A run small enough to attack in a test."""

from feddep.datasets.synthetic import planted_partition
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.training.config import TrainingConfig
from feddep.training.task import Task


def task_of(clients: int = 3, rounds: int = 2, dropout: float = 0.2) -> Task:
    """180 nodes in 12 communities, divided among clients."""
    graph = planted_partition(180, 4, 12, 64, 6.0, 1.0, 8, 0.8, 0)
    split = random_split(graph.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    setting = TrainingConfig(learning_rate=0.5, batch_size=16, fanout=3, rounds=rounds, hidden_channels=16, dropout=dropout)
    return Task("audited", graph, split, louvain(graph, clients, 0), setting, 0)
