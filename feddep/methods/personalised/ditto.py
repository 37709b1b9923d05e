"""Ditto: beside the model of FedAvg each client trains one of its own (Li et al., 2021, Algorithm
1).

A round's local steps on the personal weights v follow the client's loss plus λ/2 ‖v − w‖², where w
are the weights that the server sent.  The client is judged by v, which never leaves it.
"""

import copy
from functools import partial
from typing import Any

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.optimisation.fedprox import half_square_gradient
from feddep.methods.personalised import DittoParameters
from feddep.training.task import RunResult, Task


class DittoClient(Client):
    """A client whose model is personal; a client of FedAvg with the same learner takes part in its
    place.
    """

    def __init__(self, *arguments: Any, weight: float) -> None:
        """Set up a client with λ = ``weight``; the first arguments are those of :class:`Client`."""
        super().__init__(*arguments)
        number, model, *others = arguments
        self.weight = weight
        self.averaged = Client(number, copy.deepcopy(model), *others)

    def load(self, weights: Payload) -> None:
        self.averaged.load(weights)

    def train(self) -> float:
        """The local steps of FedAvg from w, and then those of v; returns the loss of v."""
        self.given = [weight.detach().clone() for weight in self.averaged.model.parameters()]
        self.learner.correction = None
        self.averaged.train()
        self.learner.correction = lambda model: half_square_gradient(model, self.given, self.weight)
        return super().train()

    def weights(self) -> Payload:
        return self.averaged.weights()


def run(task: Task, parameters: DittoParameters, steps: Any = None) -> RunResult:
    """FedAvg, and a personal model a client."""
    return fedavg.train_on(
        task, task.subgraphs(), partial(DittoClient, weight=parameters.personal_weight)
    )
