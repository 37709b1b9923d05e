"""The methods that can be trained by processes: what of each a client does, and what the server.

FedAvg's clients have nothing to do before the first round.  FedDEP's pretrain and cluster, and send their prototypes, once; with
those of the others, which come with the first weights, they train their generators (pseudo-FL) and mend their subgraphs.
FedSage+ has two exchanges for each federated epoch of its generators: clients send their embeddings and generators to all others;
and the gradients that these answer with, which the server adds up (:mod:`feddep.methods.fedsage.cross_client`).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from feddep.deployment import DeploymentError
from feddep.federation.boundary import Boundary, Payload, Schema, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods import registry
from feddep.methods.basic import fedavg
from feddep.methods.feddep import FedDEPParameters, classifier, mending, pretraining
from feddep.methods.feddep.generation import nearest_in
from feddep.methods.feddep.prototypes import Prototypes, find_prototypes
from feddep.methods.fedsage import NeighGenParameters, cross_client, fedsage_plus
from feddep.methods.fedsage.cross_client import Peer, gradients_for, request_of, summed
from feddep.methods.fedsage.mended_subgraph import mended_subgraph
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer, batch_size, new_neighgen
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import Part, Task

PROTOTYPES = "prototypes"

Payloads = dict[str, Payload]
"""Payloads by kind; where they come from a single client j, by ``KIND/j`` (:func:`of_sender`)."""


@dataclasses.dataclass(frozen=True)
class Member:
    """A client as its method sees it.

    Attributes:
        task: the task as this client sees it: the graph and split are its own.
        parameters: the method's.
        number: the client's number i.
        clients: number of clients M.
    """

    task: Task
    parameters: Any
    number: int
    clients: int

    @property
    def part(self) -> Part:
        """The client's subgraph and its share of the split."""
        return self.task.graph, self.task.split

    @property
    def others(self) -> list[int]:
        """The numbers of the other clients, ascending."""
        return [number for number in range(self.clients) if number != self.number]


@dataclasses.dataclass(frozen=True)
class Exchange:
    """One message to each client before the first round, and their answers.

    Attributes:
        work: what a client does, from what it kept of the exchange before and what it received: what it keeps, and what it sends.
        kinds: the kinds of payloads that client i of M sends.
        pass_on: what the server makes of all clients' payloads; it goes to each with the next message.
    """

    work: Callable[[Member, Any, Payloads], tuple[Any, Payloads]]
    kinds: Callable[[int, int], list[str]]
    pass_on: Callable[[Boundary, Sequence[Payloads]], dict[int, Payloads]]


@dataclasses.dataclass(frozen=True)
class Deployed:
    """A method, as participants run it.

    Attributes:
        new_model: the classifier with its initial weights, from the task and the parameters.
        new_client: a client, from its boundary, what it kept of the last exchange, and what came with the first weights.
        exchanges: what is exchanged before the first round, from the parameters and the number of clients M.
        messages: the kinds of messages in these exchanges, from the task, the parameters, and ``sizes``.
        sizes: numbers that the shapes of these messages take from each client's subgraph.
    """

    new_model: Callable[[Task, Any], nn.Module]
    new_client: Callable[[Member, Boundary, Any, Payloads], Client]
    exchanges: Callable[[Any, int], Sequence[Exchange]] = lambda parameters, clients: ()
    messages: Callable[[Task, Any, Sequence[int]], dict[str, Schema]] = lambda task, parameters, sizes: {}
    sizes: Callable[[Task, Any], list[int]] = lambda task, parameters: []


def configured(options: Mapping[str, Any]) -> tuple[Deployed, Any]:
    """A method and its parameters, from ``{"name": …, parameter: value, …}``.

    Raises:
        DeploymentError: if it cannot be trained by processes.
    """
    method, parameters = registry.configured(options)
    if method.name not in _DEPLOYED:
        raise DeploymentError(f"the method {method.name} cannot be trained by processes; allowed: {', '.join(_DEPLOYED)}")
    encoder = getattr(parameters, "encoder", "local")
    if encoder != "local":
        raise DeploymentError(f"encoder is {encoder}; where processes train {method.name}, it must be local")
    return _DEPLOYED[method.name], parameters


def messages(method: Deployed, parameters: Any, task: Task, sizes: Sequence[int]) -> dict[str, Schema]:
    """What may cross a client's boundary, by kind: the same is declared on both sides."""
    model = schema_of(method.new_model(task, parameters))
    return {"model": model, **REPORTS, **method.messages(task, parameters, sizes)}


def of_sender(kind: str, number: int) -> str:
    """What a payload of client ``number`` is called where another receives it."""
    return f"{kind}/{number}"


def kind_of(name: str) -> str:
    """The kind of a payload that :func:`of_sender` may have named."""
    return name.partition("/")[0]


def _relay(boundary: Boundary, sent: Sequence[Payloads]) -> dict[int, Payloads]:
    """Each client's payloads to all others."""
    return {
        i: {
            of_sender(kind, j): boundary.send(i, "down", kind, payload)
            for j, payloads in enumerate(sent)
            if j != i
            for kind, payload in payloads.items()
        }
        for i in range(len(sent))
    }


def _fedavg_client(member: Member, boundary: Boundary, kept: Any, received: Payloads) -> Client:
    return fedavg.new_client(member.task, member.number, member.part, boundary)


def _prototypes_schema(task: Task, parameters: FedDEPParameters, sizes: Sequence[int]) -> dict[str, Schema]:
    return {PROTOTYPES: {"embeddings": (_prototypes(task, parameters), parameters.embedding)}}


def _prototypes(task: Task, parameters: FedDEPParameters) -> int:
    return parameters.prototypes or task.graph.num_classes


def _find_prototypes(member: Member, kept: None, received: Payloads) -> tuple[Prototypes, Payloads]:
    task, parameters = member.task, member.parameters
    pretrained, [part] = pretraining.prepared(task, [member.part], parameters)
    embeddings = pretraining.pretrain(pretrained, part, parameters, member.number)
    count, name = _prototypes(task, parameters), f"client{member.number}"
    found = find_prototypes(embeddings, count, parameters.clustering, task.seed, name)
    return found, {PROTOTYPES: {"embeddings": found.embeddings}}


def _feddep_client(member: Member, boundary: Boundary, kept: Prototypes, received: Payloads) -> Client:
    task, parameters, number, part = member.task, member.parameters, member.number, member.part
    search = nearest_in([received[of_sender(PROTOTYPES, j)]["embeddings"] for j in member.others])
    impaired = impair_client(task, parameters, number, part)
    mended, *_ = mending.mend(task, parameters, number, part, impaired, kept.of_nodes, search)
    return classifier.new_client(task, parameters, number, part, mended, boundary)


def _asking_epochs(parameters: NeighGenParameters, clients: int) -> int:
    """Epochs in which a client of FedSage+ asks the others: none without others."""
    return parameters.generator_federated_epochs if clients > 1 else 0


def _fedsage_exchanges(parameters: NeighGenParameters, clients: int) -> list[Exchange]:
    requests = Exchange(_ask, lambda number, clients: [request_of(number)], _relay)
    answers = Exchange(_answer, lambda number, clients: [gradients_for(i) for i in range(clients) if i != number], _add_up)
    return [requests, answers] * _asking_epochs(parameters, clients)


def _sampled(task: Task, parameters: NeighGenParameters) -> list[int]:
    """Number of nodes that each client samples in an epoch."""
    return [batch_size(parameters, impair_client(task, parameters, i, part)) for i, part in enumerate(task.subgraphs())]


def _ask(member: Member, kept: tuple[NeighGenTrainer, Peer] | None, received: Payloads) -> tuple[Any, Payloads]:
    """Finish the epoch before, begin the next, and ask the others for their gradients."""
    peer = Peer(member.task, member.parameters, member.number, member.task.graph.features) if kept is None else kept[1]
    trainer = _after_last_epoch(member, kept, received)
    return (trainer, peer), {request_of(member.number): trainer.begin()}


def _after_last_epoch(member: Member, kept: tuple[NeighGenTrainer, Peer] | None, received: Payloads) -> NeighGenTrainer:
    """The trainer of the client's NeighGen as the epoch before left it; of the first, as the local epochs did."""
    if kept is not None:
        trainer = kept[0]
        trainer.finish(received[gradients_for(member.number)])
        return trainer
    task, parameters, number = member.task, member.parameters, member.number
    impaired, neighgen = impair_client(task, parameters, number, member.part), new_neighgen(task, parameters, f"client{number}")
    trainer = NeighGenTrainer(task, parameters, number, member.part, impaired, neighgen)
    alone = parameters.generator_federated_epochs - _asking_epochs(parameters, member.clients)
    for _ in range(parameters.generator_local_epochs + alone):
        trainer.step()
    return trainer


def _answer(
    member: Member, kept: tuple[NeighGenTrainer, Peer], received: Payloads
) -> tuple[tuple[NeighGenTrainer, Peer], Payloads]:
    """Answer the requests of all others with gradients."""
    return kept, {gradients_for(i): kept[1].answer(i, received[of_sender(request_of(i), i)]) for i in member.others}


def _add_up(boundary: Boundary, sent: Sequence[Payloads]) -> dict[int, Payloads]:
    """To each client the sum of the gradients that all others have sent for it, added in the order of their numbers."""

    def sum_for(i: int) -> Payloads:
        kind = gradients_for(i)
        total = summed(payloads[kind] for j, payloads in enumerate(sent) if j != i)
        return {kind: boundary.send(i, "down", kind, total)}

    return {i: sum_for(i) for i in range(len(sent))}


def _fedsage_client(member: Member, boundary: Boundary, kept: tuple[NeighGenTrainer, Peer] | None, received: Payloads) -> Client:
    graph, split = member.part
    generated = _after_last_epoch(member, kept, received).mend()
    mended = mended_subgraph(member.task, graph, generated["owner"], generated["features"])
    return fedsage_plus.new_client(member.task, member.number, mended, split, boundary)


def _plain_model(task: Task, parameters: Any) -> nn.Module:
    return task.new_model()


_FEDDEP = Exchange(_find_prototypes, lambda number, clients: [PROTOTYPES], _relay)
_DEPLOYED = {
    "fedavg": Deployed(_plain_model, _fedavg_client),
    "feddep": Deployed(mending.new_classifier, _feddep_client, lambda parameters, clients: [_FEDDEP], _prototypes_schema),
    "fedsage_plus": Deployed(_plain_model, _fedsage_client, _fedsage_exchanges, cross_client.messages, _sampled),
}
