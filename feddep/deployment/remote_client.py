"""The clients as the server sees them: what it is given for each, a SuperNode computes."""

import math
import re
import time
from collections.abc import Mapping, Sequence

import torch
from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from feddep.deployment import DeploymentError
from feddep.deployment.client_state import Answer
from feddep.deployment.messages import ROUND, pack, unpack
from feddep.federation.boundary import Boundary, BoundaryError, Payload, Schema
from feddep.federation.client import REPORTS, Client, Update

_LOST = (
    ErrorCode.MESSAGE_UNAVAILABLE,
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
    ErrorCode.NODE_UNAVAILABLE,
    ErrorCode.CLIENT_APP_CRASHED,
)
"""Errors after which a message is sent again: nobody answered it."""

_MOST = 1e12
"""The largest number that a report may hold: sums and products of such numbers stay finite, so a mean of weights does."""


class Courier:
    """Takes the weights of a round to all SuperNodes and brings back their answers.

    A SuperNode that does not answer in time, or whose connection is lost, gets the message again; clients answer the same
    message the same way however often it comes.

    Attributes:
        patience: seconds to wait for all answers of a message.
        round: number of rounds that have ended when the message was sent; −1 in the last exchange before the first weights.
    """

    def __init__(
        self,
        grid: Grid,
        key: str,
        clients: int,
        rounds: int,
        patience: float,
        resend: float,
        exchanges: int = 0,
        poll: float = 0.5,
    ) -> None:
        """Set up a courier.

        Args:
            grid: Flower's way to the SuperNodes.
            key: content key of the run; clients that hold parts of another refuse to answer.
            clients: number of clients M.
            rounds: number of rounds.
            patience: seconds to wait for all answers of a round.
            resend: seconds after which a message without an answer is sent again.
            exchanges: number of exchanges before the first weights.
            poll: seconds between two looks for answers.
        """
        self.round = -1 - exchanges
        self._exchanges = exchanges
        self._grid = grid
        self._key = key
        self._clients = clients
        self._rounds = rounds
        self.patience = patience
        self._resend = resend
        self._poll = poll
        self._registered: dict[int, int] = {}  # numbers of clients by SuperNode: as registered with their keys,
        self._claimed: dict[int, int] = {}  # or, where there are no keys, as SuperNodes say
        self._letter: dict[str, Payload] = {}  # to all clients
        self._enclosed: dict[int, dict[str, Payload]] = {}  # and to single ones
        self._answers: dict[int, Answer] = {}

    def take(self, broadcast: dict[str, Payload], per_client: Mapping[int, dict[str, Payload]] | None = None) -> None:
        """Take the next message: payloads by kind that are the same for all clients, and what is per_client for each."""
        self.round += 1
        self._letter, self._enclosed, self._answers = broadcast, dict(per_client or {}), {}

    @property
    def nodes(self) -> dict[int, int]:
        """The SuperNode of each client, of those that are connected and known."""
        return {number: node for node in self._online() if (number := self._number(node)) is not None}

    @property
    def when(self) -> str:
        """The time of the message, as a sentence names it."""
        if self.round >= 0:
            return f"in round {self.round}"
        return f"in exchange {self.round + self._exchanges + 1} of {self._exchanges} before the first round"

    def answer(self, client: int) -> Answer:
        """The answer of a client in this round.

        Raises:
            DeploymentError: if a client does not answer in time, fails, or is not what it says.
        """
        if not self._answers:
            self._answers = self._collect()
        return self._answers[client]

    def _collect(self) -> dict[int, Answer]:
        content = {"key": self._key, "round": self.round, "last": self.round == self._rounds}
        started, sent, waiting, answers = time.monotonic(), dict[int, float](), set[str](), dict[int, Answer]()
        while len(answers) < self._clients:
            now = time.monotonic()
            if now - started > self.patience:
                raise DeploymentError(self._missing(sorted(set(range(self._clients)) - set(answers))))
            due = [
                node
                for node in self._online()
                if self._number(node) not in answers
                and now - sent.get(node, -math.inf) > self._resend
                and not (self._enclosed and self._number(node) is None)  # nobody knows what to enclose
            ]
            messages = [Message(pack(self._payloads(node), content), node, ROUND, ttl=self.patience) for node in due]
            waiting |= set(self._grid.push_messages(messages))
            sent |= dict.fromkeys(due, now)
            for reply in self._grid.pull_messages(list(waiting)) if waiting else ():
                waiting.discard(reply.metadata.reply_to_message_id)
                if not (reply.has_error() and reply.error.code in _LOST):
                    client, answer = self._read(reply)
                    answers[client] = answer
            if len(answers) < self._clients:
                time.sleep(self._poll)
        return answers

    def _missing(self, clients: Sequence[int]) -> str:
        """The sentence about clients that have not answered in time."""
        named = ", ".join(map(str, clients))
        sentence = f"of {self._clients} clients, {named} did not answer {self.when} within {self.patience:g} seconds"
        connected = {self._number(node) for node in self._online()}
        if None not in connected and (away := sorted(set(clients) - connected)):  # else one of the unknown may be it
            named = ", ".join(map(str, away))
            sentence += f"; no SuperNode is connected for {named}: it does not run, or its key is not registered"
        return f"{sentence}; the run stops"

    def _read(self, reply: Message) -> tuple[int, Answer]:
        node = reply.metadata.src_node_id
        known = self._number(node)
        who = f"the SuperNode {node}" if known is None else f"client {known}"
        if reply.has_error():
            raise DeploymentError(f"{who} failed {self.when}: {sentence_of(reply.error.reason)}")
        try:
            answer, facts = unpack(reply.content)
            client, number = int(facts["client"]), int(facts["round"])
        except (ValueError, KeyError, TypeError) as error:
            raise DeploymentError(f"{who} sent no answer {self.when}: {error}") from None
        if number != self.round or not 0 <= client < self._clients:
            raise DeploymentError(f"{who} answered as client {client} of round {number} {self.when}")
        if known not in (None, client):
            raise DeploymentError(f"{who} answered as client {client} {self.when}, and the run stops")
        self._claimed[node] = client
        return client, answer

    def _online(self) -> list[int]:
        """The SuperNodes that are connected; notes which client each is registered as."""
        nodes = list(self._grid.get_nodes())
        for node in nodes:
            if found := re.fullmatch(r"client(\d+)", node.name):
                self._registered[node.node_id] = int(found[1])
        return [node.node_id for node in nodes]

    def _payloads(self, node: int) -> dict[str, Payload]:
        """What a SuperNode is sent."""
        number = self._number(node)
        return {**self._letter, **({} if number is None else self._enclosed.get(number, {}))}

    def _number(self, node: int) -> int | None:
        """The number of the client that a SuperNode is, if it is known."""
        return self._registered.get(node, self._claimed.get(node))


def sentence_of(reason: str) -> str:
    """What an exception said, of Flower's ``<class 'X'>:<'SENTENCE'>``."""
    found = re.fullmatch(r"<class '[\w.]+'>:<'(.*)'>", reason, re.DOTALL)
    return found[1] if found else reason


class RemoteClient(Client):
    """A client of FedAvg whose data lie elsewhere.

    What comes back crosses the server's boundary: a client may run other code than ours, so what it checked says nothing.

    Attributes:
        masked: whether its weights come masked, by secure aggregation; then :meth:`update` has no weights.
        per_client: what goes to single clients, by their numbers, together with the next weights; read of client 0 alone.
    """

    def __init__(self, number: int, courier: Courier, boundary: Boundary, may_cross: Mapping[str, Schema]) -> None:
        """Set up the server's view of client ``number``; ``may_cross`` is what its ``boundary`` declares."""
        self.number = number
        self.tested = (0, 0)  # test nodes stay unknown to the server
        self.masked = False
        self.per_client: Mapping[int, dict[str, Payload]] = {}
        self._courier = courier
        self._boundary = boundary
        self._may_cross = may_cross

    def load(self, weights: Payload) -> None:
        """Hand the server's weights to the courier, which takes them to all clients at once."""
        received = self._boundary.send(self.number, "down", "model", weights)
        if self.number == 0:
            self._courier.take({"model": received}, self.per_client)
            self.per_client = {}

    def update(self) -> Update:
        """What the client sends after its local steps.

        Raises:
            DeploymentError: if it does not answer, or sends something else than was declared or numbers that are not finite.
        """
        weights, report = {} if self.masked else self.receive("model"), self.receive("training")
        return Update(weights, float(report["nodes"]), float(report["loss"]))

    def validate(self) -> Payload:
        """The client's report ``validation``.

        Raises:
            DeploymentError: as :meth:`update`.
        """
        return self.receive("validation")

    def test(self) -> tuple[int, int]:
        """Nothing: only the client itself could tell."""
        return self.tested

    def receive(self, kind: str) -> Payload:
        """What the client sent of this kind.

        Raises:
            DeploymentError: as :meth:`update`.
        """
        where = f"client {self.number} sent {self._courier.when}"
        sent = self._courier.answer(self.number).get(kind, {})
        found = {name: tuple(tensor.shape) for name, tensor in sent.items()}
        for name in sorted({*found, *self._may_cross[kind]}):
            has, declared = found.get(name), self._may_cross[kind].get(name)
            if has != declared:
                wrong = "is missing" if has is None else f"must have the shape {declared} but has {has}"
                wrong = "is not declared" if declared is None else wrong
                raise DeploymentError(
                    f"{where} what may not cross the boundary, and the run stops: {name} of kind {kind} {wrong}"
                )
        try:
            payload = self._boundary.send(self.number, "up", kind, sent)
        except BoundaryError as error:
            raise DeploymentError(f"{where} what may not cross the boundary, and the run stops: {error}") from None
        expected = torch.float64 if kind in REPORTS else torch.float32
        for name, tensor in payload.items():
            if not torch.isfinite(tensor).all():
                raise DeploymentError(f"{where} numbers that are not finite, in {name} of kind {kind}, and the run stops")
            if tensor.dtype != expected:  # a finite number of a wider type may be infinite in the mean
                raise DeploymentError(f"{where} {tensor.dtype} in {name} of kind {kind}, not {expected}, and the run stops")
            if kind in REPORTS and not 0 <= float(tensor) <= _MOST:
                raise DeploymentError(
                    f"{where} {float(tensor):g} for {name} of kind {kind}, which must be between 0 and {_MOST:g}; the run stops"
                )
        return payload
