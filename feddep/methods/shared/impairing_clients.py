"""Impairing of clients' subgraphs, which generators learn from."""

from typing import Any

from feddep.graph.impairing import Impaired, impair
from feddep.training.task import Part, Task
from feddep.utils import seeding


def impair_client(task: Task, how: Any, number: int, client: Part) -> Impaired:
    """Hide some of a client's nodes: ``how.hidden_share`` of those that ``how.hidden_from`` names."""
    rng = seeding.generator(task.seed, f"client{number}", "impairing")
    return impair(*client, how.hidden_share, how.hidden_from, rng)
