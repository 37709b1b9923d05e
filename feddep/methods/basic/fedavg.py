"""FedAvg: one classifier trained across the clients' subgraphs, cross-subgraph links missing.

FedDEP, Section 4.1, "FedAvg"; FedSage, Section 3.3, "FedSage" (without its neighbour generator).
"""

from collections.abc import Callable, Sequence
from typing import Any

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, ByClient, Payload, Schema
from feddep.federation.client import EXTRA, REPORTS, Client
from feddep.federation.server import Server
from feddep.training.evaluator import Evaluator
from feddep.training.learner import new_learner
from feddep.training.task import ClientData, RunResult, Task

NewClient = Callable[..., Client]
"""Called like :class:`feddep.federation.client.Client`."""
NewServer = Callable[[Payload, str], Server]
"""Called like :class:`feddep.federation.server.Server`."""


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg on the clients' subgraphs."""
    return train_on(task, task.subgraphs())


def train_on(
    task: Task,
    parts: Sequence[ClientData],
    client: NewClient = Client,
    server: NewServer = Server,
    new_model: Callable[[], Any] | None = None,
    extra: Schema | ByClient | None = None,
    shared: Callable[[str], bool] = lambda name: True,
) -> RunResult:
    """FedAvg on the given graphs and splits, one a client, by such clients and such a server.

    Args:
        task: the task.
        parts: what clients train and validate on.
        client: makes the clients.
        server: makes the server.
        new_model: makes a classifier with the run's initial weights; by default
            :meth:`feddep.training.task.Task.new_model`.
        extra: names and shapes of what the clients send beside weights and reports.
        shared: of the name of a weight or buffer, whether it is exchanged; what is not stays with
            each client.
    """
    new_model = new_model or task.new_model
    model = new_model()
    exchanged = {name: tensor for name, tensor in model.state_dict().items() if shared(name)}
    schema = {name: tuple(tensor.shape) for name, tensor in exchanged.items()}
    kinds = {"model": schema, **REPORTS, **({} if extra is None else {EXTRA: extra})}
    boundary = Boundary(kinds, task.observers)
    clients = [
        new_client(task, i, part, boundary, client, new_model()) for i, part in enumerate(parts)
    ]
    return train_federated(
        task, model, boundary, clients, server=server(exchanged, task.setting.client_weights)
    )


def new_client(
    task: Task,
    number: int,
    part: ClientData,
    boundary: Boundary,
    client: NewClient = Client,
    model: Any = None,
    stream: str | None = None,
) -> Client:
    """A client that trains and validates a ``model``, by default a new one, on its subgraph as it
    is.

    Its random streams bear the name ``stream``, by default its number.
    """
    graph, split = part
    model = task.new_model() if model is None else model
    evaluator = Evaluator(graph, task.device, model.aggregation)
    learner = new_learner(
        graph,
        split.train,
        task.setting,
        task.seed,
        stream or f"client{number}",
        task.device,
        evaluator,
    )
    return client(number, model, learner, evaluator, split, task.setting, boundary)
