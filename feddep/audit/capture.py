"""Capture of the messages that cross clients' boundaries while a method runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from feddep.federation.boundary import Boundary, Direction, Payload


@dataclass(frozen=True, eq=False)
class Message:
    """One message.

    Attributes:
        client: the client whose boundary it crosses.
        direction: ``up``, from the client, or ``down``, to it.
        kind: its kind, as declared by the method.
        payload: what the receiver gets.  The receiver may change it later: copy what is kept.
    """

    client: int
    direction: Direction
    kind: str
    payload: Mapping[str, Tensor]


@contextmanager
def capture(listener: Callable[[Message], None]) -> Iterator[None]:
    """Call ``listener`` with every message that crosses any boundary within the context, in order.

    Methods construct their boundaries themselves, so the class is patched.  Messages that a boundary refuses are not captured.
    """
    cross = Boundary.send

    def captured(self: Boundary, client: int, direction: Direction, kind: str, payload: Mapping[str, Tensor]) -> Payload:
        received = cross(self, client, direction, kind, payload)
        listener(Message(client, direction, kind, received))
        return received

    Boundary.send = captured  # type: ignore[method-assign]
    try:
        yield
    finally:
        Boundary.send = cross  # type: ignore[method-assign]
