"""FedAdam and FedYogi: the server takes the clients' mean change for a gradient (Reddi et al.,
2021, Algorithm 2).

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

    def __init__(self, *arguments: Any, params: ServerOptimizerParameters, yogi: bool) -> None:
        """Start from initial weights, as :class:`feddep.federation.server.Server`; ``yogi`` takes
        FedYogi's v, not FedAdam's.
        """
        super().__init__(*arguments)
        self.params, self.yogi = params, yogi
        self.m = {name: torch.zeros_like(tensor) for name, tensor in self.weights.items()}
        self.v = {
            name: torch.full_like(tensor, params.tau**2) for name, tensor in self.weights.items()
        }

    def server_step(self, mean: Payload) -> Payload:
        """The weights after one step."""
        params, weights = self.params, {}
        for name, w in self.weights.items():
            change = mean[name] - w
            square, v = change.square(), self.v[name]
            if self.yogi:
                self.v[name] = v - (1 - params.beta2) * square * torch.sign(v - square)
            else:
                self.v[name] = params.beta2 * v + (1 - params.beta2) * square
            self.m[name] = params.beta1 * self.m[name] + (1 - params.beta1) * change
            weights[name] = w + params.server_learning_rate * (
                self.m[name] / (self.v[name].sqrt() + params.tau)
            )
        return weights


def run_adam(
    task: Task, parameters: ServerOptimizerParameters, steps: Any = None, yogi: bool = False
) -> RunResult:
    """FedAdam, or FedYogi."""
    return fedavg.train_on(
        task, task.subgraphs(), server=partial(AdaptiveServer, params=parameters, yogi=yogi)
    )


run_yogi = partial(run_adam, yogi=True)
