"""FedProx: the local loss plus μ/2 ‖w − w_t‖², where w_t are the weights that the server sent (Li
et al., 2020, Algorithm 2).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.optimisation import FedProxParameters
from feddep.training.task import RunResult, Task


class ProximalClient(Client):
    """A client that stays near the weights that it was given."""

    def __init__(self, *arguments: Any, mu: float) -> None:
        """Set up a client; the first arguments are those of
        :class:`feddep.federation.client.Client`.
        """
        super().__init__(*arguments)
        self.learner.correction = lambda model: half_square_gradient(model, self.given, mu)

    def train(self) -> float:
        """The local steps, from the weights w_t as they are now."""
        self.given = [weight.detach().clone() for weight in self.model.parameters()]
        return super().train()


def half_square_gradient(model: Any, given: Sequence[Tensor], weight: float) -> list[Tensor]:
    """The gradient of weight/2 ‖w − w'‖² at a model's weights w, in their order; w' are
    ``given``.
    """
    return [
        (own.detach() - other).mul_(weight)
        for own, other in zip(model.parameters(), given, strict=True)
    ]


def run(task: Task, parameters: FedProxParameters, steps: Any = None) -> RunResult:
    """FedAvg with proximal clients."""
    return fedavg.train_on(task, task.subgraphs(), partial(ProximalClient, mu=parameters.mu))
