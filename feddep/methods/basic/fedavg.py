"""FedAvg: one GraphSAGE trained across the clients' subgraphs, cross-subgraph links missing.

FedDEP, Section 4.1, "FedAvg"; FedSage, Section 3.3, "FedSage" (without its neighbour generator).
"""

from collections.abc import Sequence
from typing import Any

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner
from feddep.training.task import Part, RunResult, Task


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg on the clients' subgraphs."""
    return train_on(task, task.subgraphs())


def train_on(task: Task, parts: Sequence[Part]) -> RunResult:
    """FedAvg on the given graphs and splits, one a client."""
    model = task.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    return train_federated(task, model, boundary, [new_client(task, i, part, boundary) for i, part in enumerate(parts)])


def new_client(task: Task, number: int, part: Part, boundary: Boundary) -> Client:
    """A client that trains and validates on its subgraph as it is; its random streams bear its number."""
    graph, split = part
    learner = Learner(graph, split.train, task.setting, task.seed, f"client{number}", task.device)
    evaluator = Evaluator(graph, task.device)
    return Client(number, task.new_model(), learner, evaluator, split.val, task.setting, boundary)
