"""FedDEP: deep efficient private neighbour generation (Zhang et al., 2024, Section 3).

The steps are the paper's, in its order: every client trains a local GNN, clusters its node embeddings and shares the
prototypes, once; trains its deep neighbour generator DGen against them without sending anything (pseudo-FL); mends its
subgraph with what DGen generates; and all train an embedding-fused classifier by FedAvg.

Where the paper and the code that its authors published part, a parameter names the choice.  Two differences have no
parameter: the code samples no generated neighbours (r = 1), and its generators are not trained by pseudo-FL but send
their weights and all encoded nodes to every other client at every step.

Assumes: prototypes shared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from feddep import mending, pretraining, prototypes
from feddep.clustering import Clustering
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client, Trains
from feddep.federation.fedavg import federated_averaging
from feddep.federation.ledger import merged
from feddep.federation.server import Server
from feddep.generation import GeneratorTraining, LossWeights, Scale
from feddep.history import History
from feddep.impairing import HiddenFrom
from feddep.mended import MendedEvaluator
from feddep.nn.dgen import Slots
from feddep.nn.fused import Initial, Layout, MendedTable
from feddep.pretraining import Encoder, Pretraining
from feddep.problem import Outcome, Problem
from feddep.steps import Step, make_all
from feddep.training import Learner

TITLE = "FedDEP"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """Every choice that FedDEP leaves open, with the paper's value, or where it is silent that of the authors' code.

    Attributes:
        fused: the classifier's layers: ``paper``, its equation with K + 1 matrices, or ``authors``, their code
            (:mod:`feddep.nn.fused`).
        initial: initial weights of the paper's layers: ``he`` or ``uniform`` (:mod:`feddep.nn.fused`).  No source.
        prototypes: number C of prototypes a client; null: as many as there are classes.  Paper: the best of 3, 5, 10, 15,
            20 for each dataset and M, chosen by the accuracy that it reports; the code's example has 5.
        clustering: ``kmeans``, ours, or ``dec``, deep embedded clustering as in the code.  The paper says only "a
            clustering function".
        encoder: whose GNN embeds a client's nodes: its ``own`` (paper), or a ``common`` one, which is an experiment of ours.
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
        inference: z̄ of the global graph's nodes when the classifier is tested: ``zero`` (paper and code), or ``generated``,
            what the client that holds the node has generated for it, which is an experiment of ours.
    """

    fused: Layout = "paper"
    initial: Initial = "he"
    prototypes: int | None = None
    clustering: Clustering = "kmeans"
    encoder: Encoder = "own"
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
    inference: Literal["zero", "generated"] = "zero"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        for name, least in (("prototypes", 1), ("embedding", 1), ("depth", 0), ("max_generated", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}")
        for name in ("bernoulli_rate", "hidden_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1")

    @property
    def pretraining(self) -> Pretraining:
        """How the local GNN is trained."""
        return Pretraining(self.encoder, self.depth, self.embedding, self.pretraining_epochs)

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


def steps(parameters: Parameters) -> Sequence[Step]:
    """What is made before the classifier is trained."""
    return (
        Step("pretrain", pretraining.embed, pretraining.USES),
        Step("prototypes", prototypes.share_prototypes, prototypes.USES, needs=("pretrain",)),
        Step("generator", mending.generate, mending.USES, needs=("prototypes",)),
    )


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP from top to bottom."""
    made = make_all(problem, parameters, steps(parameters))
    outcome = train_classifier(problem, parameters, made["generator"].of_clients("mended"))
    return Outcome(outcome.histories, merged(*(step.ledger for step in made.values()), outcome.ledger))


def train_classifier(
    problem: Problem, parameters: Parameters, mended: Sequence[Tensor], learner: Callable[..., Trains] = Learner
) -> Outcome:
    """FedAvg of the embedding-fused classifier on the mended subgraphs.

    Args:
        problem: the run.
        parameters: the framework's parameters.
        mended: z̄_v of each client's nodes, shape (n_i, d_z).
        learner: what clients train with; is called like :class:`feddep.training.Learner`.
    """
    setting, seed, device = problem.setting, problem.seed, problem.device
    model: Any = mending.new_classifier(problem, parameters)
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    server = Server(model.state_dict())
    clients = []
    for i, ((graph, split), z) in enumerate(zip(problem.subgraphs(), mended, strict=True)):
        table = MendedTable(graph.features, z.to(device), setting.fanout)
        learns = learner(graph, split.train, setting, seed, f"client{i}", device, table)
        evaluator = MendedEvaluator(graph, model, z, device)
        own = mending.new_classifier(problem, parameters)
        clients.append(Client(i, own, learns, evaluator, split.val, setting, boundary))
    experimenter = MendedEvaluator(problem.graph, model, of_global_graph(problem, parameters, mended), device)
    history = History()

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, experimenter.accuracy(model, problem.split.test))

    federated_averaging(server, clients, problem.rounds(), on_round)
    return Outcome([history], boundary.ledger.rows())


def of_global_graph(problem: Problem, parameters: Parameters, mended: Sequence[Tensor]) -> Tensor | None:
    """z̄ of the nodes of the global graph, shape (n, d_z), or none for zero."""
    if parameters.inference == "zero" or problem.partition is None:
        return None
    z = torch.zeros(problem.graph.num_nodes, parameters.embedding)
    for i, own in enumerate(mended):
        z[problem.partition.nodes(i)] = own.cpu()
    return z
