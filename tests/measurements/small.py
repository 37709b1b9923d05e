"""A small task to measure on."""

from typing import Any

from feddep.datasets.synthetic import planted_partition
from feddep.experiment.plan import Run
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.training.config import TrainingConfig
from feddep.training.task import Task

SHARES = {"train": 0.6, "val": 0.2, "test": 0.2}


def small_task(name: str, clients: int | None = 3, nodes: int = 240, delta: int = 20) -> Task:
    """A planted-partition graph among so many clients, or whole."""
    features = 64 if nodes == 240 else 32
    graph = planted_partition(nodes, 4, 12, features, 6.0, 1.0, 8, 0.8, 0)
    setting = TrainingConfig(learning_rate=0.5, batch_size=16, fanout=3, rounds=4, hidden_channels=16, dropout=0.2)
    partition = None if clients is None else louvain(graph, clients, 0, delta)
    return Task(name, graph, random_split(nodes, SHARES, 0), partition, setting, 0)


def of_run(run: Run) -> dict[str, Any]:
    """The columns of a run."""
    return {part: getattr(run, part) for part in ("setting", "dataset", "clients", "method", "seed")}
