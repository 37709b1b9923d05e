"""Training NeighGen across clients: the messages of FedSage+, and of the ablation that averages
weights instead.

Cross-subgraph training (FedSage, Section 4.3 and Algorithm 1).  In each epoch t

* client i sends its embeddings Z_i^t of sampled nodes and its generator H^g_i to the server
(procedure C), * which sends them to every other client j (procedure A, line 9); * client j
generates features from them, looks for the nearest of its own nodes to each, and returns the
gradient of that term
  of Equation 6 with respect to the weights of fGen_i (procedure D);
* the server adds up the gradients of all j and sends the sum to client i (lines 13 and 14),
* which weights it by α and takes its step (procedure E).

The algorithm goes through all clients at each of these points.  Here one client is trained after
the other: what client j answers depends on its own features and on what it is asked, and its noise
for each asker is a stream of its own.  So messages and results are the same, and only one generator
and optimiser are in memory.  dGen has no gradient, for the number of neighbours is rounded; none is
sent.

What crosses tells more than the paper says ("without raw graph data sharing").  Whoever sees H^g_i
and Z_i^t, the server and every client, can generate what client i is mended with.  And a gradient
gives features away.  Where a single generated neighbour uses a slot, the gradients of the slot's
bias and weights are δ and h δᵀ, with δ = 2 c (x̃ − x_u)(1 − x̃²) and c the scale of the loss: so h
= ∇W δ / ‖δ‖², x̃ = tanh(Wᵀ h + b), and from these x_u, the features of one real node of client j,
noise and dropout of fGen notwithstanding.  The server can compute this for each j, and client i,
who gets the sum over j, for M = 2.  Where r neighbours use a slot, its gradient is a mixture of r
nodes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.func import functional_call

from feddep.federation.boundary import Boundary, ByClient, Kinds, Payload, numbers, schema_of
from feddep.federation.client import REPORTS, Update
from feddep.federation.server import Server
from feddep.methods.fedsage import NeighGenParameters
from feddep.methods.fedsage.neighgen import NeighbourGenerator
from feddep.methods.fedsage.neighgen_training import (
    Nearest,
    NeighGenTrainer,
    batch_size,
    distance,
    new_neighgen,
)
from feddep.methods.method import StepResult, by_client
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import Task
from feddep.utils import seeding

REQUEST = "generator"
"""The kind of message that carries a client's generator and embeddings, to the others."""
GRADIENTS = "gradients"
"""The kind of message that carries gradients of a client's generator: the others' answers, and
their sum.
"""


def is_of_features(name: str) -> bool:
    """Whether a weight of H^g is fGen's; dGen's have no gradient from others."""
    return not name.startswith("number.")


class Peer:
    """Client j as another client asks it: it holds its own features and answers with gradients."""

    def __init__(
        self, task: Task, params: NeighGenParameters, number: int, features: sp.csr_matrix
    ) -> None:
        """Prepare client ``number``, whose nodes V_j have these features, shape (n_j, F)."""
        self._generator = _without_weights(task, params)
        self._task, self._params, self._number = task, params, number
        self._nearest = Nearest(features, task.device)
        self._draws: dict[int, torch.Generator] = {}  # by whose request the noise answers

    def answer(self, asker: int, request: Mapping[str, Tensor]) -> Payload:
        """The gradient of 1/|V_i^t| Σ_v Σ_p min_{u ∈ V_j} ‖x̃_v^p − x_u‖² with respect to the
        weights of fGen_i.

        The request of client i = ``asker`` holds the weights of H^g_i, and Z_i^t as ``embeddings``.
        """
        z = request["embeddings"]
        stream = f"client{self._number}", "answers", asker
        draws = self._draws.setdefault(
            asker, seeding.torch_generator(self._task.seed, *stream, device=self._task.device)
        )
        weights = {
            name: tensor.requires_grad_()
            for name, tensor in request.items()
            if name != "embeddings"
        }
        wanted = {name: tensor for name, tensor in weights.items() if is_of_features(name)}
        generated = functional_call(self._generator, weights, (z, draws), tie_weights=False)
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if len(generated.owner):
            targets = self._nearest.nearest(generated.features.detach())
            loss = distance(
                generated.features, targets, len(z), self._params.max_generated, self._params.scale
            )
            found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
        nothing = z.new_zeros(())  # of a slot that no neighbour uses
        return {
            name: nothing.expand_as(weight) if gradient is None else gradient
            for (name, weight), gradient in zip(wanted.items(), found, strict=True)
        }


def summed(answers: Iterable[Payload]) -> Payload:
    """The sum of other clients' gradients, added in their order to the first's, which is
    overwritten.
    """
    total: Payload = {}
    for answer in answers:
        for name, gradient in answer.items():
            total[name] = total[name].add_(gradient) if name in total else gradient
    return total


def ask_others(
    boundary: Boundary, client: int, others: Mapping[int, Peer], request: Mapping[str, Tensor]
) -> Payload:
    """One epoch of Algorithm 1 for client i: its request goes to every other client, the sum of
    their answers comes back.
    """
    if not others:
        return {}
    relayed = boundary.send(client, "up", REQUEST, request)

    def answer(number: int) -> Payload:
        asked = boundary.send(number, "down", REQUEST, relayed, about=client)
        found = others[number].answer(client, asked)
        return boundary.send(number, "up", GRADIENTS, found, about=client)

    return boundary.send(client, "down", GRADIENTS, summed(map(answer, others)))


def generate(task: Task, params: NeighGenParameters, results: Any = None) -> StepResult:
    """Each client's own NeighGen, trained alone for the local epochs and with the others for the
    federated ones.

    The order of both phases is that of the authors' code; Algorithm 1 has the second only.

    Returns:
        For each client what :meth:`NeighGenTrainer.mend` returns.
    """
    clients = task.subgraphs()
    impaired = [impair_client(task, params, i, client) for i, client in enumerate(clients)]
    peers = {i: Peer(task, params, i, graph.features) for i, (graph, _) in enumerate(clients)}
    boundary = Boundary(
        messages(task, params, [batch_size(params, each) for each in impaired]), task.observers
    )
    mended: list[dict[str, Tensor]] = []
    for i, client in enumerate(clients):
        trainer = NeighGenTrainer(
            task, params, i, client, impaired[i], new_neighgen(task, params, f"client{i}")
        )
        others = {j: peer for j, peer in peers.items() if j != i}
        ask = partial(ask_others, boundary, i, others)
        for epoch in range(params.generator_local_epochs + params.generator_federated_epochs):
            trainer.step(None if epoch < params.generator_local_epochs else ask)
        mended.append(trainer.mend())
    return StepResult(_by_client(mended), boundary.communication.rows())


def generate_shared(task: Task, params: NeighGenParameters, results: Any = None) -> StepResult:
    """One NeighGen for all, trained by FedAvg with the loss of Equation 5 (FedSage, Section 4.3 and
    Appendix D.2).

    A round is an epoch: each client takes one step from the server's weights, those of NeighGen and
    of the classifier beside it, with a new optimiser, and the server averages what they send,
    weighted by their numbers of training nodes.

    Returns:
        What :func:`generate` returns.
    """
    clients = task.subgraphs()
    trainers = [
        NeighGenTrainer(
            task,
            params,
            i,
            client,
            impair_client(task, params, i, client),
            new_neighgen(task, params, "server"),
        )
        for i, client in enumerate(clients)
    ]
    model = trainers[0].model
    server = Server(model.state_dict())
    boundary = Boundary(
        {"neighgen": schema_of(model), "training": REPORTS["training"]}, task.observers
    )

    def load() -> None:
        for i, trainer in enumerate(trainers):
            trainer.model.load_state_dict(boundary.send(i, "down", "neighgen", server.weights))

    load()
    for _ in range(params.generator_local_epochs + params.generator_federated_epochs):
        updates = []
        for i, (trainer, (_, split)) in enumerate(zip(trainers, clients, strict=True)):
            trainer.renew_optimizer()
            counted = numbers(nodes=len(split.train), loss=trainer.step())
            report = boundary.send(i, "up", "training", counted)
            weights = boundary.send(i, "up", "neighgen", trainer.model.state_dict())
            updates.append(Update(i, weights, float(report["nodes"]), float(report["loss"])))
        server.aggregate(updates)
        load()
    mended = [trainer.mend() for trainer in trainers]
    return StepResult(_by_client(mended), boundary.communication.rows())


def messages(task: Task, params: NeighGenParameters, sampled: Sequence[int]) -> Kinds:
    """Schemas of messages, given the number of nodes that each client samples in an epoch
    (:func:`batch_size`).
    """
    weights = schema_of(_without_weights(task, params))
    requests = [{**weights, "embeddings": (nodes, params.embedding)} for nodes in sampled]
    gradients = {name: shape for name, shape in weights.items() if is_of_features(name)}
    return {REQUEST: ByClient(requests, requests), GRADIENTS: gradients}


def _without_weights(task: Task, params: NeighGenParameters) -> NeighbourGenerator:
    """The network H^g, to be given weights when it is called."""
    with torch.device("meta"):
        return NeighbourGenerator(
            task.graph.num_features,
            params.embedding,
            params.max_generated,
            params.generator_width,
            task.setting.dropout,
        )


def _by_client(mended: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return by_client(**{name: [each[name] for each in mended] for name in mended[0]})
