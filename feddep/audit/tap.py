"""Hearing what crosses clients' borders while a framework runs, as it is."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from feddep.federation.boundary import Boundary, Direction, Payload


@dataclass(frozen=True, eq=False)
class Message:
    """One message.

    Attributes:
        client: the client whose border it crosses.
        direction: ``up``, from the client, or ``down``, to it.
        kind: its kind, as the framework has declared it.
        payload: what the receiver gets.  The receiver may go on working with it: who keeps it must copy it.
    """

    client: int
    direction: Direction
    kind: str
    payload: Mapping[str, Tensor]


Listener = Callable[[Message], None]


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of every message that crosses any border meanwhile, in the order in which they do.

    Frameworks make their borders themselves, so it is the class that is listened to; messages that it refuses are not heard.
    """
    cross = Boundary.cross

    def heard(self: Boundary, client: int, direction: Direction, kind: str, payload: Mapping[str, Tensor]) -> Payload:
        received = cross(self, client, direction, kind, payload)
        listener(Message(client, direction, kind, received))
        return received

    Boundary.cross = heard  # type: ignore[method-assign]
    try:
        yield
    finally:
        Boundary.cross = cross  # type: ignore[method-assign]
