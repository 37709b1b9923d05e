"""FedProto: clients share the mean embedding of each class and nothing of their models (Tan et al.,
2022, Algorithm 1).

A client adds to its loss λ times the mean of (h_i − c_{y_i})² over its training nodes i and the
coordinates of their embeddings, where c_j is the prototype of class j that the server sent.  So do
the authors' code and PFLlib's, where the paper has distances of prototypes.  After the local steps
a client sends its own prototypes, the mean embeddings of its training nodes of each class, and
which classes these are.  The server sends the mean over the clients that have the class.

A node's class is the classifier's answer, as in OpenFGL, and not the nearest prototype.  OpenFGL's
code (``mean: openfgl``) averages over all clients by their numbers of nodes; a client without the
class has a prototype of zeros, which shrinks the mean.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from feddep.federation.client import Client, Update
from feddep.federation.server import Server
from feddep.methods.basic import fedavg
from feddep.methods.personalised import FedProtoParameters
from feddep.methods.personalised.moon import embeddings
from feddep.training.learner import FullBatchLearner
from feddep.training.task import RunResult, Task

BUFFERS = ("prototypes", "known")


def class_means(hidden: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """The mean embedding of the nodes of each class, 0 where there are none, shape (C, H), and
    their numbers, (C,); from all embeddings, (n, H).
    """
    count = labels.bincount(minlength=classes)
    sums = hidden.new_zeros(classes, hidden.shape[1]).index_add(0, labels, hidden)
    return sums / count.clamp(min=1).unsqueeze(1), count


def with_prototypes(model: Any) -> Any:
    """The model with buffers for prototypes c, shape (C, H), and whether there is one, 1 or 0,
    shape (C,).
    """
    *_, hidden, classes = model.output_widths
    zeros = next(model.parameters()).new_zeros
    model.register_buffer("prototypes", zeros((classes, hidden)))
    model.register_buffer("known", zeros((classes,)))
    return model


class PrototypeServer(Server):
    """A server that averages prototypes over the clients of a round that have the class, and keeps
    what it has of a class that none of them has.
    """

    def aggregate(self, updates: Sequence[Update]) -> None:
        prototypes, known = (
            torch.stack([update.weights[name] for update in updates]) for name in BUFFERS
        )
        count = known.sum(dim=0)  # of a class that a client lacks, its prototype is 0
        mean = prototypes.sum(dim=0) / count.clamp(min=1).unsqueeze(1)
        kept, once = (self.weights[name] for name in BUFFERS)
        self.weights = {
            "prototypes": torch.where(count.unsqueeze(1) > 0, mean, kept),
            "known": count.clamp(max=1).maximum(once),
        }


class PrototypeClient(Client):
    """A client whose embeddings are pulled to prototypes."""

    learner: FullBatchLearner

    def __init__(self, *arguments: Any, weight: float) -> None:
        """Set up a client with λ = ``weight``; the first arguments are those of :class:`Client`."""
        super().__init__(*arguments)
        self.weight = weight
        self.learner.penalty = self.pull
        self.labels = self.evaluator.labels[self.learner.nodes]

    def pull(self, model: Any, hidden: Tensor, logits: Tensor) -> Tensor:
        """λ times the mean squared distance of training nodes from the prototypes of their classes;
        0 before there are any.
        """
        distances = (
            (hidden[self.learner.nodes] - model.prototypes[self.labels]).square().mean(dim=1)
        )
        return self.weight * (distances * (model.known[self.labels] > 0)).mean()

    def train(self) -> float:
        """The local steps, and then the client's prototypes."""
        loss = super().train()
        hidden = embeddings(self.model, self.evaluator)[self.learner.nodes]
        means, count = class_means(hidden, self.labels, len(self.model.known))
        self.model.prototypes.copy_(means)
        self.model.known.copy_(count > 0)
        return loss


def run(task: Task, parameters: FedProtoParameters, steps: Any = None) -> RunResult:
    """A model a client, and prototypes in common."""
    task.check_hidden()
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(PrototypeClient, weight=parameters.prototype_weight),
        PrototypeServer if parameters.mean == "written" else Server,
        lambda: with_prototypes(task.new_model()),
        shared=lambda name: name in BUFFERS,
    )
