"""A small task to test every method on."""

import dataclasses
import gc
import inspect
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, louvain
from feddep.graph.split import random_split, within_clients_split
from feddep.methods import registry, vesper
from feddep.methods.method import StepResult, run_steps
from feddep.training.config import TrainingConfig
from feddep.training.task import RunResult, Task
from feddep.utils.parameters import Parameters

ROUNDS = 4
CLIENTS = 3
OWNED = {"full_batch": True, "encoder": "gcn", "evaluation": "owners"}
"""A setting in which owners judge training on all nodes at once."""
VERTICAL = [method.name for method in vesper.METHODS]
FEW_EPOCHS = {"pretraining_epochs": 4, "generator_local_epochs": 3, "encoder_epochs": 10}


def task_of(name: str, seed: int = 0, clients: int = CLIENTS, **changes: Any) -> Task:
    """The task of a method of this name, with changes to its setting."""
    graph = planted_partition(240, 4, 12, 64, 6.0, 1.0, 8, 0.8, 0)
    partition = louvain(graph, clients, seed) if registry.find(name).partitioned else None
    split = random_split(graph.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, seed)
    setting = TrainingConfig(
        optimizer="sgd",
        learning_rate=0.5,
        batch_size=16,
        fanout=3,
        rounds=ROUNDS,
        hidden_channels=16,
        dropout=0.2,
    )
    if name in VERTICAL or "fedstar" in name:  # deeper, and trained by Adam in their papers
        setting = setting.replace(optimizer="adam", learning_rate=0.02)
    if not registry.find(name).mini_batch:
        setting = setting.replace(encoder="gcn", full_batch=True, local_epochs=8)  # of one step
    return Task(name, graph, split, partition, setting.replace(**changes), seed)


def owned_task(name: str, graph: Graph, owner: np.ndarray, **setting: Any) -> Task:
    """A task in which ``owner`` says whose node is whose, split within clients."""
    partition = Partition(owner, int(owner.max()) + 1)
    split = within_clients_split(graph, partition, {"train": 0.4, "val": 0.3}, 0)
    return Task(name, graph, split, partition, TrainingConfig(**{**OWNED, **setting}), 0)


def without_cross_edges(name: str) -> Task:
    """The same task, whose clients have no edges to each other."""
    task = task_of(name)
    assert task.partition is not None
    graph, owner = task.graph, task.partition.client
    edges = graph.edges()
    inner = edges[owner[edges[:, 0]] == owner[edges[:, 1]]]
    return dataclasses.replace(
        task, graph=Graph.from_edges(inner, graph.features, graph.labels, graph.num_classes)
    )


def same_runs(ours: RunResult, theirs: RunResult) -> bool:
    """Whether two runs are the same to the last bit: what is measured, the best weights and what is
    sent.
    """
    weights = ours.weights()
    return (
        all(torch.equal(weights[name], tensor) for name, tensor in theirs.weights().items())
        and on_graph(ours) == on_graph(theirs)
        and ours.curve == theirs.curve
        and ours.communication == theirs.communication
    )


def on_graph(result: RunResult) -> list[list[tuple[float, ...]]]:
    """Test and validation accuracy on the global graph, round by round and model by model."""
    return [[accuracy[:2] for accuracy in models] for models in result.history.on_graph]


def parameters_of(name: str, **changes: Any) -> Parameters:
    """A method's parameters."""
    return registry.find(name).parameters(**changes)


def known(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Those of some options that a method has."""
    fields = registry.find(name).parameters.model_fields
    return {key: value for key, value in options.items() if key in fields}


def few_epochs(name: str) -> dict[str, Any]:
    """Of what a method computes before its classifier: enough to run it."""
    federated = {"generator_federated_epochs": 2} if name.startswith("fedsage_plus") else {}
    return known(name, FEW_EPOCHS) | federated


def steps_of(name: str, task: Task, parameters: Parameters) -> dict[str, StepResult]:
    """Results of the method's steps by stage."""
    return run_steps(task, parameters, registry.find(name).steps(parameters))


def run_on(task: Task, name: str, **changes: Any) -> RunResult:
    """Run a method on a task."""
    return registry.find(name).run(task, parameters_of(name, **changes))


def train(name: str, seed: int = 0, clients: int = CLIENTS, **changes: Any) -> RunResult:
    """Run a method on the small task, few epochs before its classifier."""
    return run_on(task_of(name, seed, clients), name, **{**few_epochs(name), **changes})


class Message(NamedTuple):
    """What crosses the boundary."""

    client: int
    direction: str
    kind: str
    payload: dict[str, torch.Tensor]


def observed(task: Task, name: str, **changes: Any) -> tuple[RunResult, list[Message]]:
    """Run a method on a task, few epochs before its classifier; with all that crosses, in order."""
    crossed: list[Message] = []

    def listen(client: int, direction: str, kind: str, payload: dict[str, torch.Tensor]) -> None:
        copies = {key: tensor.clone() for key, tensor in payload.items()}
        crossed.append(Message(client, direction, kind, copies))

    task = dataclasses.replace(task, observers=(listen,))
    return run_on(task, name, **{**few_epochs(name), **changes}), crossed


def watch(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[dict[str, Any]]:
    """The arguments, by name, of all calls to come of a function, which does what it did."""
    calls: list[dict[str, Any]] = []
    function = getattr(owner, name)

    def noted(*given: Any, **named: Any) -> Any:
        calls.append(inspect.signature(function).bind(*given, **named).arguments)
        return function(*given, **named)

    monkeypatch.setattr(owner, name, noted)
    return calls


def counted(
    communication: Sequence[dict[str, Any]], *kinds: str
) -> dict[tuple[int, str, str], tuple[int, int]]:
    """Messages and bytes by client, direction and kind, of kinds that begin with one of
    ``kinds``.
    """
    return {
        (row["client"], row["direction"], row["kind"]): (row["messages"], row["bytes"])
        for row in communication
        if not kinds or row["kind"].startswith(kinds)
    }


def reachable(root: Any) -> Iterator[Any]:
    """Every object that can be reached from ``root`` without passing through a module, class or
    function.
    """
    waiting, seen = [root], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, types.ModuleType | type | types.FunctionType):
            continue
        seen.add(id(item))
        yield item
        waiting.extend(gc.get_referents(item))
