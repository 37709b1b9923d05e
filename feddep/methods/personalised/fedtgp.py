"""FedTGP: FedProto whose prototypes the server trains to be far from each other (Zhang et al., AAAI
2024).

The server's prototype of class c is P̂_c = F(e_c), with a vector e_c and a network F of two layers,
which it keeps over all rounds.  From the prototypes P_k^c that clients send it takes steps on

    −log softmax over c' of −(‖P_k^c − P̂_c'‖ + δ [c' = c])  at c,    δ = min(max ‖Q_c − Q_c'‖, τ),

averaged over all of them, where Q_c is the mean of the P_k^c.  Clients do as in FedProto.  A node's
class is that of the nearest prototype (code), of those that the server sent or, after the local
steps, of the client's own; before there are any, and with ``prediction: classifier``, the
classifier's answer.

Readings.  The paper pulls embeddings by Euclidean distances with λ = 0.1, the code by mean squares
over 512 coordinates with λ = 10; here they are mean squares, and λ = 1 is that code's default.  The
margin δ is the largest over pairs of classes in the paper, over classes that of the nearest other
class in the code (``margin: released``).  A class that nobody has is left out, where the code has a
prototype of it.  The server's steps are on all prototypes at once, by the setting's optimiser,
begun anew each round; the code has SGD on batches of 10.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from feddep.federation.client import Update
from feddep.methods.basic import fedavg
from feddep.methods.personalised import FedTGPParameters
from feddep.methods.personalised.fedproto import (
    BUFFERS,
    PrototypeClient,
    PrototypeServer,
    with_prototypes,
)
from feddep.nn.linear import Linear
from feddep.training.config import TrainingConfig
from feddep.training.learner import new_optimizer
from feddep.training.task import RunResult, Task

_FAR = -1e9
"""Logit of a class without a prototype."""


class PrototypeNetwork(nn.Module):
    """P̂ of all classes, shape (C, H)."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(classes, width))
        self.first, self.second = Linear(width, width), Linear(width, width)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the e_c from normal distributions, and the layers of F."""
        nn.init.normal_(self.vectors, generator=generator)
        self.first.reset_parameters(generator)
        self.second.reset_parameters(generator)

    def forward(self) -> Tensor:
        return self.second(self.first(self.vectors).relu())


def distances(ours: Tensor, theirs: Tensor) -> Tensor:
    """Euclidean distances of rows, shape (n, m), from shapes (n, H) and (m, H)."""
    return torch.cdist(ours, theirs, compute_mode="donot_use_mm_for_euclid_dist")


class TrainingServer(PrototypeServer):
    """A server that trains prototypes."""

    def __init__(
        self,
        *arguments: Any,
        network: PrototypeNetwork,
        setting: TrainingConfig,
        params: FedTGPParameters,
    ) -> None:
        """Start from initial prototypes, which say of no class that there is one."""
        super().__init__(*arguments)
        self.network, self.setting, self.params = network, setting, params

    def aggregate(self, updates: Sequence[Update]) -> None:
        super().aggregate(updates)
        present = self.weights["known"] > 0
        margin = self.margin(self.weights["prototypes"][present])
        known = torch.stack([update.weights["known"] for update in updates]) > 0
        sent = torch.stack([update.weights["prototypes"] for update in updates])[known]
        classes = known.nonzero()[:, 1]
        added = margin * one_hot(classes, len(present))
        optimizer = new_optimizer(self.network, self.setting)
        for _ in range(self.params.server_steps):
            optimizer.zero_grad()
            logits = -(distances(sent, self.network()) + added)
            cross_entropy(logits.masked_fill(~present, _FAR), classes).backward()
            optimizer.step()
        self.weights["prototypes"] = self.network().detach()

    def margin(self, means: Tensor) -> float:
        """δ, from the mean prototypes of the classes that there are, shape (k, H)."""
        between = distances(means, means)
        if self.params.margin == "released":
            between = between.fill_diagonal_(torch.inf).amin(dim=1)
        return min(float(between.max()), self.params.largest_margin)


class NearestPrototype(nn.Module):
    """A classifier that is trained as it is, and answers by the nearest prototype."""

    prototypes: Tensor
    known: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.aggregation, self.output_widths = model.aggregation, model.output_widths
        self.body, self.head = model.body, model.head

    def full(self, x: Any, adjacency: Any, **options: Any) -> Tensor:
        """Minus the distances from the prototypes, shape (n, C)."""
        hidden = self.body(x, adjacency, **options)
        if not self.known.any():
            return self.head(hidden, adjacency)
        return (-distances(hidden, self.prototypes)).masked_fill(self.known == 0, _FAR)


def run(task: Task, parameters: FedTGPParameters, steps: Any = None) -> RunResult:
    """A model a client, and prototypes that the server trains."""
    task.check_hidden()
    nearest = parameters.prediction == "prototypes"
    model: Any = task.new_model()
    *_, width, classes = model.output_widths
    network = task.drawn(PrototypeNetwork(classes, width), "fedtgp", "weights")
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(PrototypeClient, weight=parameters.prototype_weight),
        partial(TrainingServer, network=network, setting=task.setting, params=parameters),
        lambda: with_prototypes(
            NearestPrototype(task.new_model()) if nearest else task.new_model()
        ),
        shared=lambda name: name in BUFFERS,
    )
