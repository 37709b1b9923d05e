"""Attacks on vertical training: what is memorised is found, nothing where there is nothing; bounds
on ε and their controls.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from small import small_task

from feddep.graph.graph import Graph
from feddep.methods import registry
from feddep.training.task import Task
from studies.vesper.vertical_attacks import node_membership, vertical_canaries
from studies.vesper.vertical_attacks.measure import with_known_noise
from studies.vesper.vertical_attacks.vertical_canaries import SimulatedPairs, Watched, with_canaries

pytestmark = pytest.mark.slow

KNOWN = {"weights": "detached", "bounding": "both"}


def vertical_task(**setting: Any) -> Task:
    task = small_task(None)
    changed = task.setting.replace(optimizer="adam", learning_rate=0.02, batch_size=60, **setting)
    return dataclasses.replace(task, setting=changed)


def trained(name: str, task: Task, **options: Any) -> tuple[Any, Task, Any]:
    method = registry.find(name)
    return method, task, with_known_noise(method, task, method.parameters(**options))


@pytest.mark.parametrize("name", ["vertical_mlp", "vertical_gin"])
def test_what_a_model_memorises_tells_members(name):
    """Labels that have nothing to do with the features of a node, which are its own, and few
    edges.
    """
    task, rng = vertical_task(dropout=0.0, rounds=30), np.random.default_rng(0)
    graph = Graph.from_edges(
        task.graph.edges()[::20], rng.normal(size=(240, 200)), rng.integers(4, size=240), 4
    )
    found = node_membership.measure(*trained(name, dataclasses.replace(task, graph=graph)))
    assert found["accuracy_inside"] > found["accuracy_outside"] + 0.3
    assert min(found["membership_auc"], found["entropy_auc"]) > 0.7


@pytest.mark.parametrize(
    ("name", "options"), [("vertical_gin", {}), ("gap", {"theta": 0.0, "release": "one_shot"})]
)
def test_a_model_is_asked_as_it_was_trained(name, options):
    """Without noise, on the graph that it was trained on, posteriors are those behind the
    accuracies of the last round.
    """
    method, task, parameters = trained(name, vertical_task(), bounding="none", **options)
    target = node_membership.train_inside(method, task, parameters, task.graph, "whole")
    groups = target.task.split.val, target.task.split.test
    answers = zip(node_membership.query(target, task.graph, *groups), groups, strict=True)
    right = [
        ((posteriors.argmax(axis=1) == task.graph.labels[nodes]).sum(), len(nodes))
        for posteriors, nodes in answers
    ]
    counts = target.evaluate()
    assert right == [*counts.validation, *counts.test]
    assert len(target.task.split.train) == task.graph.num_nodes


@pytest.mark.parametrize(("name", "further"), [("vertical_gin", 0), ("vesper_gcn", 3)])
def test_canaries_are_pairs_that_nothing_else_reaches(name, further):
    _, task, parameters = trained(name, vertical_task())
    world, joined = with_canaries(task, parameters, 50)
    u = task.graph.num_nodes + np.arange(50)
    assert (world.graph.degrees[np.stack([u, u + 50])] == further + joined).all()
    assert (np.asarray(world.graph.adjacency[u, u + 50]).ravel() == joined).all()
    assert 10 < joined.sum() < 40
    assert set(u) | set(u + 50) <= set(world.split.train)
    assert (world.graph.subgraph(np.arange(u[0])).edges() == task.graph.edges()).all()
    assert len(np.unique(world.graph.features[u].toarray(), axis=0)) == 1
    assert not (world.graph.features[u].multiply(world.graph.features[u + 50])).nnz


@pytest.mark.parametrize(
    ("name", "options", "messages"),
    [
        *((name, {}, 4) for name in ("vertical_gin", "vertical_gcn")),
        ("vfgnn", {"theta": 0.0}, 4),
        ("gap", {"theta": 0.0, "release": "one_shot"}, 1),
        ("vesper_gin", {"theta": 0.0, **KNOWN}, 4),
        ("vesper_gcn", {"theta": 0.0, "degree": 5}, 4),
    ],
)
def test_without_noise_the_rows_that_are_simulated_are_those_that_were_sent(
    name, options, messages
):
    method, task, parameters = trained(name, vertical_task(dropout=0.0), **options)
    world, joined = with_canaries(task, parameters, 20)
    further, compared = 3 if name == "vesper_gcn" else 0, []
    watched = Watched(20, further)

    def compare(client: int, direction: str, kind: str, payload: Any) -> None:
        if direction == "down" or ("test" not in kind and "all" not in kind):
            return
        task = watched.training.task
        nodes = task.split.test if "test" in kind else np.arange(task.graph.num_nodes)
        places = np.flatnonzero(np.isin(nodes, task.split.train[-2 * 20 :])).reshape(2, 20)
        simulated = SimulatedPairs(watched.training, further, 2).rows()[joined.astype(int), :, 0]
        compared.append(
            torch.allclose(simulated, payload["values"][places.T].flatten(2).double(), atol=1e-6)
        )

    method.run(
        dataclasses.replace(
            world, observers=(watched.receive, compare), inspectors=(watched.inspect,)
        ),
        parameters,
    )
    assert compared == [True] * messages
    assert watched.scores[joined].min() > watched.scores[~joined].max()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vertical_gin", {}),
        ("gap", {"theta": 0.05, "release": "one_shot", "bounding": "none"}),
        ("vesper_gin", {"theta": 0.05, **KNOWN}),
        ("vesper_gcn", {"theta": 0.05, "degree_ratio": 1.0, **KNOWN}),
    ],
)
def test_with_little_noise_every_edge_is_found(name, options, monkeypatch):
    monkeypatch.setattr(vertical_canaries, "CANARIES", 200)
    found = vertical_canaries.measure(*trained(name, vertical_task(), **options))
    assert found["edge_auc"] > 0.99
    assert 2.5 < found["low"] <= found["most"] < found["promised_certified"]


def test_without_message_passing_no_edge_is_found():
    found = vertical_canaries.measure(*trained("vertical_mlp", vertical_task()))
    assert (found["edge_auc"], found["low"]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("name", "options", "accountant", "finite"),
    [
        ("vesper_gin", {**KNOWN}, "certified", True),
        ("vesper_gin", {"bounding": "both"}, "certified", False),  # weights learn through edges
        ("vesper_gin", {}, "certified", False),  # and neighbours are sampled
        ("vesper_gin", {}, "rdp", True),
        ("vesper_gin", {"theta": 0.0, **KNOWN}, "rdp", False),
        ("vesper_gcn", KNOWN, "certified", False),  # degrees without noise
        ("vertical_gin", {}, "rdp", False),
    ],
)
def test_a_promise_is_finite_where_there_is_one(name, options, accountant, finite):
    method, task, parameters = trained(name, vertical_task(), **options)
    assert math.isfinite(vertical_canaries.promised(method, task, parameters, accountant)) == finite
