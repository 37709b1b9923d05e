"""The one place through which everything enters or leaves a client."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from feddep.federation.communication import CommunicationLog

Direction = Literal["up", "down"]
Payload = dict[str, Tensor]
Schema = Mapping[str, tuple[int, ...]]
"""What a kind of message may hold: the name and shape of each of its tensors; ``()`` is a single
number.
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

    A method declares up front what its messages hold.  Only floating-point tensors of exactly the
    declared names and shapes pass; adjacency and labels are integers and features are not declared,
    so none of them can.  The receiver gets a copy: sender and receiver never share memory.
    """

    def __init__(self, may_cross: Mapping[str, Schema], observers: Sequence[Observer] = ()) -> None:
        """Declare the messages: for each kind, the schema of its payload.

        ``observers`` see every message that passes: those of a task, such as an attack in a study.
        """
        self._observers = tuple(observers)
        self._may_cross = {kind: dict(schema) for kind, schema in may_cross.items()}
        self.communication = CommunicationLog()

    def named(self, kind: str) -> list[str]:
        """The names of the tensors that messages of a kind hold."""
        return list(self._may_cross[kind])

    def send(
        self, client: int, direction: Direction, kind: str, payload: Mapping[str, Tensor]
    ) -> Payload:
        """Carry a message to (``down``) or from (``up``) a client; returns what the receiver gets.

        Raises:
            BoundaryError: if the kind is not declared, or the payload does not have exactly the
                declared names, shapes and a floating-point type.
        """
        if kind not in self._may_cross:
            raise BoundaryError(
                f"messages of kind {kind!r} may not cross the boundary; declared are "
                f"{sorted(self._may_cross)}"
            )
        found = {name: tuple(tensor.shape) for name, tensor in payload.items()}
        if found != self._may_cross[kind]:
            raise BoundaryError(
                f"a message of kind {kind!r} may hold {self._may_cross[kind]} but holds {found}"
            )
        for name, tensor in payload.items():
            if not tensor.is_floating_point():
                raise BoundaryError(
                    f"{name!r} of kind {kind!r} is {tensor.dtype}; only floating-point numbers "
                    "may cross"
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
