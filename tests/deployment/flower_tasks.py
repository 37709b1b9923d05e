"""Small federations to test on: a task, its simulation, and folders for its participants."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from feddep.deployment import client_folders
from feddep.deployment.client_folders import Federation
from feddep.training.task import RunResult, Task
from method_tasks import run_on, task_of

ROUNDS = 3
OPTIONS: dict[str, dict[str, Any]] = {
    "feddep": {"embedding": 8, "pretraining_epochs": 3},
    "fedsage_plus": {
        "embedding": 8,
        "generator_width": 8,
        "generator_local_epochs": 1,
        "generator_federated_epochs": 2,
        "generator_batch": 66,  # more nodes than two of the clients keep
        "hidden_from": "validation",
        "hidden_share": 0.9,
    },
}
KEY = "0" * 64
PROCESSES = [pytest.mark.slow, pytest.mark.timeout(1200)]
"""Marks of tests that start processes: a minute each on a machine that has nothing else to do."""


def small_task(rounds: int = ROUNDS, method: str = "fedavg") -> Task:
    """A task with three clients."""
    task = task_of(method)
    return dataclasses.replace(task, setting=task.setting.replace(rounds=rounds))


def federation_of(task: Task, method: str = "fedavg", secure: bool = False) -> Federation:
    """What the participants know of it."""
    named = {"name": method, **OPTIONS.get(method, {})}
    specification = {"method": named, "setting": task.setting.model_dump(mode="json"), "seed": task.seed}
    assert task.partition is not None
    return Federation(KEY, specification, task.partition.num_clients, task.graph.num_features, task.graph.num_classes, 1, secure)


def cut(task: Task, directory: Path, secure: bool = False) -> Path:
    """Write the participants' folders; the method is the one that the task is called by."""
    client_folders.cut(task, federation_of(task, task.name, secure), directory)
    return directory


def simulated(task: Task) -> RunResult:
    """The same training in one process."""
    return run_on(task, task.name, **OPTIONS.get(task.name, {}))
