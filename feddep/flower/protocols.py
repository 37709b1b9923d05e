"""The methods that processes can train: what of each a client does, and what the server.

FedAvg's clients have nothing to do before the first round; :mod:`feddep_protocol` and
:mod:`fedsage_protocol` exchange more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from torch import nn

from feddep.federation.boundary import Boundary, Direction, Kinds, Payload, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.flower import FederationError
from feddep.methods import registry
from feddep.methods.basic import fedavg
from feddep.methods.method import load
from feddep.training.task import ClientData, Task

Payloads = dict[str, Payload]
"""Payloads by kind, or by ``KIND/j`` where they are about another client j (:func:`name_of`)."""


@dataclass(frozen=True)
class Exchange:
    """One message to each client before the first round, and their answers.

    Attributes:
        work: what a client does, from what it kept of the exchange before and what it received:
            what it keeps, and what it sends.
        names: the names of the payloads that client i sends.
        pass_on: what the server makes of all clients' payloads; it goes to each with the next
            message.
    """

    work: Callable[[Any, Payloads], tuple[Any, Payloads]]
    names: Callable[[int], list[str]]
    pass_on: Callable[[Boundary, Sequence[Payloads]], dict[int, Payloads]]


class Protocol:
    """FedAvg, as a participant runs it, and what other methods change.

    Attributes:
        task: the task as this participant sees it: a client's graph and split are its own, the
            server's have no nodes.
        parameters: the method's.
        clients: number of clients M.
        sizes: what :meth:`sizes_of` has found.
        number: the client's number i; −1 of the server.
    """

    def __init__(
        self, task: Task, parameters: Any, clients: int, sizes: Sequence[int], number: int = -1
    ) -> None:
        """See the attributes."""
        self.task = task
        self.parameters = parameters
        self.clients = clients
        self.sizes = sizes
        self.number = number

    @property
    def part(self) -> ClientData:
        """The client's subgraph and its share of the split."""
        return self.task.graph, self.task.split

    @property
    def others(self) -> list[int]:
        """The numbers of the other clients, ascending."""
        return [number for number in range(self.clients) if number != self.number]

    def may_cross(self) -> Kinds:
        """Schemas of a client's boundary, by kind; both sides declare the same."""
        return {"model": schema_of(self.new_model()), **REPORTS, **self.messages()}

    def new_model(self) -> nn.Module:
        """The classifier with its initial weights."""
        return self.task.new_model()

    def new_client(self, boundary: Boundary, found: Any, received: Payloads) -> Client:
        """This client, from its boundary, what it found in the last exchange, and what came with
        the first weights.
        """
        return fedavg.new_client(self.task, self.number, self.part, boundary)

    def exchanges(self) -> Sequence[Exchange]:
        """Exchange messages before the first round."""
        return ()

    def messages(self) -> Kinds:
        """The kinds of messages in these exchanges."""
        return {}

    @staticmethod
    def sizes_of(task: Task, parameters: Any) -> list[int]:
        """Numbers that the shapes of these messages take from each client's subgraph, from the
        whole task.
        """
        return []


_PROTOCOLS = {
    "fedavg": "feddep.flower.protocols:Protocol",
    "feddep": "feddep.flower.feddep_protocol:FedDEPProtocol",
    "fedsage_plus": "feddep.flower.fedsage_protocol:FedSageProtocol",
}


def configured(options: Mapping[str, Any]) -> tuple[type[Protocol], Any]:
    """The protocol of a method, and its parameters, from ``{"name": …, parameter: value, …}``.

    Raises:
        FederationError: if it cannot be trained by processes.
    """
    method, parameters = registry.configured(options)
    if method.name not in _PROTOCOLS:
        raise FederationError(
            f"the method {method.name} cannot be trained by processes; allowed: "
            f"{', '.join(_PROTOCOLS)}"
        )
    encoder = getattr(parameters, "encoder", "local")
    if encoder != "local":
        raise FederationError(
            f"encoder is {encoder}; where processes train {method.name}, it must be local"
        )
    return cast(type[Protocol], load(_PROTOCOLS[method.name])), parameters


def name_of(kind: str, about: int) -> str:
    """The name of a payload about client ``about`` where another client sends or receives it."""
    return f"{kind}/{about}"


def cross(
    boundary: Boundary, client: int, direction: Direction, name: str, payload: Payload
) -> Payload:
    """Carry a payload across the boundary by its name."""
    kind, _, about = name.partition("/")
    return boundary.send(client, direction, kind, payload, int(about) if about else None)


def relay(boundary: Boundary, sent: Sequence[Payloads]) -> dict[int, Payloads]:
    """Each client's payloads to all others."""
    return {
        i: {
            name_of(kind, j): boundary.send(i, "down", kind, payload, about=j)
            for j, payloads in enumerate(sent)
            if j != i
            for kind, payload in payloads.items()
        }
        for i in range(len(sent))
    }
