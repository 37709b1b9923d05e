"""FedDC: clients learn how they drift from the global model (Gao et al., 2022, Algorithm 1).

A client adds to its loss, with the weights θ that it trains and w that it was sent,

    α/2 ‖h_i + θ − w‖² + ⟨θ, g_i − g⟩ / (K η)

where g_i is what its K steps of size η changed in the round before, g the mean of the g_i, and the
drift h_i the sum of all its g_i.  It sends θ + h_i and g_i; the server averages both, so that a
message is twice as long.  A client that is absent from a round keeps its g_i and h_i, and g counts
it, as SCAFFOLD's c does.

OpenFGL's code (``correction: openfgl``) has ⟨θ, g_i⟩ in place of ⟨θ, g_i − g⟩, as it subtracts g
outside of the product; adds to h_i the g_i of the round before; and adds nothing to the loss of the
first round.  In the authors' code SCAFFOLD's control variates, c − c_i, stand in place of (g_i − g)
/ (K η).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.optimisation.scaffold import ControlServer, controls, with_control
from feddep.methods.personalised import FedDCParameters
from feddep.training.task import RunResult, Task


class DriftClient(Client):
    """A client that corrects its drift; where SCAFFOLD has control variates, its model has g_i, or
    g where it comes in.
    """

    def __init__(self, *arguments: Any, params: FedDCParameters) -> None:
        """Set up a client; the first arguments are those of
        :class:`feddep.federation.client.Client`.
        """
        super().__init__(*arguments)
        self.params, self.written = params, params.correction == "written"
        self.change = [torch.zeros_like(weight) for weight in self.model.parameters()]
        self.drift = [torch.zeros_like(weight) for weight in self.model.parameters()]
        if self.written:
            self.learner.correction = self.correction

    def load(self, weights: Payload) -> None:
        """Take over the server's weights w and mean change g, which with g_i makes the loss's
        linear term of the round.
        """
        super().load(weights)
        self.given = [weight.detach().clone() for weight in self.model.parameters()]
        scale = 1 / (
            self.setting.local_epochs
            * max(self.learner.steps_per_epoch, 1)
            * self.setting.learning_rate
        )
        self.linear = [
            (g_i - g if self.written else g_i) * scale
            for g_i, g in zip(self.change, controls(self.model), strict=True)
        ]

    def correction(self, model: Any) -> Iterator[Tensor]:
        """The gradient of the terms of the loss at the model's weights θ; that of the linear one is
        the same all round.
        """
        for theta, w, h, linear in zip(
            model.parameters(), self.given, self.drift, self.linear, strict=True
        ):
            yield (h + theta.detach() - w).mul_(self.params.alpha).add_(linear)

    def train(self) -> float:
        """The local steps to θ, and then the new g_i and h_i."""
        loss = super().train()
        self.learner.correction = self.correction
        before = self.change
        self.change = [
            weight.detach() - w
            for weight, w in zip(self.model.parameters(), self.given, strict=True)
        ]
        self.drift = [
            h + g_i
            for h, g_i in zip(self.drift, self.change if self.written else before, strict=True)
        ]
        for control, g_i in zip(controls(self.model), self.change, strict=True):
            control.copy_(g_i)
        return loss

    def weights(self) -> Payload:
        sent = super().weights()
        names = [name for name, _ in self.model.named_parameters()]
        return {**sent, **{name: sent[name] + h for name, h in zip(names, self.drift, strict=True)}}


def run(task: Task, parameters: FedDCParameters, steps: Any = None) -> RunResult:
    """FedAvg of clients that correct their drift."""
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(DriftClient, params=parameters),
        partial(ControlServer, clients=task.ownership.num_clients - task.setting.new_clients),
        lambda: with_control(task.new_model()),
    )
