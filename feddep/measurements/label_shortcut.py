"""Do generated neighbours tell the classifier F a training node's own label?

Prototypes are means of embeddings, and the encoder of these was trained on the labels of the training nodes.  So the prototype of
a node's cluster may tell the label of a training node, where it tells that of a test node no better than a classifier does.
DGen learns to generate prototypes from a node's surroundings; F is trained on what it generates, and is tested with z̄ = 0.

Who reads labels, and off what (reader and input of the table):

* ``prototype``: the majority label of the training nodes of a cluster, read for a node off its own embedding (``embedding``), and
  off what is generated for it (``generated``, nodes for which something is), by the nearest prototype of the client;
* ``halves``: the same off embeddings of an encoder that has seen only one half of the training nodes, for that half (``seen``)
  and for the other (``unseen``), both ways round: nothing but the label's being seen tells the halves apart;
* ``classifier``: F on the clients' mended subgraphs, with z̄ as ``generated``, with ``zero`` in its place, and ``permuted`` among
  the nodes of a client.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from feddep.experiment.plan import Run
from feddep.graph.split import PARTS, Split
from feddep.measurements import CLASSIFIER, Tables
from feddep.methods.feddep import PRETRAINING, PROTOTYPES, FedDEPParameters, mending
from feddep.methods.feddep.classifier import MendedEvaluator
from feddep.methods.method import StepResult, run_steps
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import method_title
from feddep.training.task import Task
from feddep.utils import seeding

_CELL = ["setting", "dataset", "method", "clients", "reader", "input", "nodes"]
_NOTES = """\
*Prototype*: the label that a node's nearest prototype of its own client stands for, the majority label of the training nodes of
its cluster: right for how many of the *train*ing, *val*idation and *test* nodes. *Of halves*: the same where the encoder was
trained on one half of the training nodes, for that half (*seen*) and for the other (*unseen*), both ways round. *Generated*: off
z̄_v in place of v's own embedding, for nodes with z̄_v ≠ 0.

*F*: accuracy of the trained classifier, at its best round, on the clients' mended subgraphs, with z̄ as *generated*, with *zero*
in its place, and *permuted* among a client's nodes. A classifier that reads its training nodes' labels off z̄ loses without it.

All nodes of all clients together; mean ± sample standard deviation over seeds.
"""
_PROTOTYPE = {
    "prototype: train": ("prototype", "embedding", "train"),
    "val": ("prototype", "embedding", "val"),
    "test": ("prototype", "embedding", "test"),
    "of halves: seen": ("halves", "seen", "train"),
    "unseen": ("halves", "unseen", "train"),
    "generated: train": ("prototype", "generated", "train"),
    "generated: val": ("prototype", "generated", "val"),
}
_CLASSIFIER = {
    f"F, {part}: {source}": ("classifier", source, part)
    for part in ("train", "val")
    for source in ("generated", "zero", "permuted")
}
"""The columns of the page: reader, input and nodes."""


def measure(run: Run, task: Task, parameters: FedDEPParameters, results: Mapping[str, StepResult]) -> Tables:
    """Who reads labels off what.

    Returns:
        ``label_shortcut``: rows with reader and input as above; nodes: train, val or test; correct: how many of them get their
        label, and count: of how many, over all clients.
    """
    embedded = results["pretrain"], results["prototypes"]
    total: dict[tuple[str, str, str], np.ndarray] = {}

    def add(reader: str, source: str, part: str, right: np.ndarray) -> None:
        counts = total.setdefault((reader, source, part), np.zeros(2, dtype=int))
        counts += right.sum(), right.size

    mended = results["generator"].of_clients("mended")
    read = zip(task.subgraphs(), mended, *_read(task, embedded, mended), strict=True)
    for i, ((graph, split), z, by_embedding, by_generated) in enumerate(read):
        model: Any = mending.new_classifier(task, parameters)
        model.load_state_dict(results[CLASSIFIER].tensors)
        order = seeding.generator(task.seed, f"client{i}", "label shortcut").permutation(graph.num_nodes)
        classes = {}
        for source, read_off in {"generated": z, "zero": torch.zeros_like(z), "permuted": z[torch.from_numpy(order)]}.items():
            evaluator = MendedEvaluator(graph, model, read_off, task.device)
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
        for (graph, seen), (_, unseen), labels in zip(half.subgraphs(), other.subgraphs(), of_halves, strict=True):
            for source, nodes in (("seen", seen.train), ("unseen", unseen.train)):
                add("halves", source, "train", labels[nodes] == graph.labels[nodes])
    rows = [
        {"reader": reader, "input": source, "nodes": part, "correct": int(correct), "count": int(count)}
        for (reader, source, part), (correct, count) in total.items()
    ]
    return {"label_shortcut": rows}


def halves(task: Task) -> Iterator[tuple[Task, Task]]:
    """The task with one half of the training nodes, and with the other, both ways round; without results of steps."""
    order = seeding.generator(task.seed, "label shortcut", "halves").permutation(task.split.train)
    parts = [
        dataclasses.replace(task, split=Split(np.sort(half), task.split.val, task.split.test), step_results={})
        for half in np.array_split(order, 2)
    ]
    yield parts[0], parts[1]
    yield parts[1], parts[0]


def _read(task: Task, embedded: tuple[StepResult, StepResult], *more: list[Tensor]) -> list[list[np.ndarray]]:
    """Labels read off embeddings, and off each of ``more``, of all nodes of each client."""
    z, prototypes = embedded[0].of_clients("embeddings"), embedded[1].of_clients("prototypes")
    parts = task.subgraphs()
    stand_for = [
        meanings(nearest(of_client, own), graph.labels, split.train, len(own))
        for of_client, own, (graph, split) in zip(z, prototypes, parts, strict=True)
    ]
    return [
        [labels[nearest(points, own)] for points, own, labels in zip(source, prototypes, stand_for, strict=True)]
        for source in (z, *more)
    ]


def nearest(points: Tensor, prototypes: Tensor) -> np.ndarray:
    """Which of the prototypes, shape (C, d), is nearest to each point, shape (n, d); int64, shape (n,)."""
    return torch.cdist(points.double(), prototypes.to(points.device).double()).argmin(dim=1).cpu().numpy()


def meanings(cluster: np.ndarray, labels: np.ndarray, train: np.ndarray, count: int) -> np.ndarray:
    """The most frequent label of each cluster's training nodes, the first of equals; −1 for a cluster without any; shape (C,)."""
    votes = np.zeros((count, int(labels.max()) + 1), dtype=int)
    np.add.at(votes, (cluster[train], labels[train]), 1)
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/label_shortcut.csv and tables/label_shortcut.md."""
    summary = summarise(tables["label_shortcut"])
    return {"tables/label_shortcut.csv": summary, "tables/label_shortcut.md": markdown(summary)}


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a setting, dataset, method, number of clients, reader, input and choice of nodes, in the papers' order.

    Returns:
        seeds; accuracy_mean and accuracy_std over seeds, NaN where there is no node.
    """
    accuracy = rows["correct"] / rows["count"].where(rows["count"] > 0)
    groups = rows.assign(accuracy=accuracy).groupby(_CELL, sort=False)
    summary = groups.agg(seeds=("seed", "size"), accuracy_mean=("accuracy", "mean"), accuracy_std=("accuracy", "std"))
    return in_paper_order(summary.reset_index(), ["dataset"])


def markdown(summary: pd.DataFrame) -> str:
    """A page with two tables a dataset; a line a number of clients and method."""

    def body(block: pd.DataFrame) -> str:
        return f"{_table(block, _PROTOTYPE)}\n{_table(block, _CLASSIFIER)}"

    return f"# Labels in generated neighbours\n\n{_NOTES}\n{md.sections(summary, body)}"


def _table(block: pd.DataFrame, columns: Mapping[str, tuple[str, str, str]]) -> str:
    lines = []
    for (clients, method), rows in block.groupby(["clients", "method"], sort=False):
        of = {(row["reader"], row["input"], row["nodes"]): row for row in records(rows)}
        cells = [md.plus_minus(of[name]["accuracy_mean"], of[name]["accuracy_std"]) for name in columns.values()]
        lines.append([str(clients), method_title(str(method)), *cells])
    return md.table(["M", "", *columns], lines)
