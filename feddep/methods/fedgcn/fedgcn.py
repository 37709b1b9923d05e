"""FedGCN: clients tell each other once what their nodes' neighbours sum up to, and then train a GCN
by FedAvg (Yao et al., 2023).

Source: "FedGCN: Convergence-communication tradeoffs in federated training of graph convolutional
networks" (NeurIPS 2023).  With Ŝ = D̂^(−1/2) (A + I) D̂^(−1/2) X of the global graph, a GCN of L
layers is

    H¹ = σ(Ŝ W¹ + b¹),   H^k = σ(D̂^(−1/2) (A + I) D̂^(−1/2) H^{k−1} W^k + b^k),   k = 2 … L

Before training, clients tell each other the degrees of nodes with neighbours elsewhere.  Then each
sends the part of each row of Ŝ that comes from its own nodes, for every node elsewhere that is
joined to one of them; the server adds up the parts and returns the rows.  With one hop a client
gets the rows of its own nodes, and its later layers aggregate over its own subgraph.  With two it
also gets those of its nodes' neighbours elsewhere, and with L = 2 its nodes' logits are those of
the global graph.

In the paper the parts are encrypted, so that the server reads none.  Here no cipher is run: parts
are counted as what they are. A row to which a single node contributes tells that node's features,
up to a factor, whatever is encrypted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import norm
from torch import Tensor

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, ByClient, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.graph.graph import Graph, normalised_adjacency
from feddep.methods.fedgcn import FedGCNParameters
from feddep.methods.shared.cross_edges import CrossEdges, cross_edges, normalised_rows
from feddep.methods.shared.routing import DEGREES, share_degrees, share_kinds
from feddep.nn.encoders import GCN, NodeLayer
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sparse import ConstantMatrix, SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.training.learner import new_learner
from feddep.training.task import ClientData, RunResult, Task

SUMS = "sums"
"""The kind of message with a client's parts of rows of Ŝ, and with the rows that it gets back."""


class SummedGCN(GCN):
    """A GCN whose first layer reads rows that are aggregated already."""

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        super().__init__(features, hidden, classes, layers, dropout)
        self.layers[0] = self.layer0 = NodeLayer(features, self.output_widths[0])


class DenseMatrix(ConstantMatrix):
    """A constant matrix without zeros, such as rows with noise."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def multiply(self, dense: Tensor) -> Tensor:
        return self.rows @ dense

    def multiply_transposed(self, dense: Tensor) -> Tensor:
        return self.rows.T @ dense


def run(
    task: Task, parameters: FedGCNParameters, steps: Any = None, noise: float = 0.0
) -> RunResult:
    """FedGCN from top to bottom; ``noise`` as in :func:`exchange`."""
    parts, edges, device = task.subgraphs(), cross_edges(task), task.device
    model = new_model(task)
    boundary = Boundary(
        {"model": schema_of(model), **REPORTS, **_messages(task, edges, parameters.hops)},
        task.observers,
    )
    known = known_rows(task, boundary, edges)
    sums = exchange(task, boundary, edges, known, parameters.hops, noise)
    views = [_view(*each, parameters.hops) for each in zip(parts, edges, known, strict=True)]
    clients = []
    for i, ((graph, adjacency), (_, split), rows) in enumerate(
        zip(views, parts, sums, strict=True)
    ):
        summed = Graph(
            graph.indptr,
            graph.indices,
            sp.csr_matrix(rows.numpy()),
            graph.labels,
            graph.num_classes,
        )
        evaluator = Evaluator(summed, device)
        evaluator.adjacency = SparseMatrix.from_scipy(adjacency, device)
        if noise:
            evaluator.features = DenseMatrix(rows.to(device))
        name, table = f"client{i}", FeatureTable(summed.features, device, graph.degrees)
        learner = new_learner(
            summed, split.train, task.setting, task.seed, name, device, evaluator, table
        )
        clients.append(
            Client(i, new_model(task), learner, evaluator, split, task.setting, boundary)
        )
    everything = task.graph
    aggregated = sp.csr_matrix(normalised_adjacency(everything) @ everything.features)
    whole = Graph(
        everything.indptr, everything.indices, aggregated, everything.labels, everything.num_classes
    )
    tested = Evaluator(whole, device, normalised_adjacency)
    return train_federated(
        task, model, boundary, clients, lambda trained: task.test(trained, tested)
    )


def new_model(task: Task) -> SummedGCN:
    """The classifier with the run's initial weights."""
    return task.drawn(SummedGCN(*task.model_sizes))


def known_rows(
    task: Task, boundary: Boundary, edges: Sequence[CrossEdges]
) -> list[tuple[sp.csr_matrix, sp.csr_matrix]]:
    """What each client knows of D̂^(−1/2) (A + I) D̂^(−1/2) of the global graph.

    Returns:
        The rows of its nodes; columns are its nodes, then those elsewhere that they are joined to,
        shape (n, n + h).  And of the rows of those elsewhere the columns of its nodes and their own
        diagonal, shape (h, n + h).
    """
    found = []
    for own, degrees in zip(edges, share_degrees(task, boundary, edges), strict=True):
        rows, n = normalised_rows(task, own, degrees), len(own.nodes)
        diagonal = sp.diags_array((1 / (degrees[n:] + 1)).astype(np.float32))
        found.append((rows, sp.csr_matrix(sp.hstack([rows[:, n:].T, diagonal]))))
    return found


def _view(
    part: ClientData, own: CrossEdges, known: tuple[sp.csr_matrix, sp.csr_matrix], hops: int
) -> tuple[Graph, sp.csr_matrix]:
    """Graph that a client aggregates hidden units over: its subgraph, with two hops its nodes'
    neighbours elsewhere behind it.

    Returns:
        The graph, and what it knows of the global D̂^(−1/2) (A + I) D̂^(−1/2); with one hop that of
        the subgraph itself.
    """
    graph, _ = part
    if hops == 1:
        return graph, normalised_adjacency(graph)
    joined = sp.bmat([[graph.adjacency, own.links], [own.links.T, None]], "csr", np.float32)
    return graph.extended(joined), sp.csr_matrix(sp.vstack(known))


def exchange(
    task: Task,
    boundary: Boundary,
    edges: Sequence[CrossEdges],
    known: Sequence[tuple[sp.csr_matrix, sp.csr_matrix]],
    hops: int,
    noise: float,
) -> list[Tensor]:
    """Rows of Ŝ of each client's nodes, and with two hops of their neighbours elsewhere, shape (n +
    h, F), after one exchange.

    ``known`` is that of :func:`known_rows`.  ``noise`` is the standard deviation of what is added
    to parts that move by as much as a node's features do.
    """
    total = torch.zeros(task.graph.num_nodes, task.graph.num_features)
    rows, added = [], []
    for i, (own, (inner, outer)) in enumerate(zip(edges, known, strict=True)):
        features, n = task.graph.features[own.nodes], len(own.nodes)
        told = _told(own, hops)
        # Of Ŝ's rows for the nodes that it tells of, the part that its own nodes are.
        sent = sp.vstack([outer[:, :n], inner[own.endpoints if hops == 2 else [], :n]], "csr")
        rows.append(_dense(inner[:, :n] @ features))
        sums = _dense(sent @ features)
        added.append(torch.zeros_like(sums))
        if len(told):
            if noise:
                moved = noise * float(norm(sent, axis=0).max())
                added[i] = moved * torch.randn(
                    sums.shape, generator=task.torch_generator(f"client{i}", "sums")
                )
            total[told] += boundary.send(i, "up", SUMS, {"sums": sums + added[i]})["sums"]
    for i, own in enumerate(edges):
        if not len(own.outside):
            continue
        asked = {
            "own": total[own.nodes[own.endpoints]],
            **({"elsewhere": total[own.outside]} if hops == 2 else {}),
        }
        received = boundary.send(i, "down", SUMS, asked)
        if hops == 1:
            rows[i][own.endpoints] = received["own"] + rows[i][own.endpoints]
        else:
            # The server has added the client's own part too, whose noise the client takes off.
            elsewhere, mine = added[i].tensor_split([len(own.outside)])
            rows[i][own.endpoints] = received["own"] - mine
            rows[i] = torch.cat([rows[i], received["elsewhere"] - elsewhere])
    return rows


def _told(own: CrossEdges, hops: int) -> np.ndarray:
    """The nodes whose rows a client sends its part of: neighbours elsewhere, and with two hops its
    own nodes that have any.
    """
    return np.concatenate([own.outside, own.nodes[own.endpoints] if hops == 2 else own.nodes[:0]])


def _dense(matrix: sp.csr_matrix) -> Tensor:
    return torch.from_numpy(matrix.toarray().astype(np.float32))


def _messages(task: Task, edges: Sequence[CrossEdges], hops: int) -> dict[str, ByClient]:
    width = task.graph.num_features
    sent = [{"sums": (len(_told(own, hops)), width)} for own in edges]
    returned = [
        {
            "own": (len(own.endpoints), width),
            **({"elsewhere": (len(own.outside), width)} if hops == 2 else {}),
        }
        for own in edges
    ]
    return {**share_kinds(edges, DEGREES, 1), SUMS: ByClient(sent, returned)}
