"""The ServerApp: federated averaging on the clients that SuperNodes are, without any data.

The run configuration has ``folder``, the server's folder, and ``patience`` and ``resend`` (:class:`Courier`).  The folder gets
``round.safetensors``, the weights of the last round that ended; and at the end ``outcome.json`` and ``weights.safetensors``, the
weights at the best round on validation, or ``failure.json`` with the sentence that says why there is none.
"""

import math
from pathlib import Path

import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from feddep.deployment.client_folders import Federation
from feddep.deployment.deployed import configured, messages
from feddep.deployment.remote_client import Courier, RemoteClient
from feddep.deployment.secure_aggregation import SecureServer
from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, Payload
from feddep.federation.server import Server
from feddep.training.task import GlobalAccuracy, RunResult
from feddep.utils.errors import FeddepError
from feddep.utils.files import write_arrays, write_json, write_result

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and write what came of it to the server's folder."""
    config = context.run_config
    folder = Path(str(config["folder"]))
    try:
        federation = Federation.load(folder)
        result = train(grid, federation, folder, float(config["patience"]), float(config["resend"]), context)
    except (FeddepError, ValueError) as error:  # a ValueError: all clients say that they have no training nodes
        write_json(folder / "failure.json", {"error": str(error)})
        raise
    history = result.histories[0]
    save_weights(folder / "weights.safetensors", history.best_weights, federation.key)
    write_result(
        folder / "outcome.json",
        {
            "key": federation.key,
            "specification": federation.specification,
            "best_round": history.best_round,
            "curve": {"loss": history.loss, "validation": history.validation},
            "communication": result.communication,
            "seconds": [round(second, 2) for second in history.seconds],
        },
    )


def train(
    grid: Grid, federation: Federation, folder: Path, patience: float, resend: float, context: Context | None = None
) -> RunResult:
    """FedAvg, as the simulation does it; the server has no test nodes, so the accuracies on them are NaN.

    ``context`` is the ServerApp's, which secure aggregation needs.
    """
    torch.set_num_threads(federation.threads)
    task = federation.server_task()
    method, parameters = configured(federation.specification["method"])
    may_cross = messages(method, parameters, task, federation.sizes)
    model, boundary = method.new_model(task, parameters), Boundary(may_cross)
    exchanges = method.exchanges(parameters, federation.clients)
    courier = Courier(grid, federation.key, federation.clients, task.setting.rounds, patience, resend, len(exchanges))
    clients = [RemoteClient(number, courier, boundary, may_cross) for number in range(federation.clients)]
    for exchange in exchanges:
        courier.take({}, clients[0].per_client)
        sent = [{kind: client.receive(kind) for kind in exchange.kinds(client.number, len(clients))} for client in clients]
        clients[0].per_client = exchange.pass_on(boundary, sent)

    def keep(done: int) -> None:
        save_weights(folder / "round.safetensors", model.state_dict(), f"{federation.key}/round{done}")

    untested = GlobalAccuracy(math.nan, math.nan)
    weights, client_weights = model.state_dict(), task.setting.client_weights
    server = Server(weights, client_weights)
    if federation.secure_aggregation:
        facts = {"key": federation.key}
        server = SecureServer(weights, client_weights, grid, context, courier, facts, boundary.communication)
        for client in clients:
            client.masked = True
    return train_federated(task, model, boundary, clients, lambda _: untested, keep, server)


def save_weights(path: Path, weights: Payload, key: str) -> None:
    """Write weights with the key of what they are."""
    write_arrays(path, {name: tensor.numpy() for name, tensor in weights.items()}, key)
