"""Pretraining: each client trains a GNN on its own subgraph and keeps the embeddings of its nodes (FedDEP, Section 3.2).

The embeddings Z_i hold each node's L-hop context.  With L = 0 they hold the node's own features and nothing else: the
convolution then runs on the subgraph without its edges, which leaves a linear map of x_v in front of the tanh.  The paper
has L = 0 only as FedSage (Figure 4), which generates the features themselves; this is the same depth in FedDEP's frame.

Each client's coordinates have nothing to do with another's, as each has weights of its own.  With the ``common`` encoder,
which is not the paper's, they do: the clients train one GNN by FedAvg.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from feddep import seeding
from feddep.evaluation import Evaluator, mean_adjacency
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.fedavg import federated_averaging
from feddep.federation.server import Server
from feddep.graph import Graph
from feddep.nn.embedding import EmbeddingGNN
from feddep.nn.sparse import SparseMatrix
from feddep.problem import Part, Problem
from feddep.progress import track
from feddep.settings import Setting
from feddep.steps import Made, by_client
from feddep.training import Learner, new_optimizer

Encoder = Literal["own", "common"]
"""Whose GNN embeds a client's nodes: its own (paper), or one that all train together."""


@dataclass(frozen=True)
class Pretraining:
    """How the local GNN is trained; defaults are the authors' code, which the paper does not contradict.

    Attributes:
        encoder: ``own`` or ``common``.
        depth: number of hops L that an embedding sees.
        embedding: width d_z of an embedding.
        epochs: passes over the client's training nodes.
        learning_rate: step size of Adam.
        weight_decay: L2 penalty of Adam.
    """

    encoder: Encoder = "own"
    depth: int = 2
    embedding: int = 128
    epochs: int = 50
    learning_rate: float = 0.01
    weight_decay: float = 5e-4


class Parameters(Protocol):
    """What this step reads of a framework's parameters."""

    @property
    def pretraining(self) -> Pretraining:
        """How the GNN is trained."""


USES = ("encoder", "depth", "embedding", "pretraining_epochs")
"""Names of the framework's parameters that decide it."""


def embed(problem: Problem, parameters: Parameters, made: Mapping[str, Made]) -> Made:
    """Z_i of each client i, ``client0.embeddings`` …, shape (n_i, d_z); nothing is sent, unless the encoder is common."""
    how, setting, seed, device = parameters.pretraining, problem.setting, problem.seed, problem.device
    clients = [(graph if how.depth else without_edges(graph), split) for graph, split in problem.subgraphs()]
    if how.encoder == "common":
        return pretrain_together(clients, how, setting, seed, problem.name, device)
    bars = [f"{problem.name}: pretraining of client {i}" for i in range(len(clients))]
    embeddings = [
        pretrain(graph, split.train, how, setting, seed, f"client{i}", device, bars[i])
        for i, (graph, split) in enumerate(clients)
    ]
    return Made(by_client(embeddings=embeddings))


def pretrain(
    graph: Graph,
    nodes: np.ndarray,
    how: Pretraining,
    setting: Setting,
    seed: int,
    name: str,
    device: str = "cpu",
    bar: str | None = None,
) -> Tensor:
    """Train a GNN on one client's subgraph and return the embeddings of all its nodes, shape (n, d_z), detached.

    Args:
        graph: the client's subgraph; for L = 0 without its edges.
        nodes: its training nodes.
        how: depth, width and optimisation.
        setting: the run's setting; batch size, fan-out, hidden width and dropout are used.
        seed: the run's seed.
        name: names the random streams, for example ``client3``.
        device: where tensors live.
        bar: what to write beside a progress bar; none without.
    """
    setting = setting_of(how, setting)
    gnn = new_gnn(graph, how, setting, seed, name, device)
    optimizer = new_optimizer(gnn, setting)
    learner = Learner(graph, nodes, setting, seed, f"{name}/pretraining", device)
    epochs = range(how.epochs)
    for _ in epochs if bar is None else track(epochs, bar):
        learner.epoch(gnn, optimizer)
    return embeddings_of(gnn, graph, device)


def pretrain_together(
    clients: Sequence[Part], how: Pretraining, setting: Setting, seed: int, name: str, device: str = "cpu"
) -> Made:
    """Train one GNN by FedAvg, a round an epoch; each client embeds its nodes with the last round's weights.

    Args:
        clients: their subgraphs and splits; the other arguments are those of :func:`pretrain`.
    """
    setting = setting_of(how, setting)
    gnn = new_gnn(clients[0][0], how, setting, seed, "common", device)
    boundary = Boundary({"encoder": schema_of(gnn), **REPORTS})
    server = Server(gnn.state_dict())
    members = []
    for i, (graph, split) in enumerate(clients):
        own = new_gnn(graph, how, setting, seed, "common", device)
        learner = Learner(graph, split.train, setting, seed, f"client{i}/pretraining", device)
        members.append(Client(i, own, learner, Evaluator(graph, device), split.val, setting, boundary, "encoder"))
    federated_averaging(server, members, track(range(how.epochs), f"{name}: common pretraining"), lambda loss, validation: None)
    gnn.load_state_dict(server.weights)
    return Made(by_client(embeddings=[embeddings_of(gnn, graph, device) for graph, _ in clients]), boundary.ledger.rows())


def setting_of(how: Pretraining, setting: Setting) -> Setting:
    """The run's setting with the GNN's own depth and optimiser."""
    return dataclasses.replace(
        setting,
        optimizer="adam",
        learning_rate=how.learning_rate,
        weight_decay=how.weight_decay,
        layers=max(how.depth, 1),
        local_epochs=1,
    )


def new_gnn(graph: Graph, how: Pretraining, setting: Setting, seed: int, name: str, device: str) -> EmbeddingGNN:
    """A GNN with initial weights from the stream of this name."""
    sizes = (graph.num_features, setting.hidden, how.embedding, graph.num_classes, setting.layers, setting.fanout)
    gnn = EmbeddingGNN(*sizes, setting.dropout)
    gnn.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(seed, name, "pretraining", "weights")))
    return gnn.to(device)


@torch.no_grad()
def embeddings_of(gnn: EmbeddingGNN, graph: Graph, device: str) -> Tensor:
    """Embeddings of all nodes of a graph, from full neighbourhoods, shape (n, d_z)."""
    matrices = (graph.features, mean_adjacency(graph))
    return gnn.embed(*(SparseMatrix.from_scipy(matrix, device) for matrix in matrices))


def without_edges(graph: Graph) -> Graph:
    """The same nodes, all isolated."""
    return dataclasses.replace(graph, indptr=np.zeros_like(graph.indptr), indices=graph.indices[:0])
