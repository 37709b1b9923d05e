"""FedAvg whose last rounds are every client's own: it trains on from what it was sent last, and
nothing is sent.

What a personalised method has to beat: Local, begun at FedAvg's weights.
"""

from functools import partial
from typing import Any

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.personalised import FinetuningParameters
from feddep.training.task import RunResult, Task


class TuningClient(Client):
    """A client that sends its weights in the first rounds only; where no client sends any, the
    server sends none.
    """

    def __init__(self, *arguments: Any, rounds: int) -> None:
        """Set up a client of so many federated ``rounds``; the first arguments are those of
        :class:`Client`.
        """
        super().__init__(*arguments)
        self.left = max(rounds, 0)

    def load(self, weights: Payload) -> None:
        if self.left >= 0:
            super().load(weights)

    def train(self) -> float:
        self.left -= 1
        return super().train()

    def weights(self) -> Payload:
        return super().weights() if self.left >= 0 else {}

    def skip(self) -> None:
        """Nobody is absent from the rounds of tuning, which are each client's own."""
        if self.left > 0:
            self.left -= 1
        else:
            self.train()


def run(task: Task, parameters: FinetuningParameters, steps: Any = None) -> RunResult:
    """FedAvg, and the rounds of tuning."""
    federated = task.setting.rounds - parameters.tuning_rounds
    return fedavg.train_on(task, task.subgraphs(), partial(TuningClient, rounds=federated))
