"""FedPer: the last layer is personal (Arivazhagan et al., 2019); the layers below are averaged as
FedAvg does.
"""

from typing import Any

from torch import nn

from feddep.methods.basic import fedavg
from feddep.training.task import RunResult, Task


def upper_weights(model: nn.Module, layers: int) -> dict[str, nn.Parameter]:
    """The weights of the last layers of a model, by name."""
    weights = dict(model.named_parameters())
    names = list(dict.fromkeys(name.rpartition(".")[0] for name in weights))[-layers:]
    return {name: weight for name, weight in weights.items() if name.rpartition(".")[0] in names}


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg of all layers but the last."""
    personal = upper_weights(task.new_model(), 1)
    return fedavg.train_on(task, task.subgraphs(), shared=lambda name: name not in personal)
