"""FedAvg: one GraphSAGE trained across the clients' subgraphs, cross-subgraph links missing.

FedDEP, Section 4.1, "FedAvg"; FedSage, Section 3.3, "FedSage" (without its neighbour generator).

Assumes: nothing.
"""

from dataclasses import dataclass

from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.server import Server
from feddep.history import History
from feddep.problem import Outcome, Problem

TITLE = "FedAvg"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """FedAvg has no parameters of its own."""


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """Average the clients' weights after every round."""
    model = problem.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    server = Server(model.state_dict())
    clients = [
        Client.on_subgraph(i, problem.new_model(), graph, split, problem.setting, problem.seed, boundary, problem.device)
        for i, (graph, split) in enumerate(problem.subgraphs())
    ]
    history = History()

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, problem.test(model))

    federated_averaging(server, clients, problem.rounds(), on_round)
    return Outcome([history], boundary.ledger.rows())
