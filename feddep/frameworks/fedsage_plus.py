"""FedSage+: missing neighbour generation along FedSage (Zhang et al., 2021, Section 4 and Algorithm 1).

Every client trains a NeighGen on its impaired subgraph, alone at first and then with gradients that the other clients compute
from their nodes' features; mends its subgraph with the neighbours that it generates; and all train a GraphSAGE by FedAvg on
the mended subgraphs.  The global graph is not mended for the test.

NeighGen is applied to the client's whole subgraph, as in the paper; the authors' code generates neighbours of the nodes of the
impaired subgraph only, from their impaired neighbourhoods.  "Code" below is the authors' (github.com/zkhku/fedsage).

Assumes: gradients from others' nodes shared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.ledger import merged
from feddep.federation.server import Server
from feddep.history import History
from feddep.neighbour_generation import federated
from feddep.neighbour_generation.mended import MendedFeatureTable, MendedSubgraph, MendedSubgraphEvaluator
from feddep.neighbour_generation.training import Training
from feddep.problem import Outcome, Problem
from feddep.steps import Made, Step, make_all
from feddep.training import Learner

TITLE = "FedSage+"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(Training):
    """Every choice that FedSage+ leaves open is one of training NeighGen: :class:`Training` has them, each with its source."""


def steps(parameters: Parameters) -> Sequence[Step]:
    """NeighGen is trained, and neighbours are generated, before the classifier is trained."""
    return (Step("generator", federated.generate, federated.USES),)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedSage+ from top to bottom."""
    made = make_all(problem, parameters, steps(parameters))
    return train_classifier(problem, made["generator"])


def train_classifier(problem: Problem, generated: Made) -> Outcome:
    """FedSage, which is FedAvg of a GraphSAGE, on the subgraphs mended with what was generated."""
    setting, seed, device = problem.setting, problem.seed, problem.device
    model = problem.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    server = Server(model.state_dict())
    clients = []
    for i, (graph, split) in enumerate(problem.subgraphs()):
        mended = MendedSubgraph.of_client(i, graph, generated, device)
        table = MendedFeatureTable(mended, setting.fanout, device)
        learner = Learner(mended.graph, split.train, setting, seed, f"client{i}", device, table)
        evaluator = MendedSubgraphEvaluator(mended, device)
        clients.append(Client(i, problem.new_model(), learner, evaluator, split.val, setting, boundary))
    history = History()

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, problem.test(model))

    federated_averaging(server, clients, problem.rounds(), on_round)
    return Outcome([history], merged(generated.ledger, boundary.ledger.rows()))
