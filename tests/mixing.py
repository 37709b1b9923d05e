"""Clients and comparisons for the methods that mix clients' weights."""

from functools import partial
from typing import Any

from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods.basic.fedavg import new_client
from feddep.training.task import Task


def client_of(
    task: Task,
    number: int,
    kind: Any,
    model: Any = None,
    shared: Any = lambda name: True,
    /,
    **options: Any,
) -> Any:
    """A client of a kind, without a federation."""
    model = task.new_model() if model is None else model
    schema = {name: shape for name, shape in schema_of(model).items() if shared(name)}
    client: Client = new_client(
        task,
        number,
        task.subgraphs()[number],
        Boundary({"model": schema, **REPORTS}),
        partial(kind, **options),
        model,
    )
    return client
