"""FedDEP: deep efficient private neighbour generation (Zhang et al., 2024, Section 3).

The steps are the paper's, in its order: every client trains a local GNN, clusters its node embeddings and shares the
prototypes, once; trains its deep neighbour generator DGen against them without sending anything (pseudo-FL); mends its
subgraph with what DGen generates; and all train an embedding-fused classifier by FedAvg.

Where the paper and the code that its authors published part, a parameter names the choice.  Two differences have no
parameter: the code samples no generated neighbours (r = 1), and its generators are not trained by pseudo-FL but send
their weights and all encoded nodes to every other client at every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from feddep import seeding
from feddep.clustering import Clustering
from feddep.federation.boundary import Boundary, Schema, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.server import Server
from feddep.generation import Generator, GeneratorTraining, LossWeights, Scale, Search, nearest_in
from feddep.graph import Graph
from feddep.history import History
from feddep.impairing import HiddenFrom, Impaired, impair
from feddep.mended import MendedEvaluator, MendedLearner
from feddep.nn.dgen import DGen, Slots
from feddep.nn.fused import FusedClassifier, Layout, fused_classifier
from feddep.pretraining import Pretraining, pretrain
from feddep.problem import Outcome, Problem
from feddep.prototypes import Prototypes, find_prototypes
from feddep.splits import Split

TITLE = "FedDEP"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """Every choice that FedDEP leaves open, with the paper's value, or where it is silent that of the authors' code.

    Attributes:
        fused: the classifier's layers: ``paper``, its equation with K + 1 matrices, or ``authors``, their code
            (:mod:`feddep.nn.fused`).
        prototypes: number C of prototypes a client.  Paper: the best of 3, 5, 10, 15, 20 for each dataset and M; 15 is
            its choice for Cora, and the code's example has 5.
        clustering: ``kmeans``, ours, or ``dec``, deep embedded clustering as in the code.  The paper says only "a
            clustering function".
        embedding: width d_z.  Paper: 128 for Cora, 64 for CiteSeer, 256 for PubMed and MSAcademic.
        depth: hops L of context that an embedding holds.  Paper: "usually around 2" (Section 4.3); the code's example: 2.
        pretraining_epochs: epochs of the local GNN.  Code: 50, and so the paper for every GNN.
        bernoulli_rate: probability r with which the Bernoulli sampler keeps a generated neighbour.  The paper names no
            value, the code keeps all: 1.
        hidden_share: share h of nodes that impairing hides.  Paper: 0.5.
        hidden_from: the nodes that may be hidden.  Paper: any (``all``, as in FedSage); code: ``validation``, which loses no
            training label.
        max_generated: most neighbours generated for a node.  Code: 5.
        slots: what generated embeddings are averaged over: ``generated`` (paper), or ``all`` slots (code).
        scale: squared distances as ``paper`` writes them, or averaged over slots and coordinates (``authors``).
        generator_epochs: full-batch steps of DGen.  Code: 1 alone and 3 (``feddep_epoch``) with the others.
        generator_optimizer: ``sgd`` (paper and code) or ``adam``.
        generator_learning_rate: step size.  Paper: 0.1.
        count_weight: β^d.  Paper: all weights are 1.
        intra_weight: β^f.
        cross_weight: β^n.
        task_weight: weight of the cross-entropy L^c.
    """

    fused: Layout = "paper"
    prototypes: int = 15
    clustering: Clustering = "kmeans"
    embedding: int = 128
    depth: int = 2
    pretraining_epochs: int = 50
    bernoulli_rate: float = 1.0
    hidden_share: float = 0.5
    hidden_from: HiddenFrom = "validation"
    max_generated: int = 5
    slots: Slots = "generated"
    scale: Scale = "paper"
    generator_epochs: int = 4
    generator_optimizer: Literal["sgd", "adam"] = "sgd"
    generator_learning_rate: float = 0.1
    count_weight: float = 1.0
    intra_weight: float = 1.0
    cross_weight: float = 1.0
    task_weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        for name, least in (("prototypes", 1), ("embedding", 1), ("depth", 0), ("max_generated", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}")
        for name in ("bernoulli_rate", "hidden_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1")

    @property
    def pretraining(self) -> Pretraining:
        """How the local GNN is trained."""
        return Pretraining(self.depth, self.embedding, self.pretraining_epochs)

    @property
    def generation(self) -> GeneratorTraining:
        """How DGen is trained."""
        return GeneratorTraining(
            self.generator_epochs,
            self.generator_optimizer,
            self.generator_learning_rate,
            self.bernoulli_rate,
            self.slots,
            self.scale,
            LossWeights(self.count_weight, self.intra_weight, self.cross_weight, self.task_weight),
        )


Part = tuple[Graph, Split]
"""A client's subgraph and its training, validation and test nodes."""


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP from top to bottom."""
    clients = problem.subgraphs()
    shape = {"embeddings": (parameters.prototypes, parameters.embedding)}
    boundary = new_boundary(problem, parameters, {"prototypes": shape})

    embeddings = embed(problem, parameters, clients)
    prototypes = cluster(problem, parameters, embeddings)
    received = share(boundary, prototypes)
    mended = []
    for i, client in enumerate(clients):
        impaired = impair_client(problem, parameters, i, client)
        search = nearest_in(received[i])
        mended.append(mend(problem, parameters, i, client, impaired, prototypes[i].of_nodes, search))
    return train_classifier(problem, parameters, boundary, clients, mended)


def new_classifier(problem: Problem, parameters: Parameters, *stream: str) -> FusedClassifier:
    """The embedding-fused classifier F with initial weights: the run's, or those of a stream of their own."""
    graph, setting = problem.graph, problem.setting
    sizes = (graph.num_features, parameters.embedding, setting.hidden, graph.num_classes, setting.layers, setting.fanout)
    model = fused_classifier(parameters.fused, *sizes, setting.dropout)
    model.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(problem.seed, *stream, "weights")))
    return model.to(problem.device)


def new_boundary(problem: Problem, parameters: Parameters, kinds: dict[str, Schema]) -> Boundary:
    """The clients' border: the classifier, the reports on it and the given kinds of messages may cross."""
    return Boundary({"model": schema_of(new_classifier(problem, parameters)), **REPORTS, **kinds})


def embed(problem: Problem, parameters: Parameters, clients: Sequence[Part]) -> list[Tensor]:
    """Z_i of each client, from a GNN that it trains alone."""
    return [
        pretrain(graph, split.train, parameters.pretraining, problem.setting, problem.seed, f"client{i}", problem.device)
        for i, (graph, split) in enumerate(clients)
    ]


def cluster(problem: Problem, parameters: Parameters, embeddings: Sequence[Tensor]) -> list[Prototypes]:
    """Z'_i of each client."""
    return [
        find_prototypes(z, parameters.prototypes, parameters.clustering, problem.seed, f"client{i}")
        for i, z in enumerate(embeddings)
    ]


def share(boundary: Boundary, prototypes: Sequence[Prototypes]) -> list[list[Tensor]]:
    """Send each client's prototypes up once and on to every other client; returns what each client has received."""
    sent = [boundary.cross(i, "up", "prototypes", {"embeddings": own.embeddings}) for i, own in enumerate(prototypes)]
    return [
        [boundary.cross(i, "down", "prototypes", message)["embeddings"] for j, message in enumerate(sent) if j != i]
        for i in range(len(prototypes))
    ]


def impair_client(problem: Problem, parameters: Parameters, number: int, client: Part) -> Impaired:
    """Hide some of a client's nodes."""
    rng = seeding.generator(problem.seed, f"client{number}", "impairing")
    return impair(*client, parameters.hidden_share, parameters.hidden_from, rng)


def mend(
    problem: Problem, parameters: Parameters, number: int, client: Part, impaired: Impaired, targets: Tensor, search: Search
) -> Tensor:
    """Train a client's DGen on its impaired subgraph and generate z̄_v for its whole subgraph, shape (n, d_z).

    Args:
        problem: the run.
        parameters: the framework's parameters.
        number: the client's number i.
        client: its subgraph G_i and split.
        impaired: its impaired subgraph.
        targets: what DGen is to generate for each node of the subgraph if it is missing, shape (n, d_z).
        search: finds the nearest that each other client has.
    """
    graph, split = client
    name, seed, setting = f"client{number}", problem.seed, problem.setting
    dgen = DGen(graph.num_features, parameters.embedding, parameters.max_generated, setting.hidden, setting.dropout)
    dgen.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(seed, name, "generator", "weights")))
    generator = Generator(dgen, parameters.generation, seed, name, problem.device)
    generator.train(new_classifier(problem, parameters, name), impaired, split, targets, search)
    return generator.mend(graph)


def train_classifier(
    problem: Problem, parameters: Parameters, boundary: Boundary, parts: Sequence[Part], mended: Sequence[Tensor]
) -> Outcome:
    """FedAvg of the embedding-fused classifier on the mended subgraphs; tested on the global graph, where z̄ = 0."""
    setting, seed, device = problem.setting, problem.seed, problem.device
    model: Any = new_classifier(problem, parameters)
    server = Server(model.state_dict())
    clients = []
    for i, ((graph, split), z) in enumerate(zip(parts, mended, strict=True)):
        learner = MendedLearner(graph, z, split.train, setting, seed, f"client{i}", device)
        evaluator = MendedEvaluator(graph, model, z, device)
        clients.append(Client(i, new_classifier(problem, parameters), learner, evaluator, split.val, setting, boundary))
    experimenter = MendedEvaluator(problem.graph, model, None, device)
    history = History()

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, experimenter.accuracy(model, problem.split.test))

    federated_averaging(server, clients, problem.rounds(), on_round)
    return Outcome([history], boundary.ledger.rows())
