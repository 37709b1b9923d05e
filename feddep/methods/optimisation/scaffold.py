"""SCAFFOLD: control variates c and c_i correct the drift of clients (Karimireddy et al., 2020, Algorithm 1, option II).

A client's steps follow g_i(y) − c_i + c, which is the gradient of its loss plus ⟨c − c_i, y⟩.  After K steps of size η from w it
takes c_i⁺ = c_i − c + (w − y_i) / (K η) and sends it with y_i; the server averages both.  With all clients in every round the
mean of the c_i⁺ is the c of the paper.
"""

from typing import Any

import torch
from torch import Tensor, nn

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, Payload, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods.basic import fedavg
from feddep.training.task import RunResult, Task
from feddep.utils.errors import ConfigError


def with_control(model: Any) -> Any:
    """The model with a buffer for the control variate of each weight, 0 at first: it is sent with the weights."""
    for name, weight in list(model.named_parameters()):
        model.register_buffer(_control(name), torch.zeros_like(weight))
    return model


def controls(model: nn.Module) -> list[Tensor]:
    """The control variates of a model, in the order of its weights."""
    return [getattr(model, _control(name)) for name, _ in model.named_parameters()]


def _control(name: str) -> str:
    return f"control_{name.replace('.', '_')}"


class ScaffoldClient(Client):
    """A client that corrects its drift; its model has control variates."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Set up a client; the arguments are those of :class:`feddep.federation.client.Client`."""
        super().__init__(*arguments, **options)
        self._own = [torch.zeros_like(control) for control in controls(self._model)]
        self._learner.regularizer = self._correction

    def load(self, weights: Payload) -> None:
        """Take over the server's weights w and control variate c."""
        super().load(weights)
        self._given = [weight.detach().clone() for weight in self._model.parameters()]
        self._shared = [control.clone() for control in controls(self._model)]

    def _correction(self, model: Any) -> Tensor:
        pairs = zip(model.parameters(), self._shared, self._own, strict=True)
        terms = [((shared - own) * weight).sum() for weight, shared, own in pairs]
        return sum(terms[1:], terms[0])

    def _send(self, kind: str, payload: Payload) -> Payload:
        if kind == self._kind:
            steps = self._setting.local_epochs * -(-self._learner.size // self._setting.batch_size)
            divisor = max(steps, 1) * self._setting.learning_rate
            weights = [weight.detach() for weight in self._model.parameters()]
            drift = [(given - weight) / divisor for given, weight in zip(self._given, weights, strict=True)]
            self._own = [own - shared + change for own, shared, change in zip(self._own, self._shared, drift, strict=True)]
            for control, own in zip(controls(self._model), self._own, strict=True):
                control.copy_(own)
            payload = self._model.state_dict()
        return super()._send(kind, payload)


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg of corrected clients.

    Raises:
        ConfigError: if clients are not trained by plain SGD, of which alone (w − y_i) / (K η) is a mean gradient.
    """
    setting = task.setting
    if setting.optimizer != "sgd" or setting.weight_decay:
        raise ConfigError(
            f"scaffold needs optimizer sgd and weight_decay 0 (key settings), but they are {setting.optimizer} and "
            f"{setting.weight_decay:g}"
        )
    model = with_control(task.new_model())
    boundary = Boundary({"model": schema_of(model), **REPORTS}, task.observers)
    clients = [
        fedavg.new_client(task, i, part, boundary, ScaffoldClient, with_control(task.new_model()))
        for i, part in enumerate(task.subgraphs())
    ]
    return train_federated(task, model, boundary, clients)
