"""The ClientApp: one client on the subgraph in its SuperNode's folder.

A SuperNode is started with ``folder`` and ``client``, the client's folder and number, in its node configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from feddep.deployment import DeploymentError, client_state
from feddep.deployment.client_folders import Federation, read_part
from feddep.deployment.client_state import Answer
from feddep.deployment.deployed import Deployed, configured, new_boundary
from feddep.deployment.messages import pack, unpack
from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.training.task import Part, Task

app = ClientApp()


@app.train("round")
def answer_round(message: Message, context: Context) -> Message:
    """Load the server's weights, validate them and, unless it is the last round, train from them."""
    payloads, facts = unpack(message.content)
    folder, client = Path(str(context.node_config["folder"])), int(context.node_config["client"])
    federation = Federation.load(folder)
    if facts["key"] != federation.key:
        raise DeploymentError(
            f"client {client} holds its part of the run {federation.key[:12]}…, but the server trains {str(facts['key'])[:12]}…; "
            "run feddep cut again"
        )
    run, number = f"{federation.key}/{context.run_id}", int(facts["round"])
    answer = client_state.answer_of(folder, run, number)
    if answer is None:
        torch.set_num_threads(federation.threads)
        kept, answer = _work(Participant(folder, federation, client, run), number, payloads, train=not facts["last"])
        client_state.save(folder, run, number, kept, answer)
    return Message(pack(answer, {"client": client, "round": number}), reply_to=message)


@dataclass(frozen=True)
class Participant:
    """Who does the work of a message.

    Attributes:
        folder: what the client holds.
        federation: what all participants know.
        number: the client's number.
        run: names the run.
    """

    folder: Path
    federation: Federation
    number: int
    run: str


def _work(who: Participant, done: int, payloads: Mapping[str, Payload], train: bool) -> tuple[Any, Answer]:
    """Do what a client does between two exchanges; returns what it keeps, and its answer."""
    if done < 0:
        return _prepare(who)
    client = client_state.client_after(who.folder, who.run, done - 1) if done else _new_client(who, payloads)
    client.load(payloads["model"])
    answer: Answer = {}
    if done:
        answer["validation"] = client.validate()
    if train:
        answer["model"], answer["training"] = client.train()
    return client, answer


def _prepare(who: Participant) -> tuple[Any, Answer]:
    """What a client does before the first round: it keeps its boundary and what it found, and shares a part of it."""
    framework, parameters, part, task = _read(who)
    assert framework.prepare is not None
    boundary = new_boundary(framework, parameters, task)
    kept, payload = framework.prepare(task, parameters, who.number, part)
    (kind,) = framework.shared(task, parameters)
    return (boundary, kept), {kind: boundary.cross(who.number, "up", kind, payload)}


def _new_client(who: Participant, payloads: Mapping[str, Payload]) -> Client:
    framework, parameters, part, task = _read(who)
    if framework.prepare is None:
        return framework.new_client(task, parameters, who.number, part, new_boundary(framework, parameters, task), None, {})
    boundary, kept = client_state.client_after(who.folder, who.run, -1)
    (kind,) = framework.shared(task, parameters)
    others = {}
    for name, payload in payloads.items():
        if name.startswith(f"{kind}/"):
            others[int(name.partition("/")[2])] = boundary.cross(who.number, "down", kind, payload)["embeddings"]
    return framework.new_client(task, parameters, who.number, part, boundary, kept, others)


def _read(who: Participant) -> tuple[Deployed, Any, Part, Task]:
    framework, parameters = configured(who.federation.specification["framework"])
    part = read_part(who.folder, who.federation, who.number)
    return framework, parameters, part, who.federation.task(f"client{who.number}", *part)
