"""The ServerApp: federated averaging on the clients that SuperNodes are, without any data.

The run configuration has ``folder``, the server's folder, and ``patience`` (:class:`Courier`).  The
folder gets ``round.safetensors``, the weights of the last round that ended; and at the end
``outcome.json`` and ``weights.safetensors``, the weights at the best round on validation, or
``failure.json`` with the sentence that says why there is none.
"""

from pathlib import Path

import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, Payload
from feddep.federation.server import Server
from feddep.flower.folders import THREADS, Federation
from feddep.flower.remote_clients import Courier, RemoteClient
from feddep.training.evaluation import GlobalAccuracy
from feddep.training.task import RunResult
from feddep.utils.errors import FeddepError
from feddep.utils.files import write_arrays, write_json

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and write what came of it to the server's folder."""
    folder = Path(str(context.run_config["folder"]))
    patience = float(context.run_config["patience"])
    try:
        result = train(grid, Federation.load(folder), folder, patience)
    except FeddepError as error:
        write_json(folder / "failure.json", {"error": str(error)})
        raise
    write_outcome(folder, result)


def train(grid: Grid, federation: Federation, folder: Path, patience: float) -> RunResult:
    """FedAvg, as the simulation does it; the server has no test nodes, so the accuracies on them
    are NaN.
    """
    torch.set_num_threads(THREADS)
    protocol = federation.protocol()
    model, may_cross, exchanges = protocol.new_model(), protocol.may_cross(), protocol.exchanges()
    boundary = Boundary(may_cross)
    courier = Courier(grid, federation, len(exchanges), patience)
    clients = [RemoteClient(i, n, courier, boundary) for i, n in enumerate(federation.nodes)]
    for exchange in exchanges:
        for client in clients:
            courier.put(client.number, {})
        sent = [
            {name: client.receive(name) for name in exchange.names(client.number)}
            for client in clients
        ]
        for number, payloads in exchange.pass_on(boundary, sent).items():
            courier.put(number, payloads)

    return train_federated(
        protocol.task,
        model,
        boundary,
        clients,
        test=lambda model: GlobalAccuracy(),
        exchange=lambda done: write_weights(folder / "round.safetensors", model.state_dict()),
        server=Server(model.state_dict(), protocol.task.setting.client_weights),
    )


def write_outcome(folder: Path, result: RunResult) -> None:
    """Write what a federation and its simulation are compared by to ``outcome.json`` and
    ``weights.safetensors``.
    """
    write_weights(folder / "weights.safetensors", result.weights())
    measured = {
        "loss": result.curve["loss"],
        "validation": result.curve["validation"],
        "best_round": result.history.judged[0].rounds[0],
    }
    write_json(folder / "outcome.json", {**measured, "communication": result.communication})


def write_weights(path: Path, weights: Payload) -> None:
    """Write weights as safetensors."""
    write_arrays(path, {name: tensor.numpy() for name, tensor in weights.items()})
