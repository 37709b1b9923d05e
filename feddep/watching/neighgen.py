"""NeighGen, watched: every other client generates with a client's own generator, and answers with its gradient."""

from collections.abc import Mapping

import torch
from torch import Tensor

from feddep.errors import ConfigError
from feddep.federation.boundary import Boundary, Payload, schema_of
from feddep.flops import FlopCounter
from feddep.neighbour_generation import federated
from feddep.neighbour_generation.training import NeighGenTrainer, Training, impair_client, new_neighgen
from feddep.problem import Part, Problem
from feddep.steps import Made
from feddep.watching import Work


class Watched:
    """Asks other clients for gradients, and counts what they spend and generate."""

    def __init__(self, trainer: NeighGenTrainer, number: int, others: Mapping[int, federated.Respondent]) -> None:
        """Prepare to ask.

        Args:
            trainer: trains the generator of the client that asks.
            number: its number i.
            others: all other clients by number.
        """
        self._network = trainer.neighgen.generator
        self._number = number
        self._others = others
        weights = schema_of(self._network)
        answer = {name: shape for name, shape in weights.items() if federated.is_of_features(name)}
        request = {**weights, "embeddings": (trainer.batch, self._network.number.in_features)}
        self._boundary = Boundary({federated.request_of(number): request, federated.gradients_for(number): answer})
        self.operations: list[int] = []
        """What each call has spent."""
        self.generated: list[float] = []
        """Number of neighbours generated for a node, in the mean over the nodes of each call."""
        self.aside = 0
        """Operations that only the counting has caused."""

    def __call__(self, request: Mapping[str, Tensor]) -> Payload:
        """Ask."""
        with FlopCounter() as counter:
            gradients = federated.ask_others(self._boundary, self._number, self._others, request)
        self.operations.append(counter.total)
        with torch.no_grad(), FlopCounter() as counter:
            wanted = self._network.number(request["embeddings"]).relu().round().clamp(max=self._network.slots)
            self.generated.append(float(wanted.mean()))
        self.aside += counter.total
        return gradients


def generators(problem: Problem, how: Training, made: Mapping[str, Made]) -> list[Work]:
    """As :func:`feddep.neighbour_generation.federated.generate` trains.

    Raises:
        ConfigError: if the parameters leave nothing to count.
    """
    clients = problem.subgraphs()
    if not how.federated_epochs:
        raise ConfigError("federated_epochs is 0; it must be above 0 where the cost of learning from others is to be measured")
    respondents = {i: federated.Respondent(problem, how, i, graph.features) for i, (graph, _) in enumerate(clients)}
    return [
        _train(problem, how, i, client, {j: other for j, other in respondents.items() if j != i})
        for i, client in enumerate(clients)
    ]


def _train(problem: Problem, how: Training, number: int, client: Part, others: Mapping[int, federated.Respondent]) -> Work:
    impaired = impair_client(problem, how, number, client)
    trainer = NeighGenTrainer(problem, how, number, client, impaired, new_neighgen(problem, how, f"client{number}"))
    ask = Watched(trainer, number, others)
    with FlopCounter() as counter:
        for _ in range(how.local_epochs):
            trainer.step()
        for _ in range(how.federated_epochs):
            trainer.step(ask)
        trainer.mend()
    updates = how.federated_epochs
    generated, operations = sum(ask.generated) / updates, sum(ask.operations) / updates
    weights = sum(weight.numel() for weight in trainer.neighgen.generator.parameters())
    return Work(trainer.batch, updates, generated, generated, operations, counter.total - ask.aside, weights)
