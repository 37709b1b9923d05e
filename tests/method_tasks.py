"""A small task to test every method on."""

import dataclasses
import gc
import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.methods import registry, vesper
from feddep.methods.method import StepResult, run_steps
from feddep.training.config import TrainingConfig
from feddep.training.task import RunResult, Task
from feddep.utils.parameters import Parameters

ROUNDS = 4
CLIENTS = 3
VERTICAL = [method.name for method in vesper.METHODS]
FEW_EPOCHS = {"pretraining_epochs": 10, "generator_local_epochs": 5, "encoder_epochs": 10}
"""Of what methods compute before their classifiers: enough to run it."""


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
    """Whether two runs of one model are the same to the last bit: what is measured, the best
    weights and what is sent.
    """
    weights = ours.weights()
    return (
        all(torch.equal(weights[name], tensor) for name, tensor in theirs.weights().items())
        and global_validations(ours) == global_validations(theirs)
        and ours.curve == theirs.curve
        and ours.communication == theirs.communication
    )


def global_validations(result: RunResult) -> list[float]:
    """Validation accuracy of one model on the global graph, round by round."""
    return [accuracy.validation for (accuracy,) in result.history.on_graph]


def parameters_of(name: str, **changes: Any) -> Parameters:
    """A method's parameters."""
    return registry.find(name).parameters(**changes)


def known(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Those of some options that a method has."""
    fields = registry.find(name).parameters.model_fields
    return {key: value for key, value in options.items() if key in fields}


def steps_of(name: str, task: Task, parameters: Parameters) -> dict[str, StepResult]:
    """Results of the method's steps by stage."""
    return run_steps(task, parameters, registry.find(name).steps(parameters))


def run_on(task: Task, name: str, **changes: Any) -> RunResult:
    """Run a method on a task."""
    return registry.find(name).run(task, parameters_of(name, **changes))


def train(
    name: str,
    seed: int = 0,
    clients: int = CLIENTS,
    observers: Sequence[Any] = (),
    task: Task | None = None,
    **changes: Any,
) -> RunResult:
    """Run a method on a task, by default the small one, few epochs before its classifier."""
    task = task or dataclasses.replace(task_of(name, seed, clients), observers=observers)
    return run_on(task, name, **{**known(name, FEW_EPOCHS), **changes})


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
