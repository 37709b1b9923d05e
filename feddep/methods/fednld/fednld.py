"""FedNLD: a softmax regression, trained by FedAvg, on what is predicted for a node and estimated of its missing neighbours.

It reads, side by side,

    log p_v                     FedNLD, counts: and log(1 + c_v) · log p_v
    q_v                         FedNLD, counts: and log(1 + c_v) · q_v
    a_v, log(1 + c_v) · a_v     FedNLD, answers only,

where p_v is v's cross-fitted distribution, q_v the mean over the nodes of its client that are most similar in features, c_v the
number of its missing neighbours and a_v the mean of the answers for them.  The regression starts as the prediction itself, with
the identity for log p_v and zero for all else.  With ``separate``, nodes that lack no neighbour, and so have no answers, have
weights of their own for log p_v and q_v; each training node is learned from twice, with its answers and without.
Where owners answer more than once, a regression is trained after each round of answers, on all so far; what it predicts is what
is answered in the next.  The last one is the run's classifier.

The global graph is classified as if one client held all of it: nobody lacks a neighbour, so c_v and a_v are zero.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.communication import merged
from feddep.graph.graph import Graph
from feddep.methods.feddep.pretraining import without_edges
from feddep.methods.fednld import FedNLDAnswersParameters, FedNLDParameters
from feddep.methods.fednld.cross_fitting import NO_FOLD, classifiers, predict
from feddep.methods.fednld.neighbours import Answers, feature_knn_mean, missing_degree
from feddep.methods.method import StepResult
from feddep.methods.shared.answering import answer_kinds
from feddep.methods.shared.cross_edges import cross_edges
from feddep.nn.encoders import MLP
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner
from feddep.training.task import RunResult, Task


class SoftmaxRegression(MLP):
    """One linear map of a node's inputs, of which the first are its predicted log-probabilities."""

    def __init__(self, inputs: int, classes: int) -> None:
        """Set up the map from ``inputs`` to ``classes`` numbers."""
        super().__init__(inputs, 1, classes, 1, 0.0)

    def start(self, *places: int) -> "SoftmaxRegression":
        """Set the weights to those of the prediction itself, which is at the inputs from 0 and from each of ``places`` on."""
        (layer,) = self.layers
        with torch.no_grad():
            layer.weight.zero_()
            layer.bias.zero_()
            for place in (0, *places):
                layer.weight[place : place + len(layer.bias)].fill_diagonal_(1)
        return self


def run_fednld(task: Task, parameters: FedNLDParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """FedNLD where nothing is known of missing neighbours."""
    return _train(task, parameters, *_inputs(task, parameters, steps["pretrain"]))


def run_fednld_counts(task: Task, parameters: FedNLDParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """FedNLD where each client knows how many neighbours its nodes lack."""
    own, whole = _inputs(task, parameters, steps["pretrain"])
    scales = [np.log1p(missing_degree(each)) for each in cross_edges(task)]
    own = [np.hstack([known, scale * known]) for known, scale in zip(own, scales, strict=True)]
    return _train(task, parameters, own, np.hstack([whole, np.zeros_like(whole)]))


def run_fednld_answers(task: Task, parameters: FedNLDAnswersParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """FedNLD where clients know their nodes' missing neighbours and ask their owners."""
    own, whole = _inputs(task, parameters, steps["pretrain"])
    edges, classes = cross_edges(task), task.graph.num_classes
    boundary = Boundary(answer_kinds(edges, classes), task.observers)
    epsilon = None if parameters.epsilon is None else parameters.epsilon / parameters.label_rounds
    owners = Answers(task, boundary, edges, epsilon, parameters.quantisation)
    scales = [np.log1p(missing_degree(each)) for each in edges]
    apart = whole.shape[1] if parameters.separate else None
    predictions, trained = steps["pretrain"].of_clients("predictions"), []
    for _ in range(parameters.label_rounds):
        told = owners.ask(predictions)
        own = [np.hstack([known, a, scale * a]) for known, a, scale in zip(own, told, scales, strict=True)]
        whole = np.hstack([whole, np.zeros((len(whole), 2 * classes), dtype=whole.dtype)])
        trained.append(_train(task, parameters, own, whole, apart))
        predictions = _predicted(task, trained[-1].weights(), [separated(each, apart) for each in own])
    return dataclasses.replace(
        trained[-1], communication=merged(boundary.communication.rows(), *(each.communication for each in trained))
    )


@torch.no_grad()
def _predicted(task: Task, weights: Mapping[str, Tensor], own: Sequence[np.ndarray]) -> list[Tensor]:
    """Log-probabilities of each client's nodes by a regression on their inputs, shape (n_i, C)."""
    regression = SoftmaxRegression(own[0].shape[1], task.graph.num_classes).to(task.device)
    regression.load_state_dict(weights)
    graphs = [with_inputs(graph, inputs) for (graph, _), inputs in zip(task.subgraphs(), own, strict=True)]
    return [Evaluator(graph, task.device).logits(regression).log_softmax(dim=1) for graph in graphs]


def _inputs(task: Task, parameters: FedNLDParameters, step: StepResult) -> tuple[list[np.ndarray], np.ndarray]:
    """[log p_v ‖ q_v] of each client's nodes, shape (n_i, 2C), with feature_knn 0 (n_i, C), and of the global graph's, on it."""
    assert task.partition is not None, "the step before, which asks for subgraphs, refuses a task without a partition"
    fold = np.full(task.graph.num_nodes, NO_FOLD, dtype=np.int64)
    for i, of_client in enumerate(step.of_clients("fold")):
        fold[task.partition.nodes(i)] = of_client.numpy()
    graphs = [task.graph, *(graph for graph, _ in task.subgraphs())]
    predicted = [predict(task, task.graph, classifiers(step, parameters.folds), fold), *step.of_clients("predictions")]
    found = []
    for graph, tensor in zip(graphs, predicted, strict=True):
        log_p = tensor.cpu().numpy()
        q = [feature_knn_mean(graph.features, np.exp(log_p), parameters.feature_knn)] if parameters.feature_knn else []
        found.append(np.hstack([log_p, *q]))
    return found[1:], found[0]


def separated(inputs: np.ndarray, known: int | None) -> np.ndarray:
    """Inputs in columns, and so with weights, for nodes without answers, [x ‖ 0], and with, [0 ‖ x, answers, 1].

    Args:
        inputs: what is read of n nodes, shape (n, I).
        known: number of columns before the answers; none leaves the inputs as they are.
    """
    if known is None:
        return inputs
    answered = inputs[:, known:].any(axis=1, keepdims=True)
    return np.hstack([np.where(answered, 0, inputs[:, :known]), np.where(answered, inputs, 0), answered])


def _learned(graph: Graph, train: np.ndarray, inputs: np.ndarray, apart: int | None) -> tuple[Graph, np.ndarray]:
    """The nodes that a client learns from and their ids among them; where weights are apart, its training nodes twice."""
    if apart is None:
        return with_inputs(graph, inputs), train
    known = np.where(np.arange(inputs.shape[1]) < apart, inputs[train], 0)
    rows = separated(np.vstack([inputs[train], known]), apart)
    return with_inputs(without_edges(graph).subgraph(np.tile(train, 2)), rows), np.arange(len(rows))


def _train(
    task: Task, parameters: FedNLDParameters, own: Sequence[np.ndarray], whole: np.ndarray, apart: int | None = None
) -> RunResult:
    """Train the regression on the inputs of the clients' nodes, and test it on those of the global graph's.

    Where nodes without answers have weights of their own, ``apart`` is the number of columns that these are for.
    """
    most = max(2 * len(task.split.train), 1)  # a batch is all that a client has
    optimisation = {"optimizer": "adam", "learning_rate": parameters.regression_learning_rate, "weight_decay": 0.0}
    setting = task.setting.replace(layers=1, batch_size=most, local_epochs=parameters.regression_epochs, **optimisation)
    task = dataclasses.replace(task, setting=setting)
    tested = with_inputs(task.graph, separated(whole, apart))
    sizes = tested.num_features, task.graph.num_classes
    model = SoftmaxRegression(*sizes).start(apart or 0).to(task.device)
    boundary = Boundary({"model": schema_of(model), **REPORTS}, task.observers)
    clients = []
    for i, ((graph, split), inputs) in enumerate(zip(task.subgraphs(), own, strict=True)):
        learner = Learner(*_learned(graph, split.train, inputs, apart), task.setting, task.seed, f"client{i}", task.device)
        rows = with_inputs(graph, separated(inputs, apart))
        copy, evaluator = SoftmaxRegression(*sizes).to(task.device), Evaluator(rows, task.device)
        clients.append(Client(i, copy, learner, evaluator, split, task.setting, boundary))
    evaluator = Evaluator(tested, task.device)
    return train_federated(task, model, boundary, clients, lambda trained: task.test(trained, evaluator))


def with_inputs(graph: Graph, inputs: np.ndarray) -> Graph:
    """The nodes of a graph with other features, shape (n, I), and without edges."""
    return dataclasses.replace(without_edges(graph), features=sp.csr_matrix(inputs.astype(np.float32)))
