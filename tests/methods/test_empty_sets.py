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
from method_tasks import known, run_on

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(f"ignore::{Notice.__module__}.Notice")]
CASES = (
    "no training node",
    "no validation node",
    "no test node",
    "in no set",
    "a single node",
    "one class",
    "neighbours elsewhere",
    "no neighbour",
)
SMALL = {
    **dict.fromkeys(("pretraining_epochs", "generator_epochs", "encoder_epochs"), 2),
    **dict.fromkeys(("generator_local_epochs", "episodes", "updates", "iterations"), 2),
    **dict.fromkeys(("repetitions", "global_steps"), 1),
    **dict.fromkeys(("embedding", "generator_width", "structure_width", "proxy_width"), 4),
}


def lacking(case: str, name: str, encoder: str, full_batch: bool) -> Task:
    """A task whose client 1 of three lacks what the case says."""
    graph = planted_partition(60, 3, 3, 16, 4.0, 1.0, 4, 0.8, 0)
    owner = louvain(graph, 3, 0, delta=5).client.copy()
    split = random_split(60, {"train": 0.5, "val": 0.25, "test": 0.25}, 0)
    own, edges, labels = np.flatnonzero(owner == 1), graph.edges(), graph.labels.copy()
    empty = {
        "no training node": ["train"],
        "no validation node": ["val"],
        "no test node": ["test"],
        "in no set": ["train", "val", "test"],
    }
    for part in empty.get(case, []):
        split = dataclasses.replace(split, **{part: np.setdiff1d(getattr(split, part), own)})
    ends = (owner[edges] == 1).sum(axis=1)
    if case == "a single node":
        owner[np.setdiff1d(own, np.intersect1d(own, split.train)[:1])] = 0
    elif case == "one class":
        labels[own] = 0
    elif case == "neighbours elsewhere":
        edges = edges[ends < 2]
    elif case == "no neighbour":
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
    partition = Partition(owner, 3) if registry.find(name).partitioned else None
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
def test_it_runs_on_a_client_that_lacks_something(name, case):
    """In one of its modes: another one in the next case."""
    encoder, full_batch = modes(name)[CASES.index(case) % len(modes(name))]
    result = run_on(lacking(case, name, encoder, full_batch), name, **small(name))
    assert np.isfinite(list(result.curve.values())).all()
    assert all(torch.isfinite(weights).all() for weights in result.weights().values())


@pytest.mark.parametrize("name", registry.built_in())
def test_a_node_in_no_set_may_have_another_label_or_none(name):
    task = lacking("in no set", name, *modes(name)[-1])
    used = np.concatenate([task.split.train, task.split.val, task.split.test])
    unused = np.setdiff1d(np.arange(task.graph.num_nodes), used)
    found = []
    for label in (-1, 0, 2):
        labels = task.graph.labels.copy()
        labels[unused] = label
        graph = dataclasses.replace(task.graph, labels=labels)
        found.append(run_on(dataclasses.replace(task, graph=graph), name, **small(name)))
    without, *others = found
    for other in others:
        assert other.curve == without.curve
        assert other.communication == without.communication
        assert all(
            torch.equal(weights, other.weights()[key]) for key, weights in without.weights().items()
        )
