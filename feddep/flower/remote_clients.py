"""The clients as the server sees them: what it is given for each, a SuperNode computes."""

import re
import time

import torch
from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from feddep.federation.boundary import Boundary, BoundaryError, Payload, numbers
from feddep.federation.client import REPORTS, Client, Update
from feddep.flower import FederationError
from feddep.flower.folders import Federation
from feddep.flower.messages import ROUND, pack, unpack
from feddep.flower.protocols import Payloads, cross
from feddep.training.evaluation import ClassCounts, CorrectCount

LARGEST = 1e6
"""No number of a client's model is larger in size: what is has diverged, or is made up."""
_MARGIN = 60
"""Seconds that a message is kept beyond the time that its answer is waited for."""


class Courier:
    """Takes messages to the SuperNodes, and brings back their answers.

    Attributes:
        round: number of rounds that had ended when the last messages were sent; −1 in the last
            exchange before the first round.
    """

    def __init__(
        self, grid: Grid, federation: Federation, exchanges: int, patience: float, poll: float = 0.2
    ) -> None:
        """Set up a courier.

        Args:
            grid: Flower's way to the SuperNodes.
            federation: what all participants know.
            exchanges: number of exchanges before the first round.
            patience: seconds to wait for all SuperNodes, and for all answers.
            poll: seconds between two looks.
        """
        self.round = -1 - exchanges
        self._grid = grid
        self._federation = federation
        self._clients = range(federation.clients)
        self._patience = patience
        self._poll = poll
        self._nodes: dict[
            int, int | None
        ] = {}  # the client that each SuperNode is, once it has answered
        self._messages: dict[int, Payloads] = {}
        self._answers: dict[int, Payloads] = {}

    @property
    def when(self) -> str:
        """The time of the last messages, as a sentence names it."""
        return f"in round {self.round}" if self.round >= 0 else "before the first round"

    def put(self, client: int, payloads: Payloads) -> None:
        """Add payloads to the next message to a client; it is sent, with those of all, once an
        answer is asked for.
        """
        self._messages.setdefault(client, {}).update(payloads)

    def answer(self, client: int) -> Payloads:
        """The answer of a client to the last message.

        Raises:
            FederationError: if a client does not answer in time, fails, or is not what it says.
        """
        if self._messages:
            self.round += 1
            self._answers, self._messages = self._deliver(), {}
        return self._answers[client]

    def _deliver(self) -> dict[int, Payloads]:
        """All answers."""
        nodes = self._nodes or self._connected()
        last = self.round == self._federation.setting["rounds"]
        facts = {"key": self._federation.key, "round": self.round, "last": last}
        # The first message is the same for all.
        payloads = [self._messages[client or 0] for client in nodes.values()]
        sent = [
            Message(pack(each, facts), node, ROUND, ttl=self._patience + _MARGIN)
            for node, each in zip(nodes, payloads, strict=True)
        ]
        waiting = dict(zip(self._grid.push_messages(sent), nodes, strict=True))
        answers: dict[int, Payloads] = {}
        end = time.monotonic() + self._patience
        while waiting and time.monotonic() < end:
            for reply in self._grid.pull_messages(list(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id)
                client, answer = self._read(reply, nodes[node])
                answers[client], self._nodes[node] = answer, client
            time.sleep(self._poll if waiting else 0)
        if missing := [f"client {i}" for i in self._clients if i not in answers]:
            raise FederationError(
                f"{', '.join(missing)} did not answer {self.when} within {self._patience:g} seconds"
            )
        return answers

    def _connected(self) -> dict[int, int | None]:
        """The SuperNodes, once all are there, with the client that each is registered as; None
        without keys.

        Raises:
            FederationError: if they do not come in time.
        """
        end = time.monotonic() + self._patience
        while len(nodes := list(self._grid.get_nodes())) < len(self._clients):
            if time.monotonic() > end:
                names = {node.name for node in nodes}
                missing = [f"client {i}" for i in self._clients if f"client{i}" not in names]
                if "" in names:  # without keys, so that the others have none either
                    missing = [f"{len(self._clients) - len(nodes)} of {len(self._clients)} clients"]
                raise FederationError(
                    f"{', '.join(missing)} did not connect within {self._patience:g} seconds"
                )
            time.sleep(self._poll)
        return {
            node.node_id: int(node.name.removeprefix("client")) if node.name else None
            for node in nodes
        }

    def _read(self, reply: Message, known: int | None) -> tuple[int, Payloads]:
        """The client that a SuperNode is, and its answer; ``known`` is the client that it must
        be.
        """
        who = "a SuperNode" if known is None else f"client {known}"
        if reply.has_error():
            away = reply.error.code == ErrorCode.NODE_UNAVAILABLE
            raise FederationError(
                f"{who} {'did not answer' if away else 'failed'} {self.when}: "
                f"{_sentence_of(reply.error.reason or '')}"
            )
        try:
            answer, facts = unpack(reply.content)
            client, number = facts["client"], facts["round"]
        except Exception as error:  # of whatever reads bytes that may be made up
            raise FederationError(f"{who} sent no answer {self.when}: {error}") from None
        if (
            not isinstance(client, int)
            or number != self.round
            or client not in (self._clients if known is None else [known])
        ):
            raise FederationError(
                f"{who} answered as client {client} of round {number} {self.when}"
            )
        return client, answer


def _sentence_of(reason: str) -> str:
    """The sentence of an exception, from Flower's ``<class 'X'>:<'SENTENCE'>``."""
    found = re.fullmatch(r"<class '[\w.]+'>:<'(.*)'>", reason, re.DOTALL)
    return found[1] if found else reason


class RemoteClient(Client):
    """A client whose data lie elsewhere.

    What comes back crosses the server's boundary: a client may run other code than ours, so what it
    checked says nothing.
    """

    def __init__(self, number: int, size: int, courier: Courier, boundary: Boundary) -> None:
        """Set up the server's view of client ``number``, which has ``size`` nodes."""
        self.number = number
        self._size = size
        self._nodes: dict[str, float] = {}  # that a kind of report is about
        self._courier = courier
        self._boundary = boundary

    def load(self, weights: Payload) -> None:
        """Give the server's weights to the courier."""
        self._courier.put(
            self.number, {"model": self._boundary.send(self.number, "down", "model", weights)}
        )

    def update(self) -> Update:
        """The client's message after its local steps.  Errors are :meth:`receive`'s."""
        weights, report = self.receive("model"), self.receive("training")
        return Update(self.number, weights, float(report["nodes"]), float(report["loss"]))

    def evaluate(self, report: bool) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """The client's report ``validation``, where there is one; test nodes stay unknown to the
        server.  Errors are :meth:`receive`'s.
        """
        sent = self.receive("validation") if report else numbers(nodes=0, correct=0)
        return (float(sent["correct"]), int(sent["nodes"])), (0, 0), ()

    def receive(self, kind: str) -> Payload:
        """The client's message of this kind, or by this name.

        Raises:
            FederationError: if it does not answer, or sends something else than was declared, or
                numbers that cannot be: not finite, larger than :data:`LARGEST`, more nodes than it
                has, more right than there are, or of other nodes than the round before.
        """
        sent = self._courier.answer(self.number).get(kind, {})
        where = f"client {self.number} sent {self._courier.when} what may not cross the boundary:"
        try:
            payload = cross(self._boundary, self.number, "up", kind, sent)
        except BoundaryError as error:
            raise FederationError(f"{where} {error}") from None
        expected = torch.float64 if kind in REPORTS else torch.float32
        for name, tensor in payload.items():
            # A finite number of a wider type may be infinite in the mean.
            if tensor.dtype != expected:
                raise FederationError(
                    f"{where} {name} of kind {kind} is {tensor.dtype}, not {expected}"
                )
            if not torch.isfinite(tensor).all() or (kind in REPORTS and tensor < 0):
                raise FederationError(
                    f"{where} {name} of kind {kind} has numbers that are not finite, or negative"
                )
            if name != "nodes" and (tensor.abs() > LARGEST).any():
                raise FederationError(
                    f"{where} {name} of kind {kind} has numbers beyond {LARGEST:g}"
                )
        if kind in REPORTS:
            nodes, right = float(payload["nodes"]), float(payload.get("correct", torch.zeros(())))
            whole = nodes.is_integer() and right.is_integer()
            if not whole or not right <= nodes <= self._size:
                raise FederationError(
                    f"{where} kind {kind} tells of {right:g} of {nodes:g} nodes, of which there "
                    f"are {self._size}"
                )
            if nodes != self._nodes.setdefault(kind, nodes):
                raise FederationError(
                    f"{where} kind {kind} is of {nodes:g} nodes, and was of {self._nodes[kind]:g}"
                )
        return payload
