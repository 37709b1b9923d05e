"""FedProx: the local loss plus μ/2 ‖w − w_t‖², where w_t are the weights that the server sent (Li et al., 2020, Algorithm 2)."""

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
        """Set up a client; the first arguments are those of :class:`feddep.federation.client.Client`."""
        super().__init__(*arguments)
        self.mu = mu
        self.learner.regularizer = self.proximal_term

    def train(self) -> float:
        """The local steps, from the weights w_t as they are now."""
        self.given = [weight.detach().clone() for weight in self.model.parameters()]
        return super().train()

    def proximal_term(self, model: Any) -> Tensor:
        """μ/2 ‖w − w_t‖² of the model's weights w."""
        return half_square(model, self.given, self.mu)


def half_square(model: Any, given: Sequence[Tensor], weight: float) -> Tensor:
    """``weight`` times half the squared distance of a model's weights from those that are given, in their order."""
    squares = [(own - other).square().sum() for own, other in zip(model.parameters(), given, strict=True)]
    return weight / 2 * sum(squares[1:], squares[0])


def run(task: Task, parameters: FedProxParameters, steps: Any = None) -> RunResult:
    """FedAvg with proximal clients."""
    return fedavg.train_on(task, task.subgraphs(), partial(ProximalClient, mu=parameters.mu))
