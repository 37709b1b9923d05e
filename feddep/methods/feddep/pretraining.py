"""Pretraining: each client trains a GNN on its own subgraph and keeps the embeddings of its nodes
(FedDEP, Section 3.2).

The embeddings Z_i hold each node's L-hop context.  With L = 0 they hold the node's own features and
nothing else: the convolution then runs on the subgraph without its edges, which leaves a linear map
of x_v in front of the tanh.  The paper has L = 0 only as FedSage (Figure 4), which generates the
features themselves; this is the same depth in FedDEP's frame.

Each client's coordinates have nothing to do with another's, as each has weights of its own.  With
the ``federated`` encoder, which is not the paper's, they do: the clients train one GNN by FedAvg.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.federation.averaging import Federation
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.graph.graph import Graph
from feddep.graph.sampling import SampledTrees
from feddep.methods.feddep import PretrainingParameters
from feddep.methods.method import StepResult, by_client
from feddep.nn.feature_table import FeatureTable
from feddep.nn.linear import Linear
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix, graph_matrices
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner, new_optimizer
from feddep.training.task import ClientData, Task
from feddep.utils.progress import track

OPTIMISATION: dict[str, dict[str, str | float]] = {
    "adam": {
        "optimizer": "adam",
        "learning_rate": 0.01,
        "weight_decay": 5e-4,
        "optimizer_state": "fresh",
    },
    "sgd": {
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "weight_decay": 0.0,
        "optimizer_state": "fresh",
    },
}
"""Adam as in the authors' code, and SGD as the paper trains its GNNs (Section 4.1)."""


class EmbeddingGNN(GraphSAGE):
    """L GraphSAGE convolutions, tanh after the last, then a linear head on the classes (authors'
    code).

    The embedding of a node is the output of the tanh: a point of (−1, 1)^{d_z}.
    """

    def __init__(
        self, features: int, hidden: int, embedding: int, classes: int, layers: int, dropout: float
    ) -> None:
        super().__init__(features, hidden, embedding, layers, dropout)
        self.linear = Linear(embedding, classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        self.linear.reset_parameters(generator)

    def forward(
        self, trees: SampledTrees, table: FeatureTable, generator: torch.Generator | None = None
    ) -> Tensor:
        return self.linear(super().forward(trees, table, generator).tanh())

    def embed(self, x: Tensor | SparseMatrix, mean: SparseMatrix) -> Tensor:
        """Embeddings of all nodes from their full neighbourhoods, without dropout, shape (n,
        d_z).
        """
        return super().full(x, mean).tanh()

    def full(self, *inputs: Any, **options: Any) -> Tensor:
        return self.linear(super().full(*inputs, **options).tanh())


def embed(task: Task, parameters: PretrainingParameters, results: Any = None) -> StepResult:
    """Z_i of each client i, ``client0.embeddings`` …, shape (n_i, d_z); nothing is sent, unless the
    encoder is federated.
    """
    task, clients = prepared(task, task.subgraphs(), parameters)
    if parameters.encoder == "federated":
        return pretrain_together(task, clients, parameters)
    return StepResult(
        by_client(
            embeddings=[pretrain(task, client, parameters, i) for i, client in enumerate(clients)]
        )
    )


def prepared(
    task: Task, clients: Sequence[ClientData], parameters: PretrainingParameters
) -> tuple[Task, list[ClientData]]:
    """Prepare what GNNs are trained on: the task with the setting of pretraining, and clients'
    subgraphs, for L = 0 without edges.
    """
    task = dataclasses.replace(task, setting=setting_of(parameters, task.setting))
    return task, [
        (graph if parameters.depth else without_edges(graph), split) for graph, split in clients
    ]


def pretrain(
    task: Task, client: ClientData, parameters: PretrainingParameters, number: int
) -> Tensor:
    """Train client ``number``'s GNN; embeddings of all nodes of its subgraph, (n, d_z).

    ``task`` and ``client`` are as :func:`prepared` gives them.
    """
    return embeddings_of(
        train_gnn(task, client, parameters, f"client{number}"), client[0], task.device
    )


def train_gnn(
    task: Task, client: ClientData, parameters: PretrainingParameters, name: str
) -> EmbeddingGNN:
    """The GNN of :func:`pretrain`; ``name`` names the random streams."""
    graph, split = client
    gnn = new_gnn(task, parameters, name)
    optimizer = new_optimizer(gnn, task.setting)
    learner = Learner(
        graph, split.train, task.setting, task.seed, f"{name}/pretraining", task.device
    )
    for _ in track(range(parameters.pretraining_epochs), f"{task.name}: pretraining of {name}"):
        learner.epoch(gnn, optimizer)
    return gnn


def pretrain_together(
    task: Task, clients: Sequence[ClientData], parameters: PretrainingParameters
) -> StepResult:
    """Train one GNN by FedAvg, a round an epoch; each client embeds its nodes with the last round's
    weights.
    """
    gnn = new_gnn(task, parameters, "common")
    boundary = Boundary({"encoder": schema_of(gnn), **REPORTS}, task.observers)
    server = Server(gnn.state_dict())
    members = []
    for i, (graph, split) in enumerate(clients):
        learner = Learner(
            graph, split.train, task.setting, task.seed, f"client{i}/pretraining", task.device
        )
        members.append(
            Client(
                i,
                new_gnn(task, parameters, "common"),
                learner,
                Evaluator(graph, task.device),
                split,
                task.setting,
                boundary,
                "encoder",
            )
        )
    federation = Federation(server, members)
    for epoch in track(range(parameters.pretraining_epochs), f"{task.name}: federated pretraining"):
        federation.aggregate(federation.train(), epoch)
        federation.evaluate(report=True)
    gnn.load_state_dict(server.weights)
    embeddings = [embeddings_of(gnn, graph, task.device) for graph, _ in clients]
    return StepResult(by_client(embeddings=embeddings), boundary.communication.rows())


def setting_of(parameters: PretrainingParameters, setting: Any) -> Any:
    """The run's setting with the GNN's own depth and optimiser."""
    return setting.replace(
        **OPTIMISATION[parameters.pretraining_optimizer],
        layers=max(parameters.depth, 1),
        local_epochs=1,
        metric="accuracy",
    )


def new_gnn(task: Task, parameters: PretrainingParameters, stream: str) -> EmbeddingGNN:
    """A GNN with initial weights from the stream of this name."""
    features, hidden, classes, layers, dropout = task.model_sizes
    gnn = EmbeddingGNN(features, hidden, parameters.embedding, classes, layers, dropout)
    return task.drawn(gnn, stream, "pretraining", "weights")


@torch.no_grad()
def embeddings_of(gnn: EmbeddingGNN, graph: Graph, device: str) -> Tensor:
    """Embeddings of all nodes of a graph, from full neighbourhoods, shape (n, d_z)."""
    return gnn.embed(*graph_matrices(graph, device))


def without_edges(graph: Graph) -> Graph:
    """The same nodes, all isolated."""
    return dataclasses.replace(graph, indptr=np.zeros_like(graph.indptr), indices=graph.indices[:0])
