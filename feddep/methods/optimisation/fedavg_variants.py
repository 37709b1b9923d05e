"""FedAvg with one thing of the setting changed, so that it can stand in a table beside FedAvg."""

import dataclasses
from typing import Any

from feddep.methods.basic import fedavg
from feddep.training.task import RunResult, Task


def run_closed(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg of FedDEP's layers without embeddings: what is left of FedDEP's classifier where
    nothing is generated.
    """
    return _run_with(task, encoder="sage_selfloop")


def run_longer(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg with M times as many local epochs: in a round the clients' longest chain of steps is
    as long as Global's.
    """
    return _run_with(task, local_epochs=task.setting.local_epochs * task.ownership.num_clients)


def _run_with(task: Task, **changes: Any) -> RunResult:
    return fedavg.run(dataclasses.replace(task, setting=task.setting.replace(**changes)))
