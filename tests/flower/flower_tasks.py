"""Small federations to test on, and a Flower grid without processes: what is pushed, the ClientApp
answers at once.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flwr.app import Context, Error, Message, Metadata, RecordDict

from feddep.flower import folders, remote_clients, server_app
from feddep.flower.client_app import app
from feddep.flower.folders import Federation, client_folder, server_folder
from feddep.training.task import RunResult, Task
from method_tasks import run_on, task_of

OPTIONS: dict[str, dict[str, Any]] = {
    "feddep": {"embedding": 8, "pretraining_epochs": 3},
    "fedsage_plus": {
        "embedding": 8,
        "generator_width": 8,
        "generator_local_epochs": 1,
        "generator_federated_epochs": 2,
        "generator_batch": 66,  # more nodes than two of the clients keep
        "hidden_from": "validation",
        "hidden_share": 0.9,
    },
}
Change = Callable[[int, int, RecordDict], RecordDict]
"""From a client's number, the round and the content of its answer to what it sends in its place."""


def small_task(method: str = "fedavg", rounds: int = 2, **setting: Any) -> Task:
    """A task with three clients."""
    task = task_of(method)
    return dataclasses.replace(task, setting=task.setting.replace(rounds=rounds, **setting))


def cut(task: Task, directory: Path) -> Federation:
    """Write the participants' folders; the method is the one that the task is called by."""
    return folders.cut(task, {"name": task.name, **OPTIONS.get(task.name, {})}, directory)


def simulated(task: Task) -> RunResult:
    """The same training in one process."""
    return run_on(task, task.name, **OPTIONS.get(task.name, {}))


class InProcessGrid:
    """SuperNodes 100, 101 … with the folders of a federation.

    Attributes:
        received: the kinds of payloads that each client gets in each message.
        sent: those that it answers with.
    """

    def __init__(
        self,
        directory: Path,
        named: bool,
        change: Change | None,
        silent: Iterable[int],
        away: Iterable[int],
    ) -> None:
        self.directory = directory
        self.named = named
        self.change = change
        self.silent = set(silent)
        self.clients = sorted(
            set(range(Federation.load(server_folder(directory)).clients)) - set(away)
        )
        self.states = {client: RecordDict() for client in self.clients}
        self.received: dict[tuple[int, int], set[str]] = {}
        self.sent: dict[tuple[int, int], set[str]] = {}
        self.replies: dict[str, Message] = {}

    def get_nodes(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(node_id=100 + i, name=f"client{i}" if self.named else "")
            for i in self.clients
        ]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        for message in messages:
            client = message.metadata.dst_node_id - 100
            if client not in self.silent:
                self.replies[message.metadata.message_id] = self._answer(client, message)
        return [message.metadata.message_id for message in messages]

    def pull_messages(self, ids: list[str]) -> list[Message]:
        return [self.replies.pop(each) for each in ids if each in self.replies]

    def _answer(self, client: int, message: Message) -> Message:
        number = int(message.content.config_records["facts"]["round"])  # type: ignore[arg-type]
        self.received[client, number] = set(message.content.array_records)
        message.content = copy.deepcopy(message.content)  # as if it had been sent
        folder = str(client_folder(self.directory, client))
        context = Context(
            7, 100 + client, {"folder": folder, "client": client}, self.states[client], {}
        )
        try:
            reply = app(message, context)
        except Exception as error:
            return Message(Error(2, f"{type(error)}:<'{error}'>"), reply_to=message)
        self.sent[client, number] = set(reply.content.array_records)
        if self.change is not None:
            reply.content = self.change(client, number, reply.content)
        return reply


def train(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change | None = None,
    named: bool = True,
    silent: Iterable[int] = (),
    away: Iterable[int] = (),
) -> tuple[RunResult, InProcessGrid]:
    """Train on the clients whose folders are there, but for those that are ``silent`` or
    ``away``.
    """
    sent = iter(range(10**6))

    def message_of(
        content: RecordDict, node: int, kind: str, ttl: float
    ) -> Message:  # outside of Flower's processes
        return Message(
            content=content, metadata=Metadata(7, str(next(sent)), 1, node, "", "", 0.0, ttl, kind)
        )

    monkeypatch.setattr(remote_clients, "Message", message_of)
    grid = InProcessGrid(directory, named, change, silent, away)
    server = server_folder(directory)
    return server_app.train(
        grid, Federation.load(server), server, patience=0.5 if silent or away else 60
    ), grid  # type: ignore[arg-type]
