"""A Flower grid without processes: what is pushed, the ClientApp answers at once."""

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from feddep.deployment.client_app import app
from feddep.deployment.client_folders import client_folder

Change = Callable[[int, int, RecordDict], RecordDict]
"""From a client's number, the round and the content of its answer to what it sends in its place."""
RUN = 7


class InProcessGrid:
    """SuperNodes 100, 101 … with the folders of a federation.

    Attributes:
        change: what they send.
        lose: the client, round and error code of answers that are lost, each once.
        silent: clients that never answer.
        pushed: the client and round of each message.
        kinds: the kinds of payloads in it.
    """

    def __init__(self, directory: Path, clients: int, change: Change | None = None, named: bool = False) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 1, 1  # which Flower's processes set
        self.directory = directory
        self.change = change
        self.named = named
        self.clients = list(range(clients))
        self.lose: list[tuple[int, int, int]] = []
        self.silent: set[int] = set()
        self.pushed: list[tuple[int, int]] = []
        self.kinds: dict[tuple[int, int], set[str]] = {}
        self.replies: dict[str, Message] = {}
        self.states = {i: RecordDict() for i in range(clients)}

    def get_nodes(self) -> Iterable[SimpleNamespace]:
        return [SimpleNamespace(node_id=100 + i, name=f"client{i}" if self.named else "") for i in self.clients]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for message in messages:
            client = message.metadata.dst_node_id - 100
            records = message.content.config_records
            number = int(records["facts"]["round"]) if "facts" in records else int(message.metadata.group_id)  # type: ignore[arg-type]
            self.pushed.append((client, number))
            self.kinds[client, number] = set(message.content.array_records)
            message.metadata.__dict__["_message_id"] = f"{len(self.pushed)}"
            ids.append(message.metadata.message_id)
            if client not in self.silent:
                self.replies[ids[-1]] = self._answer(client, number, message)
        return ids

    def pull_messages(self, ids: list[str]) -> list[Message]:
        return [self.replies.pop(each) for each in ids if each in self.replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        return self.pull_messages(self.push_messages(messages))

    def _answer(self, client: int, number: int, message: Message) -> Message:
        folder = str(client_folder(self.directory, client))
        context = Context(RUN, 100 + client, {"folder": folder, "client": client}, self.states[client], {})
        message.content = copy.deepcopy(message.content)  # as if it had been sent
        try:
            reply = app(message, context)
        except Exception as error:
            return Message(Error(2, f"{type(error)}:<'{error}'>"), reply_to=message)
        lost = next((each for each in self.lose if each[:2] == (client, number)), None)
        if lost is not None:
            self.lose.remove(lost)
            return Message(Error(lost[2], "lost"), reply_to=message)
        if self.change is not None:
            reply.content = self.change(client, number, reply.content)
        return reply
