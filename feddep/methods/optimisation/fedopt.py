"""FedAdam and FedYogi: the server takes the clients' mean change for a gradient (Reddi et al., 2021, Algorithm 2).

    Δ = mean of w_i − w,   m ← β₁ m + (1 − β₁) Δ,   w ← w + η m / (√v + τ)
    FedAdam: v ← β₂ v + (1 − β₂) Δ²,   FedYogi: v ← v − (1 − β₂) Δ² sign(v − Δ²)

with m = 0 and v = τ² at first.
"""

from functools import partial
from typing import Any

import torch

from feddep.federation.boundary import Payload
from feddep.federation.server import Server
from feddep.methods.basic import fedavg
from feddep.methods.optimisation import ServerOptimizerParameters
from feddep.training.task import RunResult, Task


class AdaptiveServer(Server):
    """A server with an optimiser of its own."""

    def __init__(self, weights: Payload, how: ServerOptimizerParameters, yogi: bool) -> None:
        """Start from initial weights; ``yogi`` says whether it is FedYogi's optimiser, else FedAdam's."""
        super().__init__(weights)
        self._how = how
        self._yogi = yogi
        self._first = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}
        self._second = {name: torch.full_like(tensor, how.tau**2) for name, tensor in weights.items()}

    def server_step(self, mean: Payload) -> Payload:
        """The weights after one step."""
        how, weights = self._how, {}
        for name, tensor in mean.items():
            change = tensor - self.weights[name]
            square, second = change.square(), self._second[name]
            if self._yogi:
                self._second[name] = second - (1 - how.beta2) * square * torch.sign(second - square)
            else:
                self._second[name] = how.beta2 * second + (1 - how.beta2) * square
            self._first[name] = how.beta1 * self._first[name] + (1 - how.beta1) * change
            step = self._first[name] / (self._second[name].sqrt() + how.tau)
            weights[name] = self.weights[name] + how.server_learning_rate * step
        return weights


def run_adam(task: Task, parameters: ServerOptimizerParameters, steps: Any = None) -> RunResult:
    """FedAdam."""
    return fedavg.train_on(task, task.subgraphs(), new_server=partial(AdaptiveServer, how=parameters, yogi=False))


def run_yogi(task: Task, parameters: ServerOptimizerParameters, steps: Any = None) -> RunResult:
    """FedYogi."""
    return fedavg.train_on(task, task.subgraphs(), new_server=partial(AdaptiveServer, how=parameters, yogi=True))
