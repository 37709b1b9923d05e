"""Cross-fitting: class distributions of all nodes, by classifiers that have not been trained on them.

The training nodes of each client are divided into K folds at random.  For each fold a classifier, the setting's encoder, is
trained by FedAvg on the clients' subgraphs and the training nodes of the other folds.  It predicts the distributions of the
training nodes of that fold; those of all other nodes are the geometric mean over the K classifiers.  So a training node's
distribution is as uncertain as a test node's, and who learns to read distributions on training nodes can read them on others.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.federation.averaging import Federation
from feddep.federation.boundary import Boundary, Payload, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.methods.basic.fedavg import new_client
from feddep.methods.fednld import CrossFittingParameters
from feddep.methods.method import StepResult, by_client
from feddep.training.evaluator import Evaluator
from feddep.training.task import Part, Task
from feddep.utils.errors import ConfigError
from feddep.utils.progress import track
from feddep.utils.seeding import generator

KIND = "cross-fitted classifier"
NO_FOLD = -1  # of a node that nothing is trained on
SMALLEST = 1e-4  # probabilities are read as if none were smaller


def cross_fit(task: Task, parameters: CrossFittingParameters, results: Any = None) -> StepResult:
    """Train the K classifiers.

    Returns:
        ``client0.fold`` …, the fold of each of the client's nodes, int64, shape (n_i,); ``client0.predictions`` …, log p_v of its
        nodes, shape (n_i, C); and the weights of each classifier as ``classifier0.NAME`` ….

    Raises:
        ConfigError: if the training nodes are too few to leave a fold out.
    """
    setting = task.setting.replace(local_epochs=task.setting.local_epochs * parameters.pretraining_epochs)
    task = dataclasses.replace(task, setting=setting)
    parts = task.subgraphs()
    folds = [divided(split.train, graph.num_nodes, parameters.folds, task.seed, i) for i, (graph, split) in enumerate(parts)]
    boundary = Boundary({KIND: schema_of(task.new_model()), **REPORTS}, task.observers)
    trained = []
    for k in range(parameters.folds):
        kept = [(graph, left_out(split, fold, k, parameters.folds)) for (graph, split), fold in zip(parts, folds, strict=True)]
        if not any(len(split.train) for _, split in kept):
            raise ConfigError(f"folds is {parameters.folds}, but without fold {k} no training node is left; it must be lower")
        trained.append(train(task, kept, k, boundary))
    predictions = [predict(task, graph, trained, fold) for (graph, _), fold in zip(parts, folds, strict=True)]
    tensors = by_client(fold=[torch.from_numpy(fold) for fold in folds], predictions=predictions)
    weights = {f"classifier{k}.{name}": tensor for k, each in enumerate(trained) for name, tensor in each.items()}
    return StepResult({**tensors, **weights}, boundary.communication.rows())


def divided(train: np.ndarray, nodes: int, folds: int, seed: int, client: int) -> np.ndarray:
    """The fold of each of a client's nodes, equally many training nodes in each up to one; int64, shape (n,)."""
    random = generator(seed, f"client{client}", "folds")
    fold = np.full(nodes, NO_FOLD, dtype=np.int64)
    fold[train] = (random.permutation(len(train)) + random.integers(folds)) % folds
    return fold


def left_out(split: Split, fold: np.ndarray, k: int, folds: int) -> Split:
    """A client's split without the training nodes of fold k; with a single fold none is left out."""
    return split if folds == 1 else Split(split.train[fold[split.train] != k], split.val, split.test)


def train(task: Task, parts: Sequence[Part], k: int, boundary: Boundary) -> Payload:
    """The weights of the k-th classifier, trained by FedAvg on ``parts``, at its best round on the clients' validation nodes."""
    server, client = Server(task.new_model().state_dict(), task.setting.client_weights), partial(Client, kind=KIND)
    clients = [new_client(task, i, part, boundary, client, stream=f"client{i}/fold{k}") for i, part in enumerate(parts)]
    best, weights = -1.0, server.weights
    federation = Federation(server, clients)
    for number in track(range(task.setting.rounds), f"{task.name}: cross-fitting without fold {k}"):
        validation = federation.round(number).validation
        if validation > best:
            best, weights = validation, {name: tensor.cpu().clone() for name, tensor in server.weights.items()}
    return weights


@torch.no_grad()
def predict(task: Task, graph: Graph, trained: Sequence[Payload], fold: np.ndarray) -> Tensor:
    """log p_v of all nodes of a graph, from their full neighbourhoods in it, shape (n, C).

    ``fold`` says for each node which classifier to ask; all of them for :data:`NO_FOLD`.
    """
    model = task.new_model()
    evaluator = Evaluator(graph, task.device, model.aggregation)
    found = []
    for weights in trained:
        model.load_state_dict(weights)
        found.append(evaluator.logits(model).log_softmax(dim=1))
    of_all = torch.stack(found)
    chosen = torch.from_numpy(fold).to(of_all.device)
    of_one = of_all[chosen.clamp_min(0), torch.arange(len(chosen), device=of_all.device)]
    mean = of_all.mean(dim=0).log_softmax(dim=1)
    return torch.where(chosen.unsqueeze(1) == NO_FOLD, mean, of_one).clamp_min(float(np.log(SMALLEST)))


def classifiers(step: StepResult, count: int) -> list[Payload]:
    """The weights of the K classifiers of a step's result."""
    prefixes = [f"classifier{k}." for k in range(count)]
    return [{name.removeprefix(p): tensor for name, tensor in step.tensors.items() if name.startswith(p)} for p in prefixes]
