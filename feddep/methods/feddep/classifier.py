"""FedAvg of the embedding-fused classifier on mended subgraphs (FedDEP, Section 3.1 and
"Inference"), and two ablations of it.

*Without DGen* (Section 4.1 (8)).  The paper says no more than "without deep neighbor generation",
keeps Proto and NFDP, and concludes from this row and FedSage's "the necessity of generating
multi-hop cross-subgraph neighbors" (Section 4.2).  So here neighbours are generated, but not deep:
embeddings, prototypes and generated neighbours hold a node's own features (L = 0).

*Without noise-free DP* (Section 4.1 (10)): DP-SGD in its place, σ = 2.0.  All is FedDEP, but the
clients train the classifier by DP-SGD (:mod:`feddep.privacy.dpsgd`) and the Bernoulli sampler is
off.  Neighbours are still sampled, as GraphSAGE does for its mini-batches; sampling no longer
protects anybody.  The paper says no more than the σ.  Ours to decide: the clipping norm, FedGNN's,
so that the two rows compare; that the classifier is what is trained so, as its weights are what is
sent in every round; and that a batch is a Poisson sample, as the accounting wants.  The prototypes
are shared as in FedDEP: noise in the classifier's gradients does not protect them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods.feddep import FedDEPParameters, WithoutNFDPParameters, mending
from feddep.methods.feddep.fused import FusedClassifier, MendedTable
from feddep.methods.method import StepResult
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.training.evaluation import GlobalAccuracy
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner, new_learner
from feddep.training.task import ClientData, RunResult, Task


def run(task: Task, parameters: FedDEPParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """Train the classifier on what the step ``generator`` has mended."""
    return train_classifier(task, parameters, steps["generator"].of_clients("mended"))


def run_without_nfdp(
    task: Task, parameters: WithoutNFDPParameters, steps: Mapping[str, StepResult]
) -> RunResult:
    """Train the classifier by DP-SGD."""
    learner = partial(PrivateLearner, privacy=Privacy(parameters.sigma, parameters.clip))
    return train_classifier(task, parameters, steps["generator"].of_clients("mended"), learner)


def train_classifier(
    task: Task,
    parameters: FedDEPParameters,
    mended: Sequence[Tensor],
    learner: Callable[..., Learner] | None = None,
) -> RunResult:
    """FedAvg of the embedding-fused classifier on the subgraphs mended with z̄_v of each client's
    nodes, shape (n_i, d_z).

    Clients train as the setting says, or with a ``learner``, which is called like
    :class:`feddep.training.learner.Learner`.
    """
    model: Any = mending.new_classifier(task, parameters)
    boundary = Boundary({"model": schema_of(model), **REPORTS}, task.observers)
    clients = [
        new_client(task, parameters, i, part, z, boundary, learner)
        for i, (part, z) in enumerate(zip(task.subgraphs(), mended, strict=True))
    ]
    test = global_accuracy(task, model, of_global_graph(task, parameters, mended))
    return train_federated(task, model, boundary, clients, test)


def new_client(
    task: Task,
    parameters: FedDEPParameters,
    number: int,
    part: ClientData,
    mended: Tensor,
    boundary: Boundary,
    learner: Callable[..., Learner] | None = None,
) -> Client:
    """A client that trains and validates a new classifier on its mended subgraph; ``mended`` is z̄
    of its nodes, (n_i, d_z).
    """
    graph, split = part
    model: Any = mending.new_classifier(task, parameters)
    table = MendedTable(graph.features, mended.to(task.device), graph.degrees)
    evaluator = Evaluator(graph, task.device, model.aggregation, mended)
    trains_on = graph, split.train, task.setting, task.seed, f"client{number}", task.device
    learns = (
        new_learner(*trains_on, evaluator, table) if learner is None else learner(*trains_on, table)
    )
    return Client(number, model, learns, evaluator, split, task.setting, boundary)


def global_accuracy(
    task: Task, model: FusedClassifier, embeddings: Tensor | None = None
) -> Callable[[Any], GlobalAccuracy]:
    """Accuracies of classifiers of this layout on the global graph, whose nodes have the given z̄,
    or zero.
    """
    evaluator = Evaluator(task.graph, task.device, model.aggregation, embeddings)
    return partial(task.test, evaluator=evaluator)


def of_global_graph(
    task: Task, parameters: FedDEPParameters, mended: Sequence[Tensor]
) -> Tensor | None:
    """z̄ of the nodes of the global graph, shape (n, d_z), or none for zero; the mean where several
    clients own a node.
    """
    if parameters.inference == "zero" or task.partition is None:
        return None
    z = torch.zeros(task.graph.num_nodes, parameters.embedding)
    owners = torch.zeros(task.graph.num_nodes, 1)
    for i, own in enumerate(mended):
        z[task.partition.nodes(i)] += own.cpu()
        owners[task.partition.nodes(i)] += 1
    return z / owners.clamp(min=1)
