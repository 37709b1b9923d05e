"""Mending: a client trains its DGen on its impaired subgraph and generates what its whole one lacks
(FedDEP, Section 3).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from feddep.graph.impairing import Impaired
from feddep.methods.feddep import FusedParameters, GeneratorParameters
from feddep.methods.feddep.dgen import DGen
from feddep.methods.feddep.fused import FusedClassifier, fused_classifier
from feddep.methods.feddep.generation import Generator, Search, nearest_in
from feddep.methods.method import StepResult, by_client
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import ClientData, Task


def generate(
    task: Task, parameters: GeneratorParameters, results: Mapping[str, StepResult]
) -> StepResult:
    """Mend every client's subgraph; gives ``client0.mended``, ``client0.count``, ``client0.loss``
    …, as :func:`mend`.

    Each client learns from its own prototypes and those that the others have shared before.
    Nothing is sent (pseudo-FL).
    """
    shared, targets = (results["prototypes"].of_clients(name) for name in ("prototypes", "targets"))
    searches = [nearest_of_others(shared, i) for i in range(len(targets))]
    return StepResult(mend_all(task, parameters, targets, searches))


def mend_all(
    task: Task,
    parameters: GeneratorParameters,
    targets: Sequence[Tensor],
    searches: Sequence[Search],
) -> dict[str, Tensor]:
    """Results of :func:`mend` of every client, by name; its impaired subgraph is held no longer
    than that takes.
    """
    each = zip(task.subgraphs(), targets, searches, strict=True)
    mended, count, loss = zip(
        *(
            mend(
                task, parameters, i, part, impair_client(task, parameters, i, part), target, search
            )
            for i, (part, target, search) in enumerate(each)
        ),
        strict=True,
    )
    return by_client(mended=mended, count=count, loss=loss)


def new_classifier(task: Task, parameters: FusedParameters, *stream: str) -> FusedClassifier:
    """The embedding-fused classifier F with initial weights: the run's, or those of a stream of
    their own.
    """
    features, *sizes = task.model_sizes
    model = fused_classifier(
        parameters.fused, features, parameters.embedding, *sizes, encoder=task.setting.encoder
    )
    model.reset_parameters(task.torch_generator(*stream, "weights"), parameters.initial)
    return model.to(task.device)


def new_dgen(task: Task, parameters: GeneratorParameters, number: int) -> DGen:
    """Client ``number``'s DGen with its initial weights."""
    features, hidden, _, _, dropout = task.model_sizes
    dgen = DGen(features, parameters.embedding, parameters.max_generated, hidden, dropout)
    task.drawn(dgen, f"client{number}", "generator", "weights")
    if parameters.count_bias is not None:
        nn.init.constant_(dgen.count.bias, parameters.count_bias)
    return dgen


def nearest_of_others(shared: Sequence[Tensor], client: int) -> Search:
    """A client's search in the prototypes that the others have shared."""
    return nearest_in([prototypes for j, prototypes in enumerate(shared) if j != client])


def mend(
    task: Task,
    parameters: GeneratorParameters,
    number: int,
    client: ClientData,
    impaired: Impaired,
    targets: Tensor,
    search: Search,
) -> tuple[Tensor, Tensor, Tensor]:
    """Train the DGen of client i = ``number`` on its impaired subgraph and generate z̄_v for its
    whole subgraph G_i.

    ``targets`` are what DGen is to generate for each node if it is missing, shape (n, d_z);
    ``search`` finds the nearest that each other client has.

    Returns:
        z̄_v, shape (n, d_z); the predicted number ñ_v of missing neighbours, shape (n,); and the
        loss L_i of each step.
    """
    graph, split = client
    name = f"client{number}"
    generator = Generator(
        new_dgen(task, parameters, number), parameters, task.seed, name, task.device
    )
    losses = generator.train(
        new_classifier(task, parameters, name), impaired, split, targets, search
    )
    return *generator.mend(graph), torch.tensor(losses)
