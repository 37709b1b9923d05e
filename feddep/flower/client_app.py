"""The ClientApp: one client on the subgraph in its SuperNode's folder.

A SuperNode is started with ``folder`` and ``client``, the client's folder and number, in its node
configuration.  Flower runs the app in a new process for each message.  So the client is kept in
Flower's context between two of them, random generators and all: the context stays on the client's
machine.
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

from feddep.federation.boundary import Boundary, Payload, numbers
from feddep.federation.client import Client
from feddep.flower import FederationError
from feddep.flower.folders import THREADS, Federation, read_part
from feddep.flower.messages import pack, unpack
from feddep.flower.protocols import Payloads, cross

app = ClientApp()
_KEPT = "client"


@app.train("round")
def answer_round(message: Message, context: Context) -> Message:
    """Load the server's weights, validate them and, unless it is the last round, train from
    them.
    """
    payloads, facts = unpack(message.content)
    folder, number = Path(str(context.node_config["folder"])), int(context.node_config["client"])
    federation = Federation.load(folder)
    if facts["key"] != federation.key:
        raise FederationError(
            f"client {number} holds its part of the federation {federation.key[:12]}…, but the "
            "server trains "
            f"{str(facts['key'])[:12]}…; cut the data again"
        )
    torch.set_num_threads(THREADS)
    kept = (
        pickle.loads(cast(bytes, context.state.config_records[_KEPT]["pickle"]))
        if _KEPT in context.state
        else None
    )
    kept, answer = _work(folder, federation, number, kept, payloads, facts)
    context.state[_KEPT] = ConfigRecord({"pickle": pickle.dumps(kept)})
    return Message(pack(answer, {"client": number, "round": facts["round"]}), reply_to=message)


def _work(
    folder: Path,
    federation: Federation,
    number: int,
    kept: Any,
    payloads: Mapping[str, Payload],
    facts: Mapping[str, Any],
) -> tuple[Any, Payloads]:
    """Do what a client does with a message: from what it has kept of the message before to what it
    keeps now, and its answer.

    From the first round on it keeps the client; before that its boundary, and what it found in the
    last exchange.  The message's facts are ``round``, how many rounds have ended, −1 in the last
    exchange before the first; and whether it is the ``last``.
    """
    client = kept
    if not isinstance(kept, Client):
        protocol = federation.protocol(number, read_part(folder, federation, number))
        boundary, found = kept or (Boundary(protocol.may_cross()), None)
        received = {
            name: cross(boundary, number, "down", name, payload)
            for name, payload in payloads.items()
            if name != "model"
        }
        if facts["round"] < 0:
            found, sent = protocol.exchanges()[facts["round"]].work(found, received)
            return (boundary, found), {
                name: cross(boundary, number, "up", name, payload) for name, payload in sent.items()
            }
        client = protocol.new_client(boundary, found, received)
    client.load(payloads["model"])
    answer: Payloads = {}
    if facts["round"] > 0:
        (correct, nodes), *_ = client.evaluate(report=True)
        answer["validation"] = numbers(nodes=nodes, correct=correct)
    if not facts["last"]:
        update = client.update()
        answer["model"] = update.weights
        answer["training"] = numbers(nodes=update.nodes, loss=update.loss)
    return client, answer
