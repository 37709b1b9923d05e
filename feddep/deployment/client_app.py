"""The ClientApp: one client on the subgraph in its SuperNode's folder.

A SuperNode is started with ``folder`` and ``client``, the client's folder and number, in its node configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, Message
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.compat.common.recorddict_compat import recorddict_to_fitins

from feddep.deployment import DeploymentError, client_state
from feddep.deployment.client_folders import Federation, read_part
from feddep.deployment.client_state import Answer
from feddep.deployment.deployed import Deployed, Member, Payloads, configured, kind_of, messages
from feddep.deployment.messages import pack, unpack
from feddep.deployment.secure_aggregation import masked_reply
from feddep.federation.boundary import Boundary, Payload, numbers
from feddep.federation.client import Client
from feddep.utils import seeding

app = ClientApp()


@app.train("round")
def answer_round(message: Message, context: Context) -> Message:
    """Load the server's weights, validate them and, unless it is the last round, train from them."""
    payloads, facts = unpack(message.content)
    who, number = _participant(context, facts), int(facts["round"])
    answer = client_state.answer_of(who.folder, who.run, number)
    if answer is None:
        torch.set_num_threads(who.federation.threads)
        kept, answer = _work(who, number, payloads, train=not facts["last"])
        client_state.save(who.folder, who.run, number, kept, answer)
    if who.federation.secure_aggregation:
        answer.pop("model", None)  # stays here until it is masked
    return Message(pack(answer, {"client": who.number, "round": number}), reply_to=message)


@app.train(mods=[secaggplus_mod])
def give_weights(message: Message, context: Context) -> Message:
    """The weights that this client keeps since the round's message, for Flower's mod to mask."""
    facts = recorddict_to_fitins(message.content, keep_input=True).config
    who, number = _participant(context, facts), int(facts["round"])
    answer = client_state.answer_of(who.folder, who.run, number)
    if not who.federation.secure_aggregation or answer is None:
        raise DeploymentError(f"client {who.number} has nothing to mask in round {number}")
    setting, seed = who.federation.specification["setting"], who.federation.specification["seed"]
    nodes = int(answer["training"]["nodes"]) if setting["client_weights"] == "nodes" else 1
    draws = seeding.generator(seed, f"client{who.number}", "secure aggregation", number)
    return Message(masked_reply(answer["model"], nodes, draws), reply_to=message)


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


def _participant(context: Context, facts: Mapping[str, Any]) -> Participant:
    """Who this SuperNode is.

    Raises:
        DeploymentError: if the server trains another run.
    """
    folder, client = Path(str(context.node_config["folder"])), int(context.node_config["client"])
    federation = Federation.load(folder)
    if facts["key"] != federation.key:
        raise DeploymentError(
            f"client {client} holds its part of the run {federation.key[:12]}…, but the server trains {str(facts['key'])[:12]}…; "
            "run feddep cut again"
        )
    return Participant(folder, federation, client, f"{federation.key}/{context.run_id}")


def _work(who: Participant, done: int, payloads: Mapping[str, Payload], train: bool) -> tuple[Any, Answer]:
    """Do what a client does between two messages; returns what it keeps, and its answer."""
    if done < 0:
        return _prepare(who, done, payloads)
    client = client_state.client_after(who.folder, who.run, done - 1) if done else _new_client(who, payloads)
    client.load(payloads["model"])
    answer: Answer = {}
    if done:
        answer["validation"] = client.validate()
    if train:
        update = client.update()
        answer["model"], answer["training"] = update.weights, numbers(nodes=update.nodes, loss=update.loss)
    return client, answer


def _prepare(who: Participant, done: int, payloads: Mapping[str, Payload]) -> tuple[Any, Answer]:
    """What a client does in an exchange before the first round: it keeps its boundary and what it found, and answers."""
    method, member = _member(who)
    exchange = method.exchanges(member.parameters, member.clients)[done]
    boundary, kept, received = _between(who, method, member, done, payloads)
    kept, sent = exchange.work(member, kept, received)
    return (boundary, kept), {kind: boundary.send(who.number, "up", kind, payload) for kind, payload in sent.items()}


def _new_client(who: Participant, payloads: Mapping[str, Payload]) -> Client:
    method, member = _member(who)
    return method.new_client(member, *_between(who, method, member, 0, payloads))


def _between(
    who: Participant, method: Deployed, member: Member, done: int, payloads: Mapping[str, Payload]
) -> tuple[Boundary, Any, Payloads]:
    """A client's boundary, what it kept of the exchange before, if there was one, and what the server passes on of it."""
    if done + len(method.exchanges(member.parameters, member.clients)):
        boundary, kept = client_state.client_after(who.folder, who.run, done - 1)
    else:
        boundary, kept = Boundary(messages(method, member.parameters, member.task, who.federation.sizes)), None
    passed_on = {name: payload for name, payload in payloads.items() if name != "model"}
    received = {name: boundary.send(who.number, "down", kind_of(name), payload) for name, payload in passed_on.items()}
    return boundary, kept, received


def _member(who: Participant) -> tuple[Deployed, Member]:
    method, parameters = configured(who.federation.specification["method"])
    task = who.federation.task(f"client{who.number}", *read_part(who.folder, who.federation, who.number))
    return method, Member(task, parameters, who.number, who.federation.clients)
