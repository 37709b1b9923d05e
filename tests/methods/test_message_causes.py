"""A client's messages are computed from its own data and from what was sent to it: with another
client's data changed, none of its messages changes before one that it received.
"""

import dataclasses
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch

from feddep.graph.graph import Graph
from feddep.methods import registry
from feddep.methods.method import ORACLE
from feddep.training.task import Task
from method_tasks import CLIENTS, Message, observed, task_of

METHODS = [
    name
    for name, method in registry.built_in().items()
    if method.partitioned and ORACLE not in method.assumes
]
"""An oracle's clients know what nobody told them, by definition."""
FULL = {"encoder": "gcn", "full_batch": True}


def changed_client(task: Task, client: int) -> Task:
    """The task with other features, labels and inner edges at one client; who is joined to whom
    across clients, and which nodes are in which set, stay.
    """
    assert task.partition is not None
    graph, nodes = task.graph, task.partition.nodes(client)
    features, labels = graph.features.tolil(), graph.labels.copy()
    features[nodes] = features[nodes[::-1]]
    labels[nodes] = (labels[nodes] + 1) % graph.num_classes
    edges = graph.edges()
    inner = np.isin(edges, nodes).all(axis=1)
    # Every other inner edge is gone.
    gone = np.flatnonzero(inner)[::2]
    kept = np.delete(edges, gone, axis=0)
    changed = Graph.from_edges(kept, features.tocsr(), labels, graph.num_classes)
    return dataclasses.replace(task, graph=changed)


def by_client(task: Task, name: str, **changes: Any) -> dict[int, list[Message]]:
    """What each client sent and received, in order."""
    seen: defaultdict[int, list[Message]] = defaultdict(list)
    for message in observed(task, name, **changes)[1]:
        seen[message.client].append(message)
    return seen


def first_difference(ours: list[Message], theirs: list[Message]) -> Message | None:
    """The first of our messages that is not theirs; None if all are."""
    for one, other in zip(ours, theirs, strict=False):
        same = one[:3] == other[:3] and one.payload.keys() == other.payload.keys()
        if not same or not all(
            torch.equal(one.payload[key], other.payload[key]) for key in one.payload
        ):
            return one
    return None


@pytest.mark.parametrize(
    ("name", "options", "setting"),
    [
        *((name, {}, {}) for name in METHODS),
        *((name, {}, FULL) for name in ("feddep", "fedgraph", "fedgsl", "fedsage_plus")),
        ("fedgcn", {"hops": 1}, {}),
        ("answers_private_labels", {"labels": True}, {}),
    ],
)
def test_no_message_depends_on_what_a_client_was_not_told(
    name: str, options: dict[str, Any], setting: dict[str, Any]
):
    task = task_of(name, rounds=2, **setting)
    before = by_client(task, name, **options)
    after = by_client(changed_client(task, CLIENTS - 1), name, **options)
    for client in range(CLIENTS - 1):
        differing = first_difference(before[client], after[client])
        assert differing is None or differing.direction == "down", differing.kind
    own = first_difference(before[CLIENTS - 1], after[CLIENTS - 1])
    assert own is not None or not before[CLIENTS - 1]
