"""Small tasks and cases to measure."""

import dataclasses
from typing import Any

import pandas as pd

from feddep.config.loading import validate
from feddep.datasets.public_graphs import REGISTRY
from feddep.datasets.synthetic import planted_partition
from feddep.experiment.plan import Run, one_run
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.methods import registry
from feddep.methods.method import run_steps
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from studies.measuring import Case, frame, page_of, tables_of

CONFIG = validate(
    {
        **{"datasets": {"tiny": {"synthetic": {}}, **{name: {} for name in REGISTRY}}},
        **{"clients": [3], "seeds": [0], "settings": {"quick": {}}},
        "tables": [{"setting": "quick", "methods": ["fedavg"]}],
    }
)
DGEN = {
    "prototypes": 4,
    "embedding": 6,
    "pretraining_epochs": 1,
    "generator_epochs": 2,
    "hidden_from": "all",
}
EPOCHS = {"generator_local_epochs": 1, "generator_federated_epochs": 2}
NEIGHGEN = {"embedding": 6, "generator_width": 8, "generator_batch": 16, **EPOCHS}


def small_task(
    clients: int | None = 3,
    nodes: int = 240,
    delta: int = 20,
    rounds: int = 4,
    dropout: float = 0.2,
) -> Task:
    """A planted-partition graph among so many clients, or whole."""
    features = 32 if nodes == 120 else 64
    graph = planted_partition(nodes, 4, 12, features, 6.0, 1.0, 8, 0.8, 0)
    setting = TrainingConfig(
        optimizer="sgd",
        learning_rate=0.5,
        batch_size=16,
        fanout=3,
        rounds=rounds,
        hidden_channels=16,
        dropout=dropout,
    )
    partition = None if clients is None else louvain(graph, clients, 0, delta)
    return Task(
        "small",
        graph,
        random_split(nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0),
        partition,
        setting,
        0,
    )


def task_of(clients: int | None = 3, rounds: int = 2, dropout: float = 0.2) -> Task:
    """One that is small enough to be attacked."""
    return small_task(clients, 180, rounds=rounds, dropout=dropout)


def run_of(method: str, seed: int, clients: int | None, dataset: str) -> Run:
    """A run in a setting of that name."""
    return one_run(CONFIG, method, clients, seed, dataset=dataset)


def case_of(
    name: str, task: Task, steps: bool = True, dataset: str = "tiny", **changes: Any
) -> Case:
    """A method's run on a task, with the results of its steps."""
    method = registry.find(name)
    parameters = method.parameters(**changes)
    if steps:
        task = dataclasses.replace(
            task, step_results=run_steps(task, parameters, method.steps(parameters))
        )
    clients = None if task.partition is None else task.partition.num_clients
    return Case(run_of(name, task.seed, clients, dataset), task, method, parameters)


def measured(kind: str, case: Case) -> pd.DataFrame:
    """The only table that a study makes of a run."""
    (rows,) = tables_of(kind, case).values()
    return frame(rows)


def of_run(
    method: str = "feddep", seed: int = 0, clients: int | None = 3, dataset: str = "cora"
) -> dict[str, Any]:
    """The columns of a run."""
    return run_of(method, seed, clients, dataset).columns


def page(kind: str, **tables: list[dict[str, Any]]) -> dict[str, Any]:
    """The files of a page."""
    return page_of(kind, [tables])
