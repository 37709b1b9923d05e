"""Mending: a client trains its DGen on its impaired subgraph and generates what its whole one lacks (FedDEP, Section 3)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from feddep import seeding
from feddep.generation import Generator, GeneratorTraining, Search, nearest_in
from feddep.impairing import HiddenFrom, Impaired, impair
from feddep.nn.dgen import DGen
from feddep.nn.fused import FusedClassifier, Initial, Layout, fused_classifier
from feddep.problem import Part, Problem
from feddep.steps import Made, by_client


class ClassifierParameters(Protocol):
    """What decides the classifier F."""

    @property
    def fused(self) -> Layout:
        """Its layers."""

    @property
    def initial(self) -> Initial:
        """Its initial weights."""

    @property
    def embedding(self) -> int:
        """Width d_z of the mended embeddings that it reads."""


class Parameters(ClassifierParameters, Protocol):
    """What this step reads of a framework's parameters."""

    @property
    def hidden_share(self) -> float:
        """Share h of the nodes that impairing hides."""

    @property
    def hidden_from(self) -> HiddenFrom:
        """Which nodes may be hidden."""

    @property
    def max_generated(self) -> int:
        """Most neighbours generated for a node."""

    @property
    def generation(self) -> GeneratorTraining:
        """How DGen is trained."""


USES = (
    *("fused", "initial", "hidden_share", "hidden_from", "max_generated", "slots", "scale", "bernoulli_rate"),
    *("generator_epochs", "generator_optimizer", "generator_learning_rate"),
    *("count_weight", "intra_weight", "cross_weight", "task_weight"),
)
"""Names of the framework's parameters that decide it."""


def generate(problem: Problem, parameters: Parameters, made: Mapping[str, Made]) -> Made:
    """Mend every client's subgraph.

    Each client learns from its own prototypes and those that the others have shared before.  Nothing is sent (pseudo-FL).

    Returns:
        What :func:`mend` returns, of each client: ``client0.mended``, ``client0.count``, ``client0.loss`` ….
    """
    shared, targets = made["prototypes"].of_clients("prototypes"), made["prototypes"].of_clients("targets")
    mended = []
    for i, client in enumerate(problem.subgraphs()):
        search = nearest_in([others for j, others in enumerate(shared) if j != i])
        impaired = impair_client(problem, parameters, i, client)
        mended.append(mend(problem, parameters, i, client, impaired, targets[i], search))
    return Made(named(mended))


def named(mended: Sequence[tuple[Tensor, Tensor, Tensor]]) -> dict[str, Tensor]:
    """What :func:`mend` has returned for each client, by name."""
    z, count, loss = (list(each) for each in zip(*mended, strict=True))
    return by_client(mended=z, count=count, loss=loss)


def new_classifier(problem: Problem, parameters: ClassifierParameters, *stream: str) -> FusedClassifier:
    """The embedding-fused classifier F with initial weights: the run's, or those of a stream of their own."""
    graph, setting = problem.graph, problem.setting
    sizes = (graph.num_features, parameters.embedding, setting.hidden, graph.num_classes, setting.layers, setting.fanout)
    model = fused_classifier(parameters.fused, *sizes, setting.dropout)
    weights = torch.Generator().manual_seed(seeding.derive_seed(problem.seed, *stream, "weights"))
    model.reset_parameters(weights, parameters.initial)
    return model.to(problem.device)


def impair_client(problem: Problem, parameters: Parameters, number: int, client: Part) -> Impaired:
    """Hide some of a client's nodes."""
    rng = seeding.generator(problem.seed, f"client{number}", "impairing")
    return impair(*client, parameters.hidden_share, parameters.hidden_from, rng)


def mend(
    problem: Problem, parameters: Parameters, number: int, client: Part, impaired: Impaired, targets: Tensor, search: Search
) -> tuple[Tensor, Tensor, Tensor]:
    """Train a client's DGen on its impaired subgraph and generate z̄_v for its whole subgraph.

    Args:
        problem: the run.
        parameters: the framework's parameters.
        number: the client's number i.
        client: its subgraph G_i and split.
        impaired: its impaired subgraph.
        targets: what DGen is to generate for each node of the subgraph if it is missing, shape (n, d_z).
        search: finds the nearest that each other client has.

    Returns:
        z̄_v, shape (n, d_z); the predicted number ñ_v of missing neighbours, shape (n,); and the loss L_i of each step.
    """
    graph, split = client
    name, seed, setting = f"client{number}", problem.seed, problem.setting
    dgen = DGen(graph.num_features, parameters.embedding, parameters.max_generated, setting.hidden, setting.dropout)
    dgen.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(seed, name, "generator", "weights")))
    generator = Generator(dgen, parameters.generation, seed, name, problem.device)
    losses = generator.train(new_classifier(problem, parameters, name), impaired, split, targets, search)
    return *generator.mend(graph), torch.tensor(losses)
