"""FedGCN: clients tell each other once what their nodes' neighbours sum up to, and then train a GCN by FedAvg (Yao et al., 2023).

Source: "FedGCN: Convergence-communication tradeoffs in federated training of graph convolutional networks" (NeurIPS 2023).  With
Ŝ = D̂^(−1/2) (A + I) D̂^(−1/2) X of the global graph, a GCN of L layers is

    H¹ = σ(Ŝ W¹ + b¹),   H^k = σ(D̂^(−1/2) (A + I) D̂^(−1/2) H^{k−1} W^k + b^k),   k = 2 … L

Before training, each client sends the part of each row of Ŝ that comes from its own nodes, for every node elsewhere that is
joined to one of them; the server adds up the parts and returns the rows.  With one hop a client gets the rows of its own nodes,
and its later layers aggregate over its own subgraph.  With two it also gets those of its nodes' neighbours elsewhere, and with
L = 2 its nodes' logits are those of the global graph.

In the paper the parts are encrypted, so that the server reads none.  Here no cipher is run: parts are counted as what they are.
A row to which a single node contributes tells that node's features, up to a factor, whatever is encrypted.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, Schema, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.graph.graph import Graph, normalised_adjacency
from feddep.methods.fedgcn import FedGCNParameters
from feddep.methods.shared.cross_edges import CrossEdges, cross_edges
from feddep.nn.encoders import GCN, NodeLayer
from feddep.nn.feature_table import FeatureTable
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner
from feddep.training.task import RunResult, Task


class SummedGCN(GCN):
    """A GCN whose first layer reads rows that are aggregated already."""

    def __init__(self, features: int, hidden: int, classes: int, layers: int, dropout: float) -> None:
        super().__init__(features, hidden, classes, layers, dropout)
        self.layers[0] = self.layer0 = NodeLayer(features, self.output_widths[0])


def run(task: Task, parameters: FedGCNParameters, steps: Any = None) -> RunResult:
    """FedGCN from top to bottom."""
    edges, device = cross_edges(task), task.device
    model = new_model(task)
    boundary = Boundary({"model": schema_of(model), **REPORTS, **_messages(task, edges, parameters.hops)}, task.observers)
    views = [_view(task, own, parameters.hops) for own in edges]
    sums = exchange(task, boundary, edges, parameters.hops)
    clients = []
    for i, ((graph, adjacency), (_, split), rows) in enumerate(zip(views, task.subgraphs(), sums, strict=True)):
        summed = Graph(graph.indptr, graph.indices, sp.csr_matrix(rows.numpy()), graph.labels, graph.num_classes)
        table = FeatureTable(summed.features, device, graph.degrees)
        learner = Learner(summed, split.train, task.setting, task.seed, f"client{i}", device, table)
        evaluator = Evaluator(summed, device, _always(adjacency))
        clients.append(Client(i, new_model(task), learner, evaluator, split, task.setting, boundary))
    everything = task.graph
    aggregated = sp.csr_matrix(normalised_adjacency(everything) @ everything.features)
    whole = Graph(everything.indptr, everything.indices, aggregated, everything.labels, everything.num_classes)
    tested = Evaluator(whole, device, normalised_adjacency)
    return train_federated(task, model, boundary, clients, lambda trained: task.test(trained, tested))


def _always(matrix: sp.csr_matrix) -> Callable[[Graph], sp.csr_matrix]:
    """An aggregation that is the same for every graph."""
    return lambda graph: matrix


def new_model(task: Task) -> SummedGCN:
    """The classifier with the run's initial weights."""
    model = SummedGCN(*task.model_sizes)
    model.reset_parameters(task.torch_generator("weights"))
    return model.to(task.device)


def _view(task: Task, own: CrossEdges, hops: int) -> tuple[Graph, sp.csr_matrix]:
    """What a client aggregates hidden units over: its subgraph, with two hops its nodes' neighbours elsewhere behind it.

    Returns:
        The graph, and the rows and columns of the global D̂^(−1/2) (A + I) D̂^(−1/2); with one hop those of the subgraph itself.
    """
    if hops == 1:
        graph = task.graph.subgraph(own.nodes)
        return graph, normalised_adjacency(graph)
    nodes = np.concatenate([own.nodes, own.outside])
    return task.graph.subgraph(nodes), sp.csr_matrix(normalised_adjacency(task.graph)[nodes][:, nodes])


def exchange(task: Task, boundary: Boundary, edges: Sequence[CrossEdges], hops: int) -> list[Tensor]:
    """Rows of Ŝ of each client's nodes, and with two hops of their neighbours elsewhere, shape (n + h, F), after one exchange."""
    matrix, features = normalised_adjacency(task.graph), task.graph.features
    total = torch.zeros(task.graph.num_nodes, task.graph.num_features)
    rows = []
    for i, own in enumerate(edges):
        part = matrix[:, own.nodes] @ features[own.nodes]
        rows.append(_dense(part[own.nodes]))
        if len(told := _told(own, hops)):
            total[told] += boundary.send(i, "up", f"sums from client {i}", {"sums": _dense(part[told])})["sums"]
    for i, own in enumerate(edges):
        if not len(own.outside):
            continue
        sent = {"own": total[own.nodes[own.endpoints]], **({"elsewhere": total[own.outside]} if hops == 2 else {})}
        received = boundary.send(i, "down", f"sums for client {i}", sent)
        # With two hops the server has added the client's own part as well.
        rows[i][own.endpoints] = received["own"] + (rows[i][own.endpoints] if hops == 1 else 0)
        rows[i] = torch.cat([rows[i], *([received["elsewhere"]] if hops == 2 else [])])
    return rows


def _told(own: CrossEdges, hops: int) -> np.ndarray:
    """The nodes whose rows a client sends its part of: neighbours elsewhere, and with two hops its own nodes that have any."""
    return np.concatenate([own.outside, own.nodes[own.endpoints] if hops == 2 else own.nodes[:0]])


def _dense(matrix: sp.csr_matrix) -> Tensor:
    return torch.from_numpy(matrix.toarray().astype(np.float32))


def _messages(task: Task, edges: Sequence[CrossEdges], hops: int) -> dict[str, Schema]:
    width = task.graph.num_features
    kinds: dict[str, Schema] = {}
    for i, own in enumerate(edges):
        elsewhere = {"elsewhere": (len(own.outside), width)} if hops == 2 else {}
        kinds[f"sums from client {i}"] = {"sums": (len(_told(own, hops)), width)}
        kinds[f"sums for client {i}"] = {"own": (len(own.endpoints), width), **elsewhere}
    return kinds
