"""FedDEP whose generators are trained together with the classifier, an interpretation of Equation
3.1 (FedDEP, Section 3).

The paper speaks of "FL for the joint model of DGen and F" and has the federated classifier F lend
DGen "task-oriented supervision".  Its text on pseudo-FL trains DGen first, and so do FedDEP here
and the authors' code, beside a classifier of the client's own that is thrown away.  Here both go on
together: in every epoch of a round a client

1. takes ``generator_epochs`` steps of L_i = L^n_i + L^c_i with the federated classifier as it
   stands in L^c_i; what these steps would do to the classifier is forgotten, and an optimiser with
   a memory starts anew;
2. generates neighbours for its whole subgraph with the DGen that it has now;
3. trains the classifier on the subgraph so mended.

DGen stays at home, and only what FedDEP sends is sent: prototypes once, then the classifier's
weights.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods.feddep import JointParameters, mending
from feddep.methods.feddep.classifier import global_accuracy
from feddep.methods.feddep.fused import MendedTable
from feddep.methods.feddep.generation import Generator
from feddep.methods.method import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner
from feddep.training.task import ClientData, RunResult, Task


class JointLearner(Learner):
    """A client's DGen and what trains the classifier on the subgraph that it mends.

    Attributes:
        evaluator: validates the classifier on the subgraph as it is mended now.
    """

    def __init__(
        self,
        task: Task,
        parameters: JointParameters,
        number: int,
        part: ClientData,
        shared: Sequence[Tensor],
        own: Tensor,
    ):
        """Prepare client ``number``, which has the ``shared`` prototypes and ``own``, that of each
        of its nodes, (n_i, d_z).
        """
        graph, split = part
        seed, name, device = task.seed, f"client{number}", task.device
        mended = torch.zeros(graph.num_nodes, parameters.embedding, device=device)
        self._mended_table = MendedTable(graph.features, mended, graph.degrees)
        super().__init__(graph, split.train, task.setting, seed, name, device, self._mended_table)
        aggregation = mending.new_classifier(task, parameters).aggregation
        self.evaluator = Evaluator(graph, device, aggregation, mended)
        self._part = part
        self._impaired = impair_client(task, parameters, number, part)
        self._targets = own
        self._search = mending.nearest_of_others(shared, number)
        self._generator = Generator(
            mending.new_dgen(task, parameters, number), parameters, seed, name, device
        )

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """Train DGen, mend the subgraph, train the classifier; returns the classifier's mean loss a
        node.
        """
        graph, split = self._part
        self._generator.train(
            copy.deepcopy(model), self._impaired, split, self._targets, self._search
        )
        self._mended_table.mended, _ = self._generator.mend(graph)
        self.evaluator.embeddings = self._mended_table.mended
        return super().epoch(model, optimizer)


def run(task: Task, parameters: JointParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """Train generators and classifier side by side."""
    shared, targets = (steps["prototypes"].of_clients(name) for name in ("prototypes", "targets"))
    model: Any = mending.new_classifier(task, parameters)
    boundary = Boundary({"model": schema_of(model), **REPORTS}, task.observers)
    clients = []
    for i, part in enumerate(task.subgraphs()):
        learner = JointLearner(task, parameters, i, part, shared, targets[i])
        own = mending.new_classifier(task, parameters)
        clients.append(Client(i, own, learner, learner.evaluator, part[1], task.setting, boundary))
    return train_federated(task, model, boundary, clients, global_accuracy(task, model))
