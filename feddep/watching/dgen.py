"""DGen, watched: each client looks for the nearest prototypes at home, or asks the others for the nearest of their nodes."""

from collections.abc import Mapping

import torch
from torch import Tensor

from feddep import mending
from feddep.errors import ConfigError
from feddep.federation.boundary import Boundary
from feddep.flops import FlopCounter
from feddep.frameworks import feddep, feddep_wo_proto
from feddep.generation import Generated, GeneratorTraining, LossWeights, Search, generator_loss, nearest_in
from feddep.impairing import Impaired
from feddep.problem import Part, Problem
from feddep.steps import Made
from feddep.watching import Work


class Watched:
    """A search that counts what it spends, and what is generated."""

    def __init__(self, search: Search) -> None:
        """Watch a search."""
        self._search = search
        self.operations: list[int] = []
        """What each call has spent."""
        self.generated: list[float] = []
        """Number of generated neighbours of a node that count, in the mean over the nodes of each call."""
        self.last: tuple[Tensor, Tensor, Tensor] | None = None
        """What was searched for last, which of it counts, and what was found."""

    def __call__(self, points: Tensor, chosen: Tensor) -> Tensor:
        """Search."""
        with FlopCounter() as counter:
            found = self._search(points, chosen)
        self.operations.append(counter.total)
        self.generated.append(float(chosen.sum()) / len(chosen))
        self.last = points, chosen, found
        return found


def spent_on_distances(points: Tensor, chosen: Tensor, found: Tensor, how: GeneratorTraining) -> int:
    """Operations of the cross-client term of the loss, the search aside, and of its gradient in what was generated.

    The loss is computed with and without the term; the difference is what the term costs.

    Args:
        points: generated embeddings, shape (n, S, d_z).
        chosen: which of them count, shape (n, S).
        found: what is nearest to each, shape (M − 1, n, S, d_z).
        how: weights and scale.
    """

    def spent(cross: float) -> int:
        embeddings = points.detach().clone().requires_grad_()
        count = chosen.sum(dim=1).to(points.dtype).requires_grad_()
        nobody = torch.zeros(0, 2, dtype=torch.int64, device=points.device)
        weights = LossWeights(how.weights.count, intra=0.0, cross=cross, task=0.0)
        generated = Generated(count, embeddings, chosen)
        with torch.enable_grad(), FlopCounter() as counter:
            loss = generator_loss(generated, chosen.sum(dim=1), nobody, embeddings, lambda *_: found, weights, how.scale)
            loss.backward()
        return counter.total

    return spent(how.weights.cross) - spent(0.0)


def mend(
    problem: Problem,
    parameters: feddep.Parameters,
    number: int,
    client: Part,
    impaired: Impaired,
    targets: Tensor,
    search: Search,
) -> Work:
    """Train a client's DGen and mend its subgraph, counting; the arguments are those of :func:`feddep.mending.mend`.

    Raises:
        ConfigError: if the parameters leave nothing to count.
    """
    watched = Watched(search)
    with FlopCounter() as counter:
        mending.mend(problem, parameters, number, client, impaired, targets, watched)
    if watched.last is None:
        raise ConfigError(
            f"generator_epochs is {parameters.generator_epochs} and cross_weight is {parameters.cross_weight:g}; "
            "both must be above 0 where the cost of learning from other clients is to be measured"
        )
    updates = len(watched.operations)
    # What is searched for and found has the same shape in every update, and with it the distances the same cost.
    operations = sum(watched.operations) / updates + spent_on_distances(*watched.last, parameters.generation)
    generated = sum(watched.generated) / updates
    return Work(len(impaired.kept), updates, parameters.max_generated, generated, operations, counter.total)


def with_prototypes(problem: Problem, parameters: feddep.Parameters, made: Mapping[str, Made]) -> list[Work]:
    """As :func:`feddep.mending.generate` trains: each client searches the prototypes that the others have shared."""
    shared, targets = made["prototypes"].of_clients("prototypes"), made["prototypes"].of_clients("targets")
    work = []
    for i, client in enumerate(problem.subgraphs()):
        search = nearest_in([others for j, others in enumerate(shared) if j != i])
        impaired = mending.impair_client(problem, parameters, i, client)
        work.append(mend(problem, parameters, i, client, impaired, targets[i], search))
    return work


def without_prototypes(problem: Problem, parameters: feddep.Parameters, made: Mapping[str, Made]) -> list[Work]:
    """As :func:`feddep.frameworks.feddep_wo_proto.generate` trains: each client asks all others, who search their nodes."""
    embeddings = made["pretrain"].of_clients("embeddings")
    work = []
    for i, client in enumerate(problem.subgraphs()):
        impaired = mending.impair_client(problem, parameters, i, client)
        shape = (len(impaired.kept), parameters.max_generated, parameters.embedding)
        question, answer = feddep_wo_proto.generated(i), feddep_wo_proto.gradients(i)
        boundary = Boundary({question: {"embeddings": shape}, answer: {"gradients": shape}})
        search = feddep_wo_proto.asking(boundary, i, embeddings)
        work.append(mend(problem, parameters, i, client, impaired, embeddings[i], search))
    return work
