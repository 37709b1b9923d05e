"""Answers and label propagation on a client's subgraph (after Zhu and Ghahramani, 2002; Zhou et
al., 2004).

    F⁰ = P,   F^{t+1}_v = (1 − α) P_v + α (Σ_w F^t_w + Σ_u Q_u) / d_v,   and P_v again for the nodes
    that the client trains on,

over neighbours w of v at the same client and missing neighbours u, d_v of both together.  P_v is
the label of a training node and the predicted distribution p_v of all others; Q_u = K(a_u | ·) is
the distribution of u's class given the answer for it, where all classes are as likely before.  A
node without any neighbour keeps p_v.
"""

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from feddep.methods.answers import PropagationParameters
from feddep.methods.answers.asking import answered
from feddep.methods.answers.recorded_fedavg import changed
from feddep.methods.method import StepResult
from feddep.privacy.randomised_response import kernel
from feddep.training.task import RunResult, Task


def run(
    task: Task, parameters: PropagationParameters, steps: Mapping[str, StepResult]
) -> RunResult:
    """FedAvg whose clients propagate predictions, labels and answers on their subgraphs."""
    step, parts, classes = steps["pretrain"], task.subgraphs(), task.graph.num_classes
    answers = answered(task, parameters, step)
    likely = kernel(classes, parameters.epsilon)
    told = [own.links @ likely[each] for own, each in zip(answers.edges, answers.told, strict=True)]

    def rule(i: int, logits: np.ndarray) -> np.ndarray:
        (graph, split), start = parts[i], softmax(logits.astype(np.float64), axis=1)
        start[split.train] = np.eye(classes)[graph.labels[split.train]]
        degrees = np.diff(graph.indptr) + np.diff(answers.edges[i].links.indptr)
        return propagated(graph.adjacency, told[i], degrees, start, split.train, parameters)

    return changed(task, step, rule, answers.communication)


def propagated(
    adjacency: sp.csr_matrix,
    told: np.ndarray,
    degrees: np.ndarray,
    start: np.ndarray,
    kept: np.ndarray,
    parameters: PropagationParameters,
) -> np.ndarray:
    """F after the last step, shape (n, C).

    Args:
        adjacency: that of the client's subgraph, shape (n, n).
        told: Σ_u Q_u of each node, shape (n, C).
        degrees: d_v of each node, shape (n,).
        start: P, shape (n, C).
        kept: the nodes whose P stays.
        parameters: α and the number of steps.
    """
    alpha = np.where(degrees > 0, parameters.alpha, 0.0)[:, None]
    alpha[kept] = 0
    found, divisor = start, np.maximum(degrees, 1)[:, None]
    for _ in range(parameters.iterations):
        found = (1 - alpha) * start + alpha * (adjacency @ found + told) / divisor
    return found
