"""Every method on clients that lack something: it runs, and all that it reports is finite."""

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, louvain
from feddep.graph.split import random_split
from feddep.methods import registry
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from feddep.utils.errors import Notice
from method_tasks import known, run_on, same_runs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(f"ignore::{Notice.__module__}.Notice")]
CASES = {
    "sets": ("no training node", "no validation node", "no test node", "in no set"),
    "graphs": ("a single node", "one class", "neighbours elsewhere", "no neighbour"),
}
"""What clients 1 to 4 lack."""
EMPTY = {
    "no training node": ["train"],
    "no validation node": ["val"],
    "no test node": ["test"],
    "in no set": ["train", "val", "test"],
}
SMALL = {
    **dict.fromkeys(("pretraining_epochs", "generator_epochs", "encoder_epochs"), 2),
    **dict.fromkeys(("generator_local_epochs", "episodes", "updates", "iterations"), 2),
    **dict.fromkeys(("repetitions", "global_steps"), 1),
    **dict.fromkeys(("embedding", "generator_width", "structure_width", "proxy_width"), 4),
}


def lacking(case: str, name: str, encoder: str, full_batch: bool) -> Task:
    """A task of five clients, of which the first alone lacks nothing."""
    graph = planted_partition(100, 3, 5, 16, 4.0, 1.0, 4, 0.8, 0)
    owner = louvain(graph, 5, 0, delta=5).client.copy()
    split = random_split(100, {"train": 0.5, "val": 0.25, "test": 0.25}, 0)
    edges, labels = graph.edges(), graph.labels.copy()
    for client, lacks in enumerate(CASES[case], start=1):
        own, ends = np.flatnonzero(owner == client), (owner[edges] == client).sum(axis=1)
        for part in EMPTY.get(lacks, []):
            split = dataclasses.replace(split, **{part: np.setdiff1d(getattr(split, part), own)})
        if lacks == "a single node":
            owner[np.setdiff1d(own, np.intersect1d(own, split.train)[:1])] = 0
        elif lacks == "one class":
            labels[own] = 0
        elif lacks == "neighbours elsewhere":
            edges = edges[ends < 2]
        elif lacks == "no neighbour":
            edges = edges[ends < 1]
    setting = TrainingConfig(
        optimizer="sgd",
        learning_rate=0.1,
        batch_size=8,
        fanout=3,
        rounds=2,
        hidden_channels=8,
        encoder=encoder,
        full_batch=full_batch,
    )
    partition = Partition(owner, 5) if registry.find(name).partitioned else None
    graph = Graph.from_edges(edges, graph.features, labels, graph.num_classes)
    return Task(name, graph, split, partition, setting, 0)


def modes(name: str) -> list[tuple[str, bool]]:
    """The encoders and batches that a method declares, of sage and gcn."""
    method = registry.find(name)
    return [
        (encoder, full_batch)
        for encoder, full_batch in product(("sage", "gcn"), (False, True))
        if encoder in (method.encoders if full_batch else method.sampled or method.encoders)
        and (method.full_batch if full_batch else method.mini_batch)
    ]


def small(name: str) -> dict[str, Any]:
    """Parameters of a method with which it is fast."""
    generators = {"generator_federated_epochs": 1} if name.startswith("fedsage_plus") else {}
    return known(name, SMALL) | generators


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", registry.built_in())
def test_it_runs_on_clients_that_lack_something(name, case):
    """In every other one of its modes: the others have the other case."""
    first = list(CASES).index(case) % len(modes(name))
    for encoder, full_batch in modes(name)[first::2]:
        result = run_on(lacking(case, name, encoder, full_batch), name, **small(name))
        assert np.isfinite(list(result.curve.values())).all()
        assert all(torch.isfinite(weights).all() for weights in result.weights().values())


@pytest.mark.parametrize("name", registry.built_in())
def test_a_node_in_no_set_may_have_another_label_or_none(name):
    task = lacking("sets", name, *modes(name)[-1])
    used = np.concatenate([task.split.train, task.split.val, task.split.test])
    unused = np.setdiff1d(np.arange(task.graph.num_nodes), used)
    labels = task.graph.labels.copy()
    labels[unused] = -1
    without = dataclasses.replace(task, graph=dataclasses.replace(task.graph, labels=labels))
    ours, theirs = (run_on(each, name, **small(name)) for each in (task, without))
    assert same_runs(ours, theirs)
