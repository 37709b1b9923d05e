"""Do generated neighbours tell the classifier F a training node's own label?

Prototypes are means of embeddings, and the encoder of these was trained on the labels of the
training nodes.  So the prototype of a node's cluster may tell the label of a training node, where
it tells that of a test node no better than a classifier does. DGen learns to generate prototypes
from a node's surroundings; F is trained on what it generates, and is tested with z̄ = 0.

Who reads labels, and off what (reader and input of the table):

* ``prototype``: the majority label of the training nodes of a cluster, read for a node off its own
  embedding (``embedding``), and off what is generated for it (``generated``, nodes for which
  something is), by the nearest prototype of the client;
* ``halves``: the same off embeddings of an encoder that has seen only one half of the training
  nodes, for that half (``seen``) and for the other (``unseen``), both ways round: nothing but the
  label's being seen tells the halves apart;
* ``classifier``: F on the clients' mended subgraphs, with z̄ as ``generated``, with ``zero`` in its
  place, and ``permuted`` among the nodes of a client.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.graph.split import PARTS, Split
from feddep.methods.feddep import PRETRAINING, PROTOTYPES, mending
from feddep.methods.method import StepResult, run_steps
from feddep.training.evaluator import Evaluator
from feddep.training.task import Task
from feddep.utils import seeding
from studies.measuring import Case, Tables


def measure(case: Case) -> Tables:
    """Who reads labels off what.

    Returns:
        ``label_shortcut``: rows with reader and input as above; nodes: train, val or test; correct:
            how many of them get their
        label, and count: of how many, over all clients.
    """
    task, parameters = case.task, case.parameters
    embedded = case.step("pretrain"), case.step("prototypes")
    answers: dict[tuple[str, str, str], list[np.ndarray]] = {}

    def add(reader: str, source: str, part: str, right: np.ndarray) -> None:
        answers.setdefault((reader, source, part), []).append(right)

    mended = case.step("generator").of_clients("mended")
    read = zip(task.subgraphs(), mended, *_read(task, embedded, mended), strict=True)
    for i, ((graph, split), z, by_embedding, by_generated) in enumerate(read):
        model: Any = mending.new_classifier(task, parameters)
        model.load_state_dict(case.weights)
        order = seeding.generator(task.seed, f"client{i}", "label shortcut").permutation(
            graph.num_nodes
        )
        classes = {}
        for source, read_off in {
            "generated": z,
            "zero": torch.zeros_like(z),
            "permuted": z[torch.from_numpy(order)],
        }.items():
            evaluator = Evaluator(graph, task.device, model.aggregation, read_off)
            classes[source] = evaluator.logits(model.eval()).argmax(dim=1).cpu().numpy()
        some = z.any(dim=1).cpu().numpy()
        for part in PARTS:
            nodes = getattr(split, part)
            filled = nodes[some[nodes]]
            add("prototype", "embedding", part, by_embedding[nodes] == graph.labels[nodes])
            add("prototype", "generated", part, by_generated[filled] == graph.labels[filled])
            for source, found in classes.items():
                add("classifier", source, part, found[nodes] == graph.labels[nodes])
    for half, other in halves(task):
        steps = run_steps(half, parameters, (PRETRAINING, PROTOTYPES))
        (of_halves,) = _read(half, (steps["pretrain"], steps["prototypes"]))
        for (graph, seen), (_, unseen), labels in zip(
            half.subgraphs(), other.subgraphs(), of_halves, strict=True
        ):
            for source, nodes in (("seen", seen.train), ("unseen", unseen.train)):
                add("halves", source, "train", labels[nodes] == graph.labels[nodes])
    rows = []
    for (reader, source, part), of_clients in answers.items():
        right = np.concatenate(of_clients)
        rows.append(
            {
                "reader": reader,
                "input": source,
                "nodes": part,
                "correct": int(right.sum()),
                "count": len(right),
            }
        )
    return {"label_shortcut": rows}


def halves(task: Task) -> Iterator[tuple[Task, Task]]:
    """The task with one half of the training nodes, and with the other, both ways round; without
    results of steps.
    """
    order = seeding.generator(task.seed, "label shortcut", "halves").permutation(task.split.train)
    splits = [
        Split(np.sort(half), task.split.val, task.split.test) for half in np.array_split(order, 2)
    ]
    one, other = (dataclasses.replace(task, split=split, step_results={}) for split in splits)
    yield from ((one, other), (other, one))


def _read(
    task: Task, embedded: tuple[StepResult, StepResult], *more: list[Tensor]
) -> list[list[np.ndarray]]:
    """Labels read off embeddings, and off each of ``more``, of all nodes of each client."""
    z, prototypes = embedded[0].of_clients("embeddings"), embedded[1].of_clients("prototypes")
    parts = task.subgraphs()
    stand_for = [
        meanings(nearest(of_client, own), graph.labels, split.train, len(own))
        for of_client, own, (graph, split) in zip(z, prototypes, parts, strict=True)
    ]
    return [
        [
            labels[nearest(points, own)]
            for points, own, labels in zip(source, prototypes, stand_for, strict=True)
        ]
        for source in (z, *more)
    ]


def nearest(points: Tensor, prototypes: Tensor) -> np.ndarray:
    """Which of the prototypes, shape (C, d), is nearest to each point, shape (n, d); int64, shape
    (n,).
    """
    return (
        torch.cdist(points.double(), prototypes.to(points.device).double())
        .argmin(dim=1)
        .cpu()
        .numpy()
    )


def meanings(cluster: np.ndarray, labels: np.ndarray, train: np.ndarray, count: int) -> np.ndarray:
    """The most frequent label of each cluster's training nodes, the first of equals; −1 for a
    cluster without any; shape (C,).
    """
    votes = np.zeros((count, int(labels.max()) + 1), dtype=int)
    np.add.at(votes, (cluster[train], labels[train]), 1)
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
