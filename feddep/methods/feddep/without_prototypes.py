"""FedDEP without pseudo-FL or embedding prototypes (FedDEP, Section 4.1 (9), "FedDEP w/o Proto").

DGen learns from real embeddings: at home from z_u of the hidden neighbours, and across the system
by real FL, L^n_{i,j} of FedSage with embeddings in place of features.  In every step a client sends
what it has generated, z̃, to all others.  Each searches its own embeddings for the nearest to every
one, and answers with the gradient 2(z̃ − z_u) of the distance.

So no embedding is sent as such, but every answer gives one away: z_u = z̃ − gradient / 2.

A message always holds all slots of all remaining nodes, empty ones as zeros, so that the counts ñ_v
stay at home.  That is at most S/ñ times the O(M ñ_v d_z) numbers a node and step of the paper's
Table 1.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from feddep.federation.boundary import Boundary, ByClient
from feddep.methods.feddep import GeneratorParameters, mending
from feddep.methods.feddep.generation import Search, nearest
from feddep.methods.method import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import Task

GENERATED = "generated"
"""The kind of message that carries what a client has generated, to the others."""
GRADIENTS = "gradients"
"""The kind of message that carries their answers to it."""


def generate(
    task: Task, parameters: GeneratorParameters, results: Mapping[str, StepResult]
) -> StepResult:
    """As :func:`feddep.methods.feddep.mending.generate`, but every step asks all other clients,
    which is counted.
    """
    remaining = [
        len(impair_client(task, parameters, i, client).kept)
        for i, client in enumerate(task.subgraphs())
    ]
    kinds = messages(parameters, remaining)
    boundary = Boundary(kinds, task.observers)
    embeddings = results["pretrain"].of_clients("embeddings")
    searches = [remote_nearest(boundary, i, embeddings) for i in range(len(remaining))]
    return StepResult(
        mending.mend_all(task, parameters, embeddings, searches),
        boundary.communication.rows(),
    )


def messages(parameters: GeneratorParameters, nodes: Sequence[int]) -> dict[str, ByClient]:
    """Schemas of messages, given the number of remaining nodes of each client."""
    shapes = [(n, parameters.max_generated, parameters.embedding) for n in nodes]
    questions = [{"embeddings": shape} for shape in shapes]
    answers = [{"gradients": shape} for shape in shapes]
    return {GENERATED: ByClient(questions, questions), GRADIENTS: ByClient(answers, answers)}


def remote_nearest(boundary: Boundary, client: int, embeddings: Sequence[Tensor]) -> Search:
    """A search in the other clients' own embeddings Z_j, each of which stays where it is: only
    question and answer cross.
    """

    def answer(other: int, question: Tensor) -> Tensor:
        """Answer of client ``other``: the gradient of min ‖z̃ − z_u‖² over its nodes; zero for
        an empty slot.
        """
        filled = question.any(dim=2)
        points, gradient = question[filled], torch.zeros_like(question)
        gradient[filled] = 2 * (points - nearest(points, embeddings[other])[:])
        return gradient

    def search(points: Tensor, chosen: Tensor) -> Sequence[Tensor]:
        sent = {"embeddings": points.new_zeros(*chosen.shape, points.shape[1])}
        sent["embeddings"][chosen] = points
        relayed = boundary.send(client, "up", GENERATED, sent)
        found = []
        for other in range(len(embeddings)):
            if other != client:
                question = boundary.send(other, "down", GENERATED, relayed, about=client)
                reply = {"gradients": answer(other, question["embeddings"])}
                returned = boundary.send(other, "up", GRADIENTS, reply, about=client)
                gradient = boundary.send(client, "down", GRADIENTS, returned)["gradients"]
                found.append(points - gradient[chosen] / 2)
        return found

    return search
