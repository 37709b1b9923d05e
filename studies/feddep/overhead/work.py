"""Training generators as a run's steps do, while counting what learning from other clients takes.

The cross-client part of an update is what FedDEP's term β^n of L^n_i and its counterpart in
FedSage+ ask for: finding, for each generated neighbour, the nearest that every other client has,
the distances to what was found, and their gradient.  It is counted wherever it is carried out, at
the client itself or at the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from feddep.federation.boundary import Boundary, Payload
from feddep.methods.feddep import FedDEPParameters, GeneratorParameters, mending, without_prototypes
from feddep.methods.feddep.generation import Generated, Search, Targets, generator_loss
from feddep.methods.fedsage import NeighGenParameters, cross_client
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer, new_neighgen
from feddep.methods.method import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import ClientData, Task
from studies.feddep.overhead.flops import FlopCounter

Results = Mapping[str, StepResult]


@dataclass(frozen=True)
class Work:
    """What training one client's generator takes.

    Attributes:
        nodes: number of nodes that an update generates neighbours for.
        updates: number of updates.
        generated: number of neighbours generated for a node, in the mean over nodes and updates.
        operations: floating-point operations of an update's cross-client part, in the mean over
            updates.
        all_operations: those of the whole training, and of mending the subgraph with its result.
        weights: number |θ| of weights that are sent along, where others generate with the client's
            own generator.
    """

    nodes: int
    updates: int
    generated: float
    operations: float
    all_operations: int
    weights: int = 0


class Counted:
    """A function whose floating-point operations are counted, of each call, beside its arguments
    and what it returned.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.operations: list[int] = []
        self.calls: list[tuple[Any, ...]] = []
        self.returned: list[Any] = []

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        with FlopCounter() as counter:
            self.returned.append(self._function(*args))
        self.operations.append(counter.total)
        self.calls.append(args)
        return self.returned[-1]


def dgen_with_prototypes(task: Task, parameters: FedDEPParameters, results: Results) -> list[Work]:
    """As :func:`feddep.methods.feddep.mending.generate` trains: each client searches the prototypes
    that the others shared.
    """
    shared, targets = (results["prototypes"].of_clients(name) for name in ("prototypes", "targets"))
    return _dgens(task, parameters, targets, lambda i, nodes: mending.nearest_of_others(shared, i))


def dgen_without_prototypes(
    task: Task, parameters: FedDEPParameters, results: Results
) -> list[Work]:
    """As :func:`feddep.methods.feddep.without_prototypes.generate` trains: each client asks all
    others, who search theirs.
    """
    embeddings = results["pretrain"].of_clients("embeddings")

    def search(i: int, nodes: int) -> Search:
        boundary = Boundary(without_prototypes.messages(parameters, [nodes] * len(embeddings)))
        return without_prototypes.remote_nearest(boundary, i, embeddings)

    return _dgens(task, parameters, embeddings, search)


def _dgens(
    task: Task,
    parameters: FedDEPParameters,
    targets: list[Tensor],
    search: Callable[[int, int], Search],
) -> list[Work]:
    """Train each client's DGen and mend its subgraph; ``search`` is that of a client's number and
    of so many nodes.
    """
    work = []
    for i, client in enumerate(task.subgraphs()):
        impaired = impair_client(task, parameters, i, client)
        size = len(impaired.kept)
        counted = Counted(search(i, size))
        with FlopCounter() as counter:
            mending.mend(task, parameters, i, client, impaired, targets[i], counted)
        updates = zip(counted.calls, counted.returned, strict=True)
        distances = fmean(
            operations_of_distances(points, slots, found, parameters)
            for (points, slots), found in updates
        )
        generated = fmean(len(points) / size for points, _ in counted.calls)
        work.append(
            Work(
                size,
                len(counted.calls),
                generated,
                fmean(counted.operations) + distances,
                counter.total,
            )
        )
    return work


def operations_of_distances(
    points: Tensor, chosen: Tensor, found: Sequence[Targets | Tensor], how: GeneratorParameters
) -> int:
    """Operations of the cross-client term of the loss, the search aside, and of its gradient in
    what was generated.

    The loss is computed with and without the term; the difference is what the term costs.
    ``points`` are the embeddings generated for the slots ``chosen``, shape (n, S); ``found`` is
    what is nearest to each, of each of M − 1 others.
    """

    def operations(cross_weight: float) -> int:
        embeddings = points.detach().clone().requires_grad_()
        count = chosen.sum(dim=1).to(points.dtype).requires_grad_()
        nobody = torch.zeros(0, 2, dtype=torch.int64, device=points.device)
        generated = Generated(count, embeddings, chosen)
        weighted = how.replace(intra_weight=0.0, cross_weight=cross_weight)
        with torch.enable_grad(), FlopCounter() as counter:
            loss, _ = generator_loss(
                generated, chosen.sum(dim=1), nobody, embeddings, lambda *_: found, weighted
            )
            loss.backward()
        return counter.total

    return operations(how.cross_weight) - operations(0.0)


def neighgen(task: Task, how: NeighGenParameters, results: Results) -> list[Work]:
    """As :func:`feddep.methods.fedsage.cross_client.generate` trains: others generate with a
    client's own NeighGen.
    """
    clients = task.subgraphs()
    peers = {
        i: cross_client.Peer(task, how, i, graph.features) for i, (graph, _) in enumerate(clients)
    }
    return [
        _neighgen(task, how, i, client, {j: other for j, other in peers.items() if j != i})
        for i, client in enumerate(clients)
    ]


def _neighgen(
    task: Task,
    how: NeighGenParameters,
    number: int,
    client: ClientData,
    others: Mapping[int, cross_client.Peer],
) -> Work:
    impaired = impair_client(task, how, number, client)
    trainer = NeighGenTrainer(
        task, how, number, client, impaired, new_neighgen(task, how, f"client{number}")
    )
    network = trainer.neighgen.generator
    boundary = Boundary(cross_client.messages(task, how, [trainer.batch] * len(task.subgraphs())))
    exchange = Counted(lambda request: cross_client.ask_others(boundary, number, others, request))
    generated: list[float] = []
    aside = 0  # operations that only the counting causes

    def ask(request: Mapping[str, Tensor]) -> Payload:
        nonlocal aside
        gradients: Payload = exchange(request)
        with torch.no_grad(), FlopCounter() as counter:
            wanted = network.number(request["embeddings"]).relu().round().clamp(max=network.slots)
            generated.append(float(wanted.mean()))
        aside += counter.total
        return gradients

    with FlopCounter() as counter:
        for _ in range(how.generator_local_epochs):
            trainer.step()
        for _ in range(how.generator_federated_epochs):
            trainer.step(ask)
        trainer.mend()
    mean, size = fmean(generated), sum(weight.numel() for weight in network.parameters())
    operations, updates = fmean(exchange.operations), how.generator_federated_epochs
    return Work(trainer.batch, updates, mean, operations, counter.total - aside, size)
