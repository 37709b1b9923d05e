"""FedDEP whose generators are trained together with the classifier, a reading of Equation 3.1 (FedDEP, Section 3).

The paper speaks of "FL for the joint model of DGen and F" and has the federated classifier F lend DGen "task-oriented
supervision".  Its text on pseudo-FL trains DGen first, and so do :mod:`feddep.frameworks.feddep` and the authors' code, beside
a classifier of the client's own that is thrown away.  Here both go on together: in every epoch of a round a client

1. takes ``generator_epochs`` steps of L_i = L^n_i + L^c_i with the federated classifier as it stands in L^c_i; what these steps
   would do to the classifier is forgotten, and an optimiser with a memory starts anew;
2. generates neighbours for its whole subgraph with the DGen that it has now;
3. trains the classifier on the subgraph so mended.

DGen stays at home, and only what FedDEP sends is sent: prototypes once, then the classifier's weights.

Assumes: prototypes shared.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep import mending, seeding
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.ledger import merged
from feddep.federation.server import Server
from feddep.frameworks import feddep
from feddep.generation import Generator, nearest_in
from feddep.history import History
from feddep.mended import MendedEvaluator
from feddep.nn.dgen import DGen
from feddep.nn.fused import MendedTable
from feddep.problem import Outcome, Part, Problem
from feddep.steps import Step, make_all
from feddep.training import Learner

TITLE = "FedDEP, joint"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(feddep.Parameters):
    """Those of FedDEP; ``inference`` is ``zero``, and ``generator_epochs`` is a number of steps an epoch of the classifier.

    Attributes:
        generator_epochs: steps of DGen for each epoch of the classifier.  No source.
    """

    generator_epochs: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: as for FedDEP, and where ``inference`` is not ``zero``.
        """
        super().__post_init__()
        if self.inference != "zero":
            raise ValueError("inference must be zero where generators are trained with the classifier")


def steps(parameters: Parameters) -> Sequence[Step]:
    """Those of FedDEP, but for the generator's."""
    return [step for step in feddep.steps(parameters) if step.stage != "generator"]


class RenewedTable(MendedTable):
    """Looks up the inputs of sampled nodes, whose mended embeddings change."""

    def renew(self, embeddings: Tensor) -> None:
        """Take these for z̄_v from now on, shape (n, d_z)."""
        self._embeddings = torch.cat([embeddings, embeddings.new_zeros(1, embeddings.shape[1])])


class JointLearner:
    """A client's DGen and what trains and validates the classifier on the subgraph that it mends."""

    def __init__(self, problem: Problem, parameters: Parameters, number: int, part: Part, shared: Sequence[Tensor], own: Tensor):
        """Prepare for training.

        Args:
            problem: the run.
            parameters: the framework's parameters.
            number: the client's number i.
            part: its subgraph G_i and split.
            shared: prototypes of all clients.
            own: z'_u, the prototype of each node of its own, shape (n_i, d_z).
        """
        graph, split = part
        setting, seed, name, device = problem.setting, problem.seed, f"client{number}", problem.device
        self._part = part
        self._impaired = mending.impair_client(problem, parameters, number, part)
        self._targets = own
        self._search = nearest_in([others for j, others in enumerate(shared) if j != number])
        dgen = DGen(graph.num_features, parameters.embedding, parameters.max_generated, setting.hidden, setting.dropout)
        dgen.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(seed, name, "generator", "weights")))
        self._generator = Generator(dgen, parameters.generation, seed, name, device)
        self._mended = torch.zeros(graph.num_nodes, parameters.embedding, device=device)
        self._table = RenewedTable(graph.features, self._mended, setting.fanout)
        self._learner = Learner(graph, split.train, setting, seed, name, device, self._table)
        self._device = device

    @property
    def size(self) -> int:
        """Number of training nodes."""
        return self._learner.size

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """Train DGen, mend the subgraph, visit every training node once; returns the classifier's mean loss a node."""
        graph, split = self._part
        self._generator.train(copy.deepcopy(model), self._impaired, split, self._targets, self._search)
        self._mended, _ = self._generator.mend(graph)
        self._table.renew(self._mended)
        return self._learner.epoch(model, optimizer)

    def correct(self, model: Any, nodes: np.ndarray) -> int:
        """How many of ``nodes`` get their true class on the subgraph as it is mended now."""
        return MendedEvaluator(self._part[0], model, self._mended, self._device).correct(model, nodes)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP, generators and classifier side by side."""
    made = make_all(problem, parameters, steps(parameters))
    shared, targets = (made["prototypes"].of_clients(name) for name in ("prototypes", "targets"))
    model: Any = mending.new_classifier(problem, parameters)
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    server = Server(model.state_dict())
    clients = []
    for i, part in enumerate(problem.subgraphs()):
        learner = JointLearner(problem, parameters, i, part, shared, targets[i])
        own = mending.new_classifier(problem, parameters)
        clients.append(Client(i, own, learner, learner, part[1].val, problem.setting, boundary))
    experimenter = MendedEvaluator(problem.graph, model, device=problem.device)
    history = History()

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, experimenter.accuracy(model, problem.split.test))

    federated_averaging(server, clients, problem.rounds(), on_round)
    return Outcome([history], merged(*(step.ledger for step in made.values()), boundary.ledger.rows()))
