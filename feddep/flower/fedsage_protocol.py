"""FedSage+ by processes: two exchanges for each federated epoch of its generators
(:mod:`feddep.methods.fedsage.cross_client`).

Clients send their embeddings and generators to all others; and the gradients that these answer
with, which the server adds up. In the simulation one client finishes its epochs before the next
begins; here all are in the same epoch.  The numbers are the same, as noise and samples come from
streams of their own.
"""

from collections.abc import Sequence
from typing import Any

from feddep.federation.boundary import Boundary, Kinds
from feddep.federation.client import Client
from feddep.flower.protocols import Exchange, Payloads, Protocol, name_of, relay
from feddep.methods.fedsage import cross_client, fedsage_plus
from feddep.methods.fedsage.cross_client import GRADIENTS, REQUEST, Peer, summed
from feddep.methods.fedsage.mended_subgraph import mended_subgraph
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer, batch_size, new_neighgen
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import Task

Found = tuple[NeighGenTrainer, Peer]
"""State of a client in an exchange: who trains its own generator, and who answers the others."""


class FedSageProtocol(Protocol):
    """FedSage+, as a participant runs it."""

    def exchanges(self) -> Sequence[Exchange]:
        """Requests and gradients, for each epoch."""
        requests = Exchange(self._ask, lambda number: [REQUEST], relay)
        answers = Exchange(
            self._answer,
            lambda number: [name_of(GRADIENTS, i) for i in range(self.clients) if i != number],
            _add_up,
        )
        return [requests, answers] * self._asking_epochs

    def messages(self) -> Kinds:
        """Generators with embeddings, and gradients."""
        return cross_client.messages(self.task, self.parameters, self.sizes)

    @staticmethod
    def sizes_of(task: Task, parameters: Any) -> list[int]:
        """Number of nodes that each client samples in an epoch."""
        return [
            batch_size(parameters, impair_client(task, parameters, i, part))
            for i, part in enumerate(task.subgraphs())
        ]

    @property
    def _asking_epochs(self) -> int:
        """Epochs in which a client asks the others: none without others."""
        return self.parameters.generator_federated_epochs if self.clients > 1 else 0

    def _ask(self, found: Found | None, received: Payloads) -> tuple[Found, Payloads]:
        """Finish the epoch before, begin the next, and ask the others for their gradients."""
        task, number = self.task, self.number
        peer = found[1] if found else Peer(task, self.parameters, number, task.graph.features)
        trainer = self._after_last_epoch(found, received)
        return (trainer, peer), {REQUEST: trainer.begin()}

    def _after_last_epoch(self, found: Found | None, received: Payloads) -> NeighGenTrainer:
        """The trainer of the client's NeighGen as the epoch before left it; of the first, as the
        local epochs did.
        """
        if found:
            found[0].finish(received[GRADIENTS])
            return found[0]
        task, parameters, number = self.task, self.parameters, self.number
        impaired = impair_client(task, parameters, number, self.part)
        neighgen = new_neighgen(task, parameters, f"client{number}")
        trainer = NeighGenTrainer(task, parameters, number, self.part, impaired, neighgen)
        alone = parameters.generator_federated_epochs - self._asking_epochs
        for _ in range(parameters.generator_local_epochs + alone):
            trainer.step()
        return trainer

    def _answer(self, found: Found, received: Payloads) -> tuple[Found, Payloads]:
        """Answer the requests of all others with gradients."""
        requests = {i: received[name_of(REQUEST, i)] for i in self.others}
        return found, {
            name_of(GRADIENTS, i): found[1].answer(i, request) for i, request in requests.items()
        }

    def new_client(self, boundary: Boundary, found: Found | None, received: Payloads) -> Client:
        """A client that has mended its subgraph."""
        graph, split = self.part
        generated = self._after_last_epoch(found, received).mend()
        mended = mended_subgraph(self.task, graph, generated["owner"], generated["features"])
        return fedsage_plus.new_client(self.task, self.number, mended, split, boundary)


def _add_up(boundary: Boundary, sent: Sequence[Payloads]) -> dict[int, Payloads]:
    """To each client the sum of the gradients that all others have sent for it, added in the order
    of their numbers.
    """

    def sum_for(i: int) -> Payloads:
        name = name_of(GRADIENTS, i)
        total = summed(payloads[name] for j, payloads in enumerate(sent) if j != i)
        return {GRADIENTS: boundary.send(i, "down", GRADIENTS, total)}

    return {i: sum_for(i) for i in range(len(sent))}
