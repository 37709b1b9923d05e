"""Answers as input features: a second FedAvg reads, beside a node's features, how often each class
was answered for it.

    x'_v = [x_v ‖ Σ_u 1(a_u)],   u over the missing neighbours of v,

where a_u is the answer for u and 1(a) a row of C numbers, 1 at a and 0 elsewhere.  On the global
graph all counts are 0.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from feddep.federation.communication import merged
from feddep.graph.graph import Graph
from feddep.methods.answers import AnswersParameters
from feddep.methods.answers.asking import answered
from feddep.methods.basic import fedavg
from feddep.methods.method import StepResult
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: AnswersParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """Ask by the weights of the first FedAvg, and train the second."""
    answers = answered(task, parameters, steps["pretrain"])
    classes = task.graph.num_classes
    parts = []
    for own, told, (graph, split) in zip(
        answers.edges, answers.told, task.subgraphs(), strict=True
    ):
        parts.append((with_counts(graph, own.links @ np.eye(classes)[told]), split))
    everything = with_counts(task.graph, np.zeros((task.graph.num_nodes, classes)))
    result = fedavg.train_on(dataclasses.replace(task, graph=everything), parts)
    return dataclasses.replace(
        result, communication=merged(answers.communication, result.communication)
    )


def with_counts(graph: Graph, counts: np.ndarray) -> Graph:
    """The same graph with ``counts``, shape (n, C), behind its features."""
    features = sp.hstack([graph.features, sp.csr_matrix(counts.astype(np.float32))], format="csr")
    return dataclasses.replace(graph, features=features)
