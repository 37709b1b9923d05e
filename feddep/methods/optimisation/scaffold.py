"""SCAFFOLD: control variates c and c_i correct the drift of clients (Karimireddy et al., 2020,
Algorithm 1, option II).

A client's steps follow g_i(y) − c_i + c, where g_i is the gradient of its loss.  After K steps of
size η from w it takes c_i⁺ = c_i − c + (w − y_i) / (K η) and sends it with y_i; the server averages
both, the y_i of the round and the latest c_i of all clients.  With equal weights of clients that
mean is the paper's c, also where some are absent: an absent client's c_i is as it was, at first 0.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from feddep.federation.boundary import Payload
from feddep.federation.client import Client, Update
from feddep.federation.server import Server, weighted_mean
from feddep.methods.basic import fedavg
from feddep.training.task import RunResult, Task
from feddep.utils.errors import ConfigError

_CONTROL = "control_"


def with_control(model: Any) -> Any:
    """The model with a buffer for the control variate of each weight, 0 at first: it is sent with
    the weights.
    """
    for name, weight in list(model.named_parameters()):
        model.register_buffer(_control(name), torch.zeros_like(weight))
    return model


def controls(model: nn.Module) -> list[Tensor]:
    """The control variates of a model, in the order of its weights."""
    return [getattr(model, _control(name)) for name, _ in model.named_parameters()]


def _control(name: str) -> str:
    return f"{_CONTROL}{name.replace('.', '_')}"


def _controls(weights: Payload) -> Payload:
    return {name: tensor for name, tensor in weights.items() if name.startswith(_CONTROL)}


class ControlServer(Server):
    """Averages weights over the clients of a round, and control variates over all clients."""

    def __init__(self, *arguments: Any, clients: int) -> None:
        """Set up a server of so many ``clients``; the first arguments are those of
        :class:`Server`.
        """
        super().__init__(*arguments)
        self._clients = clients
        self._latest: dict[int, Update] = {}

    def aggregate(self, updates: Sequence[Update]) -> None:
        super().aggregate(updates)
        self._latest.update((update.client, update) for update in updates)
        if len(updates) < self._clients:
            latest = [self._latest[client] for client in sorted(self._latest)]
            mean = weighted_mean([_controls(each.weights) for each in latest], self.shares(latest))
            known = len(latest) / self._clients
            self.weights.update((name, control * known) for name, control in mean.items())


class ScaffoldClient(Client):
    """A client that corrects its drift; its model has control variates."""

    def __init__(self, *arguments: Any) -> None:
        """Set up a client; the arguments are those of :class:`feddep.federation.client.Client`."""
        super().__init__(*arguments)
        self.own = [torch.zeros_like(control) for control in controls(self.model)]
        self.learner.correction = lambda _: self.correction

    def load(self, weights: Payload) -> None:
        """Take over the server's weights w and control variate c; c − c_i corrects all steps of the
        round.
        """
        super().load(weights)
        self.given = [weight.detach().clone() for weight in self.model.parameters()]
        self.correction = [
            shared - own for shared, own in zip(controls(self.model), self.own, strict=True)
        ]

    def train(self) -> float:
        """The local steps to the weights y_i, and then the new control variate c_i⁺, which is sent
        with them.
        """
        loss = super().train()
        steps = self.setting.local_epochs * self.learner.steps_per_epoch
        divisor = max(steps, 1) * self.setting.learning_rate
        self.own = [
            (w - y.detach()) / divisor - correction
            for w, y, correction in zip(
                self.given, self.model.parameters(), self.correction, strict=True
            )
        ]
        for control, own in zip(controls(self.model), self.own, strict=True):
            control.copy_(own)
        return loss


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg of corrected clients.

    Raises:
        ConfigError: if clients are not trained by plain SGD, of which alone (w − y_i) / (K η) is a
            mean gradient.
    """
    setting = task.setting
    if setting.optimizer != "sgd" or setting.weight_decay:
        raise ConfigError(
            "scaffold needs optimizer sgd and weight_decay 0 (key settings), but they are "
            f"{setting.optimizer} and "
            f"{setting.weight_decay:g}"
        )
    return fedavg.train_on(
        task,
        task.subgraphs(),
        ScaffoldClient,
        partial(ControlServer, clients=task.ownership.num_clients - task.setting.new_clients),
        lambda: with_control(task.new_model()),
    )
