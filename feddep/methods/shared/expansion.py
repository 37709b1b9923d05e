"""A subgraph expanded by stand-ins for its neighbours at other clients, of whom only embeddings are
known.

Convolution k = 0 … L − 1 reads the inputs x^k_u of a node's neighbours u.  For a neighbour at
another client,

* x^k_u with k ≥ 1, the output of the convolution before, after ReLU, is received;
* x⁰_u are its features, which are never sent.  What is received instead, if anything, is W⁰ x_u,
  their image under the first convolution's weight for neighbours: all that this convolution makes
  of them.

If everything is received, and was computed with the weights in use, the client's nodes get exactly
the embeddings that they have on the global graph.  What was received is constant: no gradient flows
through it.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.sampling import SampledTrees
from feddep.methods.shared.cross_edges import CrossEdges, expand, normalised_rows
from feddep.nn.dropout import drop
from feddep.nn.feature_table import FeatureTable
from feddep.nn.layered import LayeredClassifier
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.training.task import Task


def level_widths(model: LayeredClassifier, levels: Sequence[int]) -> dict[int, int]:
    """Width of what is received of a node for each of the given convolutions."""
    return {k: model.output_widths[max(k - 1, 0)] for k in levels}


def columns_of(widths: dict[int, int]) -> dict[int, slice]:
    """Where what is received for each convolution stands in a row of an :class:`ExpandedTable`,
    behind a flag.
    """
    ends = itertools.accumulate(widths.values(), initial=1)
    return {
        k: slice(start, end)
        for k, (start, end) in zip(widths, itertools.pairwise(ends), strict=True)
    }


class ExpandedTable(FeatureTable):
    """Looks up the inputs of sampled nodes: features of the client's own, received embeddings of
    stand-ins.

    In the mean of features, stand-ins count as neighbours of x_u = 0.
    """

    def __init__(self, features: sp.csr_matrix, widths: dict[int, int], device: str) -> None:
        """Prepare the lookup; ``features`` has empty rows for the stand-ins, ``widths`` are those
        of what is received.
        """
        super().__init__(features, device)
        self._columns = columns_of(widths)
        # PAD is −1 and so finds the last row, which stays zero.
        self._rows = torch.zeros(features.shape[0] + 1, 1 + sum(widths.values()), device=device)

    def receive(self, level: int, embeddings: Tensor) -> None:
        """Take over the embeddings of all stand-ins for a convolution, shape (h, ·)."""
        stand_ins = self._rows[len(self._rows) - 1 - len(embeddings) : -1]
        stand_ins[:, 0] = 1
        stand_ins[:, self._columns[level]] = embeddings

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        """Inputs of each node: 1 and then the embeddings of a stand-in, zeros for any other
        node; shape (…, ·).
        """
        return self._rows[torch.from_numpy(nodes).to(self._rows.device, torch.int64)]


class ExpandedSAGE(GraphSAGE):
    """A GraphSAGE that reads an :class:`ExpandedTable`."""

    def __init__(self, *sizes: Any, levels: Sequence[int]) -> None:
        """Set up the layers, as :class:`GraphSAGE`; stand-ins take part in the convolutions
        ``levels``.
        """
        super().__init__(*sizes)
        self._columns = columns_of(level_widths(self, levels))

    def _complete_outputs(
        self, k: int, hidden: Tensor, trees: SampledTrees, table: ExpandedTable
    ) -> Tensor:
        if k or k not in self._columns:
            return hidden
        _, drawn = trees.split(trees.nodes)
        return hidden + table.embeddings(drawn)[..., self._columns[k]].flatten(0, 1).mean(dim=1)

    def _complete_inputs(
        self, k: int, hidden: Tensor, trees: SampledTrees, table: ExpandedTable
    ) -> Tensor:
        if k not in self._columns:
            return hidden
        known = table.embeddings(trees.nodes)
        return torch.where(known[..., :1] > 0, known[..., self._columns[k]], hidden)


def new_expanded_model(task: Task, levels: Sequence[int]) -> Any:
    """A classifier for an :class:`ExpandedSubgraph`, whose weights are to be loaded; for
    mini-batches an :class:`ExpandedSAGE`.
    """
    if task.setting.full_batch:
        return task.new_model()
    return ExpandedSAGE(*task.model_sizes, levels=levels).to(task.device)


class ExpandedSubgraph(Evaluator):
    """A client's subgraph with its stand-ins: what to train on, and evaluation with full
    neighbourhoods, stand-ins included.

    Attributes:
        wide: the graph to draw neighbours from where stand-ins take part; nodes 0 … n − 1 are the
            client's.
        narrow: the same nodes, stand-ins without any neighbour, to draw from where they do not.
        table: inputs of the nodes of both.
    """

    def __init__(
        self,
        task: Task,
        graph: Graph,
        edges: CrossEdges,
        levels: Sequence[int],
        degrees: np.ndarray | None = None,
    ) -> None:
        """Prepare a client with n nodes and edges to h nodes elsewhere; stand-ins take part in the
        convolutions ``levels``.

        A GCN aggregates by the ``degrees`` of all these nodes on the global graph, shape (n + h,);
        without them it is the mean of a GraphSAGE.
        """
        model: Any = task.new_model()
        device = task.device
        super().__init__(graph, device, model.aggregation)
        self.wide = expand(graph, edges.links)
        self.narrow = expand(graph, sp.csr_matrix(edges.links.shape, dtype=np.float32))
        self.table = ExpandedTable(self.wide.features, level_widths(model, levels), device)
        self._received: dict[int, Tensor] = {}
        self._endpoints = torch.from_numpy(edges.endpoints).to(device)
        # Of the matrix that all neighbours are aggregated with the client's rows, cut into its own
        # nodes and the stand-ins.
        rows = (
            mean_adjacency(self.wide)[: graph.num_nodes]
            if degrees is None
            else normalised_rows(task, edges, degrees)
        )
        self._own = SparseMatrix.from_scipy(rows[:, : graph.num_nodes], device)
        self._outside = SparseMatrix.from_scipy(rows[:, graph.num_nodes :], device)

    def apply(self, model: Any, generator: torch.Generator | None = None) -> Tensor:
        return self._outputs(model, len(model.layers), generator)

    @torch.no_grad()
    def outputs(self, model: LayeredClassifier, layers: int) -> Tensor:
        """Outputs of the first ``layers`` convolutions at the client's nodes, before the last ReLU,
        shape (n, ·).
        """
        return self._outputs(model, layers)

    def _outputs(
        self, model: LayeredClassifier, layers: int, generator: torch.Generator | None = None
    ) -> Tensor:
        x: Any = self.features
        for k, convolution in enumerate(model.layers[:layers]):
            known = self._received.get(k)
            if k:
                x = drop(x.relu(), model.dropout, generator)
                known = None if known is None else drop(known, model.dropout, generator)
            first, *others = (
                self._neighbours(k, x @ weight, known, weight) if aggregated else x @ weight
                for weight, (_, aggregated) in zip(convolution.maps, convolution.terms, strict=True)
            )
            x = sum(others, first) + convolution.bias
        return x

    def publish(self, model: LayeredClassifier, level: int) -> Tensor:
        """Message to others for a convolution: a row for each of the client's nodes with
        neighbours elsewhere.
        """
        if level == 0:
            return (self.features @ model.layers[0].maps[0].detach())[self._endpoints]
        return self.outputs(model, level)[self._endpoints].relu()

    def receive(self, level: int, embeddings: Tensor) -> None:
        """Take over the embeddings of all stand-ins for a convolution, shape (h, ·)."""
        self._received[level] = embeddings
        self.table.receive(level, embeddings)

    def _neighbours(
        self, k: int, messages: Tensor, received: Tensor | None, weight: Tensor
    ) -> Tensor:
        if received is None:
            return self.adjacency @ messages
        return self._own @ messages + self._outside @ (received if k == 0 else received @ weight)
