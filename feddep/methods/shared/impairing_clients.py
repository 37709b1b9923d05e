"""Impairing of clients' subgraphs, which generators learn from."""

from typing import Any

from feddep.graph.impairing import Impaired, impair
from feddep.training.task import ClientData, Task
from feddep.utils import seeding
from feddep.utils.errors import ConfigError


def impair_client(task: Task, params: Any, number: int, client: ClientData) -> Impaired:
    """Hide some of a client's nodes: ``params.hidden_share`` of those that ``params.hidden_from``
    names.

    Raises:
        ConfigError: if no node would remain.
    """
    rng = seeding.generator(task.seed, f"client{number}", "impairing")
    impaired = impair(*client, params.hidden_share, params.hidden_from, rng)
    if not len(impaired.kept):
        raise ConfigError(
            f"hidden_share {params.hidden_share} of hidden_from {params.hidden_from} hides all "
            f"{len(impaired.hidden)} nodes of "
            f"client {number}; lower hidden_share"
        )
    return impaired
