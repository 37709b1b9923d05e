r"""Answers and Bayes' rule: what is predicted for a node is its prior, and each answer is evidence.

    log p(y | v) = log p_v(y) + Σ_u log Σ_c H(y, c) K(a_u | c) + constant,   u over the missing
    neighbours of v,

where a_u is the answer for u, K(a | c) the probability that randomised response answers a where c
is true (:func:`feddep.privacy.randomised_response.kernel`; Warner, 1965), and H(y, c) the
probability that a neighbour of a node of class y is one of which its owner would answer c if it
answered truly.  Neighbours count as independent given y (naive Bayes).

By default H is g(y, c) = h [y = c] + (1 − h) / C.  With ``prior_count`` s, each client estimates it
from its own subgraph, of the n(y, c) pairs of a training node of class y and a neighbour of which
it would itself answer c:

    H(y, c) = (n(y, c) + s · g(y, c)) / (Σ_c' n(y, c') + s).

So it may cover mistakes of predictions and neighbours of other classes, heterophily included, if
the neighbours that a client has are like those that it lacks.  Nothing is sent for it: counts of a
few dozen pairs, sent as they are, would tell the labels of single nodes, and no ε would cover them.

``plain`` takes g(y, a_u) for the likelihood, without regard to what randomised response does.

``answers_pooled`` takes the mean over u in place of the sum: a logarithmic opinion pool of a node's
answers (Genest and Zidek, 1986), which together weigh as one.  Where answers depend on each other,
their sum overstates the evidence.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import scipy.sparse as sp

from feddep.methods.answers import BayesParameters
from feddep.methods.answers.asking import answered
from feddep.methods.answers.recorded_fedavg import changed
from feddep.methods.method import StepResult
from feddep.privacy.randomised_response import kernel
from feddep.training.task import ClientData, RunResult, Task


def run(
    task: Task, parameters: BayesParameters, steps: Mapping[str, StepResult], pooled: bool = False
) -> RunResult:
    """FedAvg whose clients add the evidence of answers to what they predict for their own nodes,
    where it is ``pooled`` the mean evidence of a node's answers.
    """
    of = pooled_evidence if pooled else evidence
    step, parts, classes = steps["pretrain"], task.subgraphs(), task.graph.num_classes
    answers, found = answered(task, parameters, step), []
    for own, told, part, of_client in zip(
        answers.edges, answers.told, parts, answers.known, strict=True
    ):
        likelihood = prior(parameters.homophily, classes)
        if parameters.likelihood == "kernel":
            if parameters.prior_count is not None:
                likelihood = compatibility(
                    neighbour_counts(part, of_client, classes), likelihood, parameters.prior_count
                )
            likelihood = likelihood @ kernel(classes, parameters.epsilon)
        found.append(of(own.links, told, likelihood))
    return changed(task, step, lambda i, logits: logits + found[i], answers.communication)


run_pooled = partial(run, pooled=True)


def prior(homophily: float, classes: int) -> np.ndarray:
    """g(y, c) = h [y = c] + (1 − h) / C, shape (C, C)."""
    return homophily * np.eye(classes) + (1 - homophily) / classes


def neighbour_counts(part: ClientData, known: np.ndarray, classes: int) -> np.ndarray:
    """n(y, c): pairs of a training node of class y and a neighbour in the subgraph that is known as
    c; float, shape (C, C).
    """
    graph, split = part
    pairs = graph.adjacency[split.train].tocoo()
    counts = np.zeros((classes, classes))
    np.add.at(counts, (graph.labels[split.train][pairs.row], known[pairs.col]), 1)
    return counts


def compatibility(counts: np.ndarray, prior: np.ndarray, prior_count: float) -> np.ndarray:
    """H(y, c) from n(y, c), with s = ``prior_count``; each row sums to 1, shape (C, C)."""
    return (counts + prior_count * prior) / (counts.sum(axis=1, keepdims=True) + prior_count)


def evidence(links: sp.csr_matrix, told: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """Σ_u log P(a_u | y) for each class y of a client's nodes, shape (n, C); zeros for a node that
    lacks no neighbour.

    Args:
        links: which node is joined to which one elsewhere, shape (n, h).
        told: the answered class of each of these, shape (h,).
        likelihood: P(a | y), shape (C, C), a row each class y.
    """
    return links @ np.log(likelihood).T[told]


def pooled_evidence(links: sp.csr_matrix, told: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """The mean of log P(a_u | y) over u, as :func:`evidence`; its arguments are the same."""
    return evidence(links, told, likelihood) / np.maximum(np.diff(links.indptr), 1)[:, None]
