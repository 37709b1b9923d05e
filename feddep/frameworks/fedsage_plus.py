"""FedSage+: missing neighbour generation along FedSage (Zhang et al., 2021, Section 4 and Algorithm 1).

Every client trains a NeighGen on its impaired subgraph, alone at first and then with gradients that the other clients compute
from their nodes' features; mends its subgraph with the neighbours that it generates; and all train a GraphSAGE by FedAvg on
the mended subgraphs.  The global graph is not mended for the test.

NeighGen is applied to the client's whole subgraph, as in the paper; the authors' code generates neighbours of the nodes of the
impaired subgraph only, from their impaired neighbourhoods.  "Code" below is the authors' (github.com/zkhku/fedsage).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.ledger import merged
from feddep.federation.server import Server
from feddep.history import History
from feddep.impairing import HiddenFrom
from feddep.neighbour_generation import federated
from feddep.neighbour_generation.mended import MendedFeatureTable, MendedSubgraph, MendedSubgraphEvaluator
from feddep.neighbour_generation.training import Scale, Training
from feddep.problem import Outcome, Problem
from feddep.steps import Made, Step, make_all
from feddep.training import Learner

TITLE = "FedSage+"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """Every choice that FedSage+ leaves open.

    Attributes:
        hidden_share: share h of nodes that impairing hides.  Paper: from 3.4 % to 27.8 %, and 15 % where it studies α.
        hidden_from: the nodes that may be hidden.  Paper: any (``all``); code: half of the validation nodes (``validation``).
        max_generated: most neighbours S generated for a node.  Code: 5.
        embedding: width d_z.  Code: 128.
        generator_width: width of fGen's last hidden layer.  Code: 2048, which for the 6,805 features of MSAcademic makes a
            layer of 70 million weights, sent 2 M² times an epoch.  Paper: depths may vary with the dataset, and very few
            layers suffice (Appendix D.1).  Ours is as wide as the embeddings.
        local_epochs: epochs in which NeighGen is trained alone, before the others take part.  Code: 20; Algorithm 1: none.
        federated_epochs: epochs e_g of Algorithm 1.  Code: 20.
        generator_batch: nodes V_i^t sampled in an epoch, which is one step.  Paper: batch size 64, not said of what; code:
            all training nodes.  What is generated for them and their neighbours is in memory at once.
        generator_learning_rate: step size of Adam.  Paper and code: 0.001.
        generator_weight_decay: Code: 0.0001.
        scale: squared distances as the ``paper`` writes them, or their mean over slots and coordinates (``authors``).
        count_weight: λ^d.  Paper: all weights are 1.
        feature_weight: λ^f.
        cross_weight: α, of the terms of other clients in L^f.  Paper: 1.
        task_weight: λ^c, of the cross-entropy.
    """

    hidden_share: float = 0.15
    hidden_from: HiddenFrom = "all"
    max_generated: int = 5
    embedding: int = 128
    generator_width: int = 128
    local_epochs: int = 20
    federated_epochs: int = 20
    generator_batch: int = 64
    generator_learning_rate: float = 0.001
    generator_weight_decay: float = 0.0001
    scale: Scale = "paper"
    count_weight: float = 1.0
    feature_weight: float = 1.0
    cross_weight: float = 1.0
    task_weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        for name in ("max_generated", "embedding", "generator_width", "generator_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("local_epochs", "federated_epochs", "generator_weight_decay", "cross_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0")
        if not 0 <= self.hidden_share < 1:
            raise ValueError("hidden_share must be from 0 to below 1")
        if self.generator_learning_rate <= 0:
            raise ValueError("generator_learning_rate must be above 0")

    @property
    def generation(self) -> Training:
        """How NeighGen is built and trained."""
        return Training(
            self.hidden_share,
            self.hidden_from,
            self.max_generated,
            self.embedding,
            self.generator_width,
            self.local_epochs,
            self.federated_epochs,
            self.generator_batch,
            self.generator_learning_rate,
            self.generator_weight_decay,
            self.scale,
            self.count_weight,
            self.feature_weight,
            self.cross_weight,
            self.task_weight,
        )


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
