"""A subgraph expanded by stand-ins for its neighbours at other clients, of whom only embeddings are known.

Convolution k = 0 … L − 1 reads the inputs x^k_u of a node's neighbours u.  For a neighbour at another client,

* x^k_u with k ≥ 1, the output of the convolution before, after ReLU, is received;
* x⁰_u are its features, which are never sent.  What is received instead, if anything, is W⁰ x_u, their image under the first
  convolution's weight for neighbours: all that this convolution makes of them.

If everything is received, and was computed with the weights in use, the client's nodes get exactly the embeddings that they
have on the global graph.  What was received is constant: no gradient flows through it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.baselines.border import Border, expand
from feddep.baselines.open_sage import OpenSAGE
from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.nn.features import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.problem import Problem


def level_widths(model: GraphSAGE, levels: Sequence[int]) -> dict[int, int]:
    """Width of what is received of a node for each of the given convolutions."""
    return {k: len(model.convolutions[0].bias) if k == 0 else model.convolutions[k].inputs for k in levels}


class ExpandedTable:
    """Looks up the inputs of sampled nodes: features of the client's own, received embeddings of stand-ins."""

    def __init__(self, features: sp.csr_matrix, widths: dict[int, int], device: str) -> None:
        """Prepare the lookup; nothing is received yet, and embeddings are zero.

        Args:
            features: features of the client's nodes, then empty rows for the stand-ins, shape (n + h, F).
            widths: width of what is received for each convolution.
            device: where the rows are wanted.
        """
        ends = np.cumsum([1, *widths.values()])
        self._columns = {k: slice(start, end) for k, start, end in zip(widths, ends[:-1], ends[1:], strict=True)}
        self._rows = torch.zeros(features.shape[0] + 1, ends[-1], device=device)  # NOBODY is −1 and so finds the last row
        self._of_fanout = cache(lambda fanout: FeatureTable(features, fanout, device))

    def receive(self, level: int, embeddings: Tensor) -> None:
        """Take over the embeddings of all stand-ins for a convolution, shape (h, ·)."""
        stand_ins = self._rows[len(self._rows) - 1 - len(embeddings) : -1]
        stand_ins[:, 0] = 1
        stand_ins[:, self._columns[level]] = embeddings

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> SparseMatrix:
        """[x_v ‖ mean x_u], as :meth:`feddep.nn.features.FeatureTable.joined`; stand-ins count as neighbours of x_u = 0."""
        return self._of_fanout(neighbours.shape[1]).joined(own, neighbours)

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        """What is known of the given nodes, one row each: 1 and the embeddings of a stand-in, zeros for any other node."""
        return self._rows[torch.from_numpy(nodes).to(self._rows.device, torch.int64)]


class ExpandedSAGE(OpenSAGE):
    """A GraphSAGE that reads an :class:`ExpandedTable`."""

    def __init__(self, *sizes: Any, levels: Sequence[int]) -> None:
        """Set up the layers.

        Args:
            sizes: the arguments of :class:`feddep.nn.sage.GraphSAGE`.
            levels: the convolutions that stand-ins take part in.
        """
        super().__init__(*sizes)
        self._widths = level_widths(self, levels)

    def _complete_first(self, hidden: Tensor, drawn: np.ndarray, table: ExpandedTable) -> Tensor:
        if 0 not in self._widths:
            return hidden
        _, received = self._look_up(0, drawn, table)
        return hidden + received.mean(dim=1)

    def _complete_inputs(self, k: int, hidden: Tensor, nodes: np.ndarray, table: ExpandedTable) -> Tensor:
        if k not in self._widths:
            return hidden
        stands_in, received = self._look_up(k, nodes, table)
        return torch.where(stands_in > 0, received, hidden)

    def _look_up(self, level: int, nodes: np.ndarray, table: ExpandedTable) -> tuple[Tensor, Tensor]:
        known = table.embeddings(nodes.ravel()).view(*nodes.shape, -1)
        flag, *received = known.split([1, *self._widths.values()], dim=-1)
        return flag, received[list(self._widths).index(level)]


def new_expanded_model(problem: Problem, levels: Sequence[int]) -> ExpandedSAGE:
    """An :class:`ExpandedSAGE` for the run's graph; its weights are to be loaded."""
    graph, setting = problem.graph, problem.setting
    sizes = (graph.num_features, setting.hidden, graph.num_classes, setting.layers, setting.fanout, setting.dropout)
    return ExpandedSAGE(*sizes, levels=levels).to(problem.device)


class ExpandedSubgraph:
    """A client's subgraph with its stand-ins: what to train on, and convolution with full neighbourhoods.

    Attributes:
        wide: the graph to draw neighbours from where stand-ins take part; nodes 0 … n − 1 are the client's.
        narrow: the same nodes, stand-ins without any neighbour, to draw from where they do not.
        table: inputs of the nodes of both.
    """

    def __init__(self, problem: Problem, graph: Graph, border: Border, levels: Sequence[int]) -> None:
        """Prepare a client.

        Args:
            problem: the run.
            graph: the client's subgraph, n nodes.
            border: its edges to h nodes elsewhere.
            levels: the convolutions that stand-ins take part in.
        """
        device = problem.device
        self.wide = expand(graph, border.links)
        self.narrow = expand(graph, sp.csr_matrix(border.links.shape, dtype=np.float32))
        self.table = ExpandedTable(self.wide.features, level_widths(problem.new_model(), levels), device)
        self._levels = frozenset(levels)
        self._received: dict[int, Tensor] = {}
        self._boundary = torch.from_numpy(border.boundary).to(device)
        self._labels = torch.from_numpy(graph.labels).to(device)
        self._features = SparseMatrix.from_scipy(graph.features, device)
        self._mean = SparseMatrix.from_scipy(mean_adjacency(graph), device)
        # Rows of the mean over all neighbours, cut into the client's own nodes and the stand-ins.
        mean = mean_adjacency(self.wide)[: graph.num_nodes]
        self._mean_own = SparseMatrix.from_scipy(mean[:, : graph.num_nodes], device)
        self._mean_outside = SparseMatrix.from_scipy(mean[:, graph.num_nodes :], device)

    @torch.no_grad()
    def outputs(self, model: GraphSAGE, layers: int) -> Tensor:
        """What the first ``layers`` convolutions make of the client's nodes, before the last ReLU, shape (n, ·)."""
        x: Any = self._features
        for k, convolution in enumerate(model.convolutions[:layers]):
            own, weight = convolution.weight.split(convolution.inputs)
            x = x if k == 0 else x.relu()
            x = x @ own + self._neighbours(k, x @ weight, weight) + convolution.bias
        return x

    def publish(self, model: GraphSAGE, level: int) -> Tensor:
        """What others receive for a convolution: a row for each of the client's nodes with neighbours elsewhere."""
        if level == 0:
            first = model.convolutions[0]
            return (self._features @ first.weight.detach()[first.inputs :])[self._boundary]
        return self.outputs(model, level)[self._boundary].relu()

    def receive(self, level: int, embeddings: Tensor) -> None:
        """Take over the embeddings of all stand-ins for a convolution, shape (h, ·)."""
        self._received[level] = embeddings
        self.table.receive(level, embeddings)

    def correct(self, model: GraphSAGE, nodes: np.ndarray) -> int:
        """How many of ``nodes`` get their true class, with all their neighbours."""
        chosen = torch.from_numpy(nodes).to(self._labels.device)
        logits = self.outputs(model, len(model.convolutions))
        return int((logits[chosen].argmax(dim=1) == self._labels[chosen]).sum())

    def _neighbours(self, k: int, messages: Tensor, weight: Tensor) -> Tensor:
        if k not in self._levels:
            return self._mean @ messages
        received = self._received[k]
        return self._mean_own @ messages + self._mean_outside @ (received if k == 0 else received @ weight)
