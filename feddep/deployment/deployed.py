"""The frameworks that can be trained by processes: what of each a client does, and what the server.

FedAvg's clients have nothing to do before the first round.  FedDEP's pretrain and cluster, and send their prototypes, once; with
those of the others, which come with the first weights, they train their generators (pseudo-FL) and mend their subgraphs.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from feddep.deployment import DeploymentError
from feddep.federation.boundary import Boundary, Payload, Schema, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods import registry
from feddep.methods.basic import fedavg
from feddep.methods.feddep import FedDEPParameters, mending, pretraining
from feddep.methods.feddep.classifier import MendedEvaluator
from feddep.methods.feddep.prototypes import Prototypes, find_prototypes
from feddep.methods.shared.impairing_clients import impair_client
from feddep.nn.fused import MendedTable
from feddep.training.learner import Learner
from feddep.training.task import Part, Task

PROTOTYPES = "prototypes"


@dataclasses.dataclass(frozen=True)
class Deployed:
    """A framework, as participants run it; every function is given the task as its participant sees it, and the parameters.

    Attributes:
        new_model: the classifier with its initial weights.
        new_client: a client, from its number, part and boundary, what it kept of its preparation, and what the others shared.
        prepare: what a client does before the first round, from its number and its part: what it keeps and what it shares.
        shared: the kind of message that a client shares before the first round, with its schema; at most one.
    """

    new_model: Callable[[Task, Any], nn.Module]
    new_client: Callable[[Task, Any, int, Part, Boundary, Any, Mapping[int, Tensor]], Client]
    prepare: Callable[[Task, Any, int, Part], tuple[Any, Payload]] | None = None
    shared: Callable[[Task, Any], dict[str, Schema]] = lambda task, parameters: {}


def configured(options: Mapping[str, Any]) -> tuple[Deployed, Any]:
    """A framework and its parameters, from ``{"name": …, parameter: value, …}``.

    Raises:
        DeploymentError: if it cannot be trained by processes.
    """
    framework, parameters = registry.configured(options)
    if framework.name not in _DEPLOYED:
        raise DeploymentError(f"the framework {framework.name} cannot be trained by processes; allowed: {', '.join(_DEPLOYED)}")
    encoder = getattr(parameters, "encoder", "own")
    if encoder != "own":
        raise DeploymentError(f"encoder is {encoder}; where processes train {framework.name}, it must be own")
    return _DEPLOYED[framework.name], parameters


def new_boundary(framework: Deployed, parameters: Any, task: Task) -> Boundary:
    """The boundary of a framework: the same messages are declared on both sides."""
    return Boundary({"model": schema_of(framework.new_model(task, parameters)), **REPORTS, **framework.shared(task, parameters)})


def _fedavg_client(
    task: Task, parameters: Any, number: int, part: Part, boundary: Boundary, kept: Any, others: Mapping[int, Tensor]
) -> Client:
    return fedavg.new_client(task, number, part, boundary)


def _prototypes_schema(task: Task, parameters: FedDEPParameters) -> dict[str, Schema]:
    return {PROTOTYPES: {"embeddings": (_prototypes(task, parameters), parameters.embedding)}}


def _prototypes(task: Task, parameters: FedDEPParameters) -> int:
    return parameters.prototypes or task.graph.num_classes


def _prepare_feddep(task: Task, parameters: FedDEPParameters, number: int, part: Part) -> tuple[Prototypes, Payload]:
    graph, split = part
    pretrained = dataclasses.replace(task, setting=pretraining.setting_of(parameters, task.setting))
    learned_from = graph if parameters.depth else pretraining.without_edges(graph)
    embeddings = pretraining.pretrain(pretrained, (learned_from, split), parameters, number)
    found = find_prototypes(embeddings, _prototypes(task, parameters), parameters.clustering, task.seed, f"client{number}")
    return found, {"embeddings": found.embeddings}


def _feddep_client(
    task: Task,
    parameters: FedDEPParameters,
    number: int,
    part: Part,
    boundary: Boundary,
    kept: Prototypes,
    others: Mapping[int, Tensor],
) -> Client:
    graph, split = part
    shared = [{**others, number: kept.embeddings}[i] for i in range(len(others) + 1)]
    impaired, search = impair_client(task, parameters, number, part), mending.nearest_of_others(shared, number)
    mended, *_ = mending.mend(task, parameters, number, part, impaired, kept.of_nodes, search)
    model = mending.new_classifier(task, parameters)
    table = MendedTable(graph.features, mended, graph.degrees)
    learner = Learner(graph, split.train, task.setting, task.seed, f"client{number}", task.device, table)
    evaluator = MendedEvaluator(graph, model, mended, task.device)
    return Client(number, model, learner, evaluator, split, task.setting, boundary)


_DEPLOYED = {
    "fedavg": Deployed(lambda task, parameters: task.new_model(), _fedavg_client),
    "feddep": Deployed(mending.new_classifier, _feddep_client, _prepare_feddep, _prototypes_schema),
}
