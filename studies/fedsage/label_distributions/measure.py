"""Which labels clients hold, and which labels trained models predict on the global graph (FedSage,
Figure 4).
"""

import re
from collections.abc import Mapping

import numpy as np
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.training.task import Task
from studies.measuring import Case, Tables


def measure(case: Case) -> Tables:
    """All counts of a run.

    Returns:
        ``label_distributions``: rows with what: ``held`` by a client, ``predicted`` by a model, or
            ``true`` of the test nodes;
        number: of the client or model, counted from 0; label: a class; nodes: how many.
    """
    task = case.task
    truth = np.bincount(task.graph.labels[task.split.test], minlength=task.graph.num_classes)
    counts = {"true": truth[None], "predicted": predicted(task, case.weights)}
    if task.partition is not None:
        counts["held"] = held(task.graph, task.partition)
    rows = [
        {"what": what, "number": number, "label": label, "nodes": int(nodes)}
        for what, of_models in counts.items()
        for (number, label), nodes in np.ndenumerate(of_models)
    ]
    return {"label_distributions": rows}


def held(graph: Graph, partition: Partition) -> np.ndarray:
    """How many nodes of each class each client holds (Figure 4a); int64, shape (M, C)."""
    labels = (graph.labels[partition.nodes(client)] for client in range(partition.num_clients))
    return np.stack([np.bincount(each, minlength=graph.num_classes) for each in labels])


def predicted(task: Task, weights: Mapping[str, Tensor]) -> np.ndarray:
    """How many of the global graph's test nodes each model gives each class (Figure 4b); int64,
    shape (models, C).

    ``weights`` are those of one shared GraphSAGE, or of one a client, as
    :meth:`feddep.training.task.RunResult.weights` names them; other classifiers read more than
    features and edges.
    """
    counts = []
    for of_model in _by_model(weights):
        model = task.new_model()
        model.load_state_dict(of_model)
        classes = task.evaluator.logits(model.eval()).argmax(dim=1).cpu().numpy()
        counts.append(np.bincount(classes[task.split.test], minlength=task.graph.num_classes))
    return np.stack(counts)


def _by_model(weights: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    models: dict[int, dict[str, Tensor]] = {}
    for name, tensor in weights.items():
        prefix = re.match(r"client(\d+)\.", name)
        number, rest = (int(prefix[1]), name[prefix.end() :]) if prefix else (0, name)
        models.setdefault(number, {})[rest] = tensor
    return [models[number] for number in sorted(models)]
