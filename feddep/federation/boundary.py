"""The one place through which everything enters or leaves a client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from feddep.federation.communication import CommunicationLog

Direction = Literal["up", "down"]
Payload = dict[str, Tensor]
Schema = Mapping[str, tuple[int, ...]]
"""Schema of a kind of message: the name and shape of each of its tensors; ``()`` is a single
number.
"""


@dataclass(frozen=True)
class ByClient:
    """A kind of message whose shapes differ by client, such as one row for each of its nodes.

    Attributes:
        up: the schema of a message about client 0, 1 … on its way from a client to the server;
            none if the kind is not sent this way.
        down: the same from the server to a client.
    """

    up: Sequence[Schema] = ()
    down: Sequence[Schema] = ()


Kinds = Mapping[str, Schema | ByClient]
"""Schemas of all kinds of messages: one for all clients and both directions, or
:class:`ByClient`.
"""
Observer = Callable[[int, Direction, str, Payload], None]
"""Called with client, direction, kind and payload of a message: what the receiver gets, so copy
what is kept.
"""


class BoundaryError(RuntimeError):
    """Something tried to cross a client's boundary that was not declared: a bug, never a user's
    mistake.
    """


def schema_of(model: nn.Module) -> Schema:
    """The schema of a message that carries the weights of ``model``."""
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


class Boundary:
    """Lets declared messages pass, counts them, and refuses all else.

    A method declares up front what its messages hold.  Only dense tensors of floating-point numbers
    with exactly the declared names and shapes pass; adjacency and labels are integers and features
    are not declared, so none of them can.  The receiver gets a copy: sender and receiver never
    share memory.

    Attributes:
        communication: the count of all that has passed.
    """

    def __init__(self, may_cross: Kinds, observers: Sequence[Observer] = ()) -> None:
        """Declare the messages: for each kind, the schema of its payload.

        ``observers`` see every message that passes: those of a task, such as an attack in a study.
        """
        self._observers = tuple(observers)
        self._may_cross = dict(may_cross)
        self.communication = CommunicationLog()

    def schema(self, kind: str, direction: Direction, client: int) -> Schema:
        """The names and shapes that a message of a kind about a client must have.

        Raises:
            BoundaryError: if no such message is declared.
        """
        declared = self._may_cross.get(kind, ByClient())
        if not isinstance(declared, ByClient):
            return declared
        schemas = declared.up if direction == "up" else declared.down
        if not 0 <= client < len(schemas):
            raise BoundaryError(
                f"messages of kind {kind!r} about client {client} may not cross the boundary "
                f"{direction}; declared kinds are {sorted(self._may_cross)}"
            )
        return schemas[client]

    def send(
        self,
        client: int,
        direction: Direction,
        kind: str,
        payload: Mapping[str, Tensor],
        about: int | None = None,
    ) -> Payload:
        """Carry a message to (``down``) or from (``up``) a client; returns what the receiver gets.

        Args:
            client: who sends it up, or receives it.
            direction: its way.
            kind: its kind.
            payload: its tensors by name.
            about: the client whose shapes it must have, by default ``client``; another one where
                a client's message is passed on to others, or answered by them.

        Raises:
            BoundaryError: if the message is not declared, or the payload does not have exactly the
                declared names, shapes and a floating-point type.
        """
        expected = dict(self.schema(kind, direction, client if about is None else about))
        found = {name: tuple(tensor.shape) for name, tensor in payload.items()}
        if found != expected:
            raise BoundaryError(f"a message of kind {kind!r} may hold {expected} but holds {found}")
        for name, tensor in payload.items():
            dense = tensor.layout == torch.strided and not tensor.is_meta
            if not (dense and tensor.is_floating_point()):
                raise BoundaryError(
                    f"{name!r} of kind {kind!r} is {tensor.dtype}, {tensor.layout}, on "
                    f"{tensor.device}; only dense tensors of floating-point numbers may cross"
                )
        received = {name: tensor.detach().clone() for name, tensor in payload.items()}
        self.communication.count(
            client, direction, kind, sum(t.numel() * t.element_size() for t in received.values())
        )
        for observe in self._observers:
            observe(client, direction, kind, received)
        return received


def numbers(**values: float) -> Payload:
    """A payload of single numbers."""
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}
