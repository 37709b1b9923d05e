"""Personalised aggregation by functional similarity, after FED-PUB (Baek et al., 2023), without its
weight masks.

The server applies every client's model to one random graph.  Clients whose models answer alike
learn more from each other:

    α_ij = softmax over j of τ cos(f_i, f_j),    w_i ← Σ_j α_ij w_j

where f_i is the mean output of client i's model.  Each client is judged by its own model, after its
local steps.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import torch
from pydantic import Field
from torch.nn.functional import normalize

from feddep.federation.boundary import Payload
from feddep.federation.client import Update
from feddep.federation.server import Server, weighted_mean
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.method import ANY_ENCODER, Method
from feddep.training.evaluator import Evaluator
from feddep.training.task import RunResult, Task
from feddep.utils import seeding
from feddep.utils.parameters import Parameters


class FedPubParameters(Parameters):
    """How the server weights clients."""

    tau: Annotated[float, Field(ge=0)] = 10.0
    """τ, how much more a similar client counts; 0: all count the same"""


class FedPubServer(Server):
    """A server that sends each client its own mean of the clients' weights."""

    def __init__(self, *arguments: Any, task: Task, tau: float) -> None:
        super().__init__(*arguments)
        self.tau = tau
        self.personal: list[Payload] = []
        self.model = task.new_model()
        self.evaluator = Evaluator(random_graph(task), task.device, self.model.aggregation)

    def aggregate(self, updates: Sequence[Update]) -> None:
        self.personal = [
            weighted_mean([update.weights for update in updates], row)
            for row in self.alpha(updates).tolist()
        ]

    def weights_for(self, client: int) -> Payload:
        return self.personal[client] if self.personal else self.weights

    def alpha(self, updates: Sequence[Update]) -> torch.Tensor:
        """α_ij, shape (M, M)."""
        outputs = []
        for update in updates:
            self.model.load_state_dict(update.weights)
            outputs.append(self.evaluator.logits(self.model).mean(dim=0))
        f = normalize(torch.stack(outputs), dim=1)
        return (self.tau * f @ f.T).softmax(dim=1)


def random_graph(task: Task, nodes: int = 100) -> Graph:
    """A random graph that the server makes: it holds nothing of any client."""
    rng = seeding.generator(task.seed, "fedpub_like", "graph")
    features = sp.csr_matrix(rng.normal(size=(nodes, task.graph.num_features)).astype(np.float32))
    edges = rng.integers(nodes, size=(5 * nodes, 2))
    return Graph.from_edges(
        edges, features, np.zeros(nodes, dtype=np.int64), task.graph.num_classes
    )


def run(task: Task, parameters: FedPubParameters, steps: object) -> RunResult:
    """Train and test a model a client."""
    return fedavg.train_on(
        task, task.subgraphs(), server=partial(FedPubServer, task=task, tau=parameters.tau)
    )


METHODS = (
    Method(
        "fedpub_like",
        "FED-PUB-like",
        FedPubParameters,
        f"{__name__}:run",
        encoders=ANY_ENCODER,
        evaluation="local_after",
    ),
)
