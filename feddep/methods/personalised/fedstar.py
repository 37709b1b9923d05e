"""FedStar: clients share an encoder of structure and keep one of features (Tan et al., AAAI 2023).

A node's structure features s_v, computed once from the client's own subgraph, are the probabilities
that random walks of 1 … 16 steps return to it, and a one-hot vector of its degree, from 1 to 16 or
more.  With x⁰ = X W + b, s⁰ = s W' + b' and L layers

    x^{l+1} = dropout(ReLU(GIN([x^l, s^l]))),    s^{l+1} = tanh(GCN(s^l)),

a network of two layers classifies [x^L, s^L] W'' + b''.  GIN is an MLP of two layers of the sum
over a node and its neighbours.  What computes s^L is averaged, all else stays with the client.

The paper classifies graphs, whose nodes are summed up before the last network; here each node is
classified.  The encoder is the method's own, whatever that of the setting, whose layers, widths and
dropout it has.  The control (:func:`run_local`) is the same classifier with nothing shared: what
structure features alone are worth.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.graph import Graph, normalised_adjacency
from feddep.methods.basic import fedavg
from feddep.nn.dropout import drop
from feddep.nn.encoders import GCNLayer
from feddep.nn.linear import Linear
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import RunResult, Task

STEPS = DEGREES = 16
"""Steps of the longest walk, and the largest degree that has a place of its own (code)."""
_BLOCK = 256
"""Nodes whose walks are held at once."""


def return_probabilities(graph: Graph) -> np.ndarray:
    """Probability that a random walk of k = 1 … 16 steps is where it began, shape (n, 16)."""
    walk = sp.diags_array(1 / np.maximum(graph.degrees, 1)) @ graph.adjacency
    found = np.empty((graph.num_nodes, STEPS), dtype=np.float32)
    for start in range(0, graph.num_nodes, _BLOCK):
        nodes = np.arange(start, min(start + _BLOCK, graph.num_nodes))
        reached = np.zeros((graph.num_nodes, len(nodes)))
        reached[nodes, nodes - start] = 1
        for step in range(STEPS):
            reached = walk.T @ reached
            found[nodes, step] = reached[nodes, nodes - start]
    return found


def with_structure(graph: Graph) -> Graph:
    """The graph with s_v behind the features of each node."""
    degrees = np.eye(DEGREES, dtype=np.float32)[np.clip(graph.degrees, 1, DEGREES) - 1]
    features = sp.hstack([graph.features, return_probabilities(graph), degrees], format="csr")
    return dataclasses.replace(graph, features=features)


class StructureClassifier(nn.Module):
    """The classifier; its part ``structure`` is shared."""

    aggregation = staticmethod(normalised_adjacency)

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up L = ``layers`` layers; the arguments are those of
        :class:`feddep.nn.sage.GraphSAGE`.
        """
        super().__init__()
        self.dropout = dropout
        convolutions = [GCNLayer(hidden, hidden) for _ in range(layers)]
        self.structure = nn.ModuleList([Linear(STEPS + DEGREES, hidden), *convolutions])
        self.first = Linear(features, hidden)
        self.isomorphisms = nn.ModuleList(
            nn.Sequential(Linear(2 * hidden, hidden), nn.ReLU(), Linear(hidden, hidden))
            for _ in range(layers)
        )
        self.joined, self.inner = Linear(2 * hidden, hidden), Linear(hidden, hidden)
        self.last = Linear(hidden, classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        for part in self.modules():
            if isinstance(part, Linear | GCNLayer):
                part.reset_parameters(generator)

    def full(
        self, x: Any, adjacency: SparseMatrix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of all nodes, shape (n, C), from [X, s], shape (n, F + 32); a generator draws
        dropout masks.
        """
        structure_layers: Any = self.structure
        embed, *convolutions = structure_layers
        weights = torch.block_diag(self.first.weight.T, embed.weight.T)
        hidden, structure = (x @ weights).chunk(2, dim=1)
        hidden, structure = hidden + self.first.bias, structure + embed.bias
        rows, _ = adjacency.entries()
        root = rows.bincount().sqrt().unsqueeze(1)  # Â is A + I between two of 1 / root
        for convolution, isomorphism in zip(convolutions, self.isomorphisms, strict=True):
            sums = root * (adjacency @ (root * torch.cat([hidden, structure], dim=1)))
            hidden = drop(isomorphism(sums).relu(), self.dropout, generator)
            structure = convolution.full(structure, adjacency).tanh()
        inner = self.inner(self.joined(torch.cat([hidden, structure], dim=1))).relu()
        return self.last(drop(inner, self.dropout, generator))


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg of the encoder of structure."""
    return _train(task, lambda name: name.startswith("structure."))


def run_local(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """The same classifiers, of which nothing is shared."""
    return _train(task, lambda name: False)


def _train(task: Task, shared: Callable[[str], bool]) -> RunResult:
    """FedAvg of what is shared; where owners judge, the whole graph's structure is not wanted."""
    whole = task.graph if task.evaluation == "owners" else with_structure(task.graph)
    return fedavg.train_on(
        dataclasses.replace(task, graph=whole),
        [(with_structure(graph), split) for graph, split in task.subgraphs()],
        new_model=lambda: task.drawn(StructureClassifier(*task.model_sizes)),
        shared=shared,
    )
