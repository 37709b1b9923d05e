"""Pretraining: each client trains a GNN on its own subgraph and keeps the embeddings of its nodes (FedDEP, Section 3.2).

The embeddings Z_i hold each node's L-hop context.  With L = 0 they hold the node's own features and nothing else: the
convolution then runs on the subgraph without its edges, which leaves a linear map of x_v in front of the tanh.  The paper
has L = 0 only as FedSage (Figure 4), which generates the features themselves; this is the same depth in FedDEP's frame.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep import seeding
from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.nn.embedding import EmbeddingGNN
from feddep.nn.sparse import SparseMatrix
from feddep.settings import Setting
from feddep.training import Learner, new_optimizer


@dataclass(frozen=True)
class Pretraining:
    """How the local GNN is trained; defaults are the authors' code, which the paper does not contradict.

    Attributes:
        depth: number of hops L that an embedding sees.
        embedding: width d_z of an embedding.
        epochs: passes over the client's training nodes.
        learning_rate: step size of Adam.
        weight_decay: L2 penalty of Adam.
    """

    depth: int = 2
    embedding: int = 128
    epochs: int = 50
    learning_rate: float = 0.01
    weight_decay: float = 5e-4


def pretrain(
    graph: Graph, nodes: np.ndarray, how: Pretraining, setting: Setting, seed: int, name: str, device: str = "cpu"
) -> Tensor:
    """Train a GNN on one client's subgraph and return the embeddings of all its nodes, shape (n, d_z), detached.

    Nothing is sent: every client has weights of its own from its own stream, so the coordinates of two clients'
    embeddings have nothing to do with one another.

    Args:
        graph: the client's subgraph.
        nodes: its training nodes.
        how: depth, width and optimisation.
        setting: the run's setting; batch size, fan-out, hidden width and dropout are used.
        seed: the run's seed.
        name: names the random streams, for example ``client3``.
        device: where tensors live.
    """
    graph = graph if how.depth else without_edges(graph)
    local = dataclasses.replace(
        setting, optimizer="adam", learning_rate=how.learning_rate, weight_decay=how.weight_decay, layers=max(how.depth, 1)
    )
    gnn: Any = EmbeddingGNN(
        graph.num_features, local.hidden, how.embedding, graph.num_classes, local.layers, local.fanout, local.dropout
    )
    gnn.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(seed, name, "pretraining", "weights")))
    gnn.to(device)
    optimizer = new_optimizer(gnn, local)
    learner = Learner(graph, nodes, local, seed, f"{name}/pretraining", device)
    for _ in range(how.epochs):
        learner.epoch(gnn, optimizer)
    with torch.no_grad():
        return gnn.embed(SparseMatrix.from_scipy(graph.features, device), SparseMatrix.from_scipy(mean_adjacency(graph), device))


def without_edges(graph: Graph) -> Graph:
    """The same nodes, all isolated."""
    return dataclasses.replace(graph, indptr=np.zeros_like(graph.indptr), indices=graph.indices[:0])
