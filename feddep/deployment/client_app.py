"""The ClientApp: one client of FedAvg on the subgraph in its SuperNode's folder.

A SuperNode is started with ``folder`` and ``client``, the client's folder and number, in its node configuration.
"""

from pathlib import Path

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from feddep.deployment import DeploymentError, client_state
from feddep.deployment.client_folders import Federation, read_part
from feddep.deployment.client_state import Answer
from feddep.deployment.messages import pack, unpack
from feddep.federation.boundary import Boundary, Payload, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods.basic.fedavg import new_client

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
        answer = _work(folder, federation, client, run, number, payloads["model"], train=not facts["last"])
    return Message(pack(answer, {"client": client, "round": number}), reply_to=message)


def _work(folder: Path, federation: Federation, number: int, run: str, done: int, weights: Payload, train: bool) -> Answer:
    """Do what a client does between two exchanges, and keep what it leaves."""
    torch.set_num_threads(federation.threads)
    client = client_state.client_after(folder, run, done - 1) if done else _new(folder, federation, number)
    client.load(weights)
    answer: Answer = {}
    if done:
        answer["validation"] = client.validate()
    if train:
        answer["model"], answer["training"] = client.train()
    client_state.save(folder, run, done, client, answer)
    return answer


def _new(folder: Path, federation: Federation, number: int) -> Client:
    graph, split = read_part(folder, federation, number)
    task = federation.task(f"client{number}", graph, split)
    return new_client(task, number, (graph, split), Boundary({"model": schema_of(task.new_model()), **REPORTS}))
