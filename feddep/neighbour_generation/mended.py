"""A client's mended subgraph as a classifier reads it: sampled by a learner, and whole by an evaluator.

Generated features are dense: on MSAcademic some 20,000 rows of 6,805 numbers.  They stay one block in half precision, and a
mini-batch multiplies only the rows that it has drawn.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.evaluation import Evaluator
from feddep.graph import Graph
from feddep.neighbour_generation.subgraph import Surroundings, attach
from feddep.nn.features import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.steps import Made


class MendedSubgraph:
    """G'_i: the client's subgraph with the neighbours that were generated for it."""

    def __init__(self, graph: Graph, owner: Tensor, features: Tensor) -> None:
        """Mend a subgraph.

        Args:
            graph: the client's subgraph G_i, n nodes.
            owner: the node that each generated neighbour is for, shape (g,).
            features: their features, of any precision, shape (g, F); their device is where all is wanted.
        """
        self.real = graph
        self.graph = attach(graph, owner.cpu().numpy())
        """n + g nodes, of which the generated ones come last, without stored features."""
        self.features = features

    @classmethod
    def of_client(cls, number: int, graph: Graph, made: Made, device: str) -> "MendedSubgraph":
        """Client ``number``'s, from what the stage ``generator`` has made."""
        owner, features = (made.tensors[f"client{number}.{name}"] for name in ("owner", "features"))
        return cls(graph, owner, features.to(device))


class MendedFeatureTable:
    """Looks up [x_v ‖ mean x_u] as :class:`feddep.nn.features.FeatureTable` does, for real and generated nodes alike."""

    def __init__(self, mended: MendedSubgraph, fanout: int, device: str = "cpu") -> None:
        """Prepare the lookup.

        Args:
            mended: the subgraph that neighbours are drawn from.
            fanout: number d of neighbours that are drawn for each node.
            device: where the rows are wanted.
        """
        self._real = FeatureTable(mended.graph.features, fanout, device)  # in which generated nodes have no features
        self._first = mended.real.num_nodes
        self._features = mended.features
        self._fanout = fanout
        self._device = device

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> "JoinedRows":
        """[x_v ‖ mean x_u], shape (R, 2F); the arguments are those of :meth:`feddep.nn.features.FeatureTable.joined`."""
        places = np.flatnonzero(own >= self._first)
        rows, columns = np.nonzero(neighbours >= self._first)
        halves = [
            self._dense(places, own[places], 1.0, len(own)),
            self._dense(rows, neighbours[rows, columns], 1 / self._fanout, len(own)),
        ]
        return JoinedRows(self._real.joined(own, neighbours), halves)

    def _dense(self, rows: np.ndarray, nodes: np.ndarray, share: float, size: int) -> tuple[SparseMatrix, Tensor]:
        """The generated nodes that occur in one half, each once, and the matrix that sums their features into the rows.

        Args:
            rows: rows in which generated nodes occur, ascending, shape (k,).
            nodes: the generated nodes, shape (k,).
            share: what each is multiplied by.
            size: number of rows.
        """
        unique, columns = np.unique(nodes, return_inverse=True)
        starts = np.searchsorted(rows, np.arange(size + 1)).astype(np.int32)
        weights = np.full(len(rows), share, dtype=np.float32)
        sums = SparseMatrix(starts, columns.astype(np.int32), weights, (size, len(unique)), self._device)
        chosen = torch.from_numpy(unique.astype(np.int64) - self._first).to(self._features.device)
        return sums, self._features[chosen].float()


class JoinedRows:
    """Rows of two halves, each of which is a sparse part and sums of dense rows; ``rows @ W`` is differentiable in W."""

    def __init__(self, sparse: SparseMatrix, halves: list[tuple[SparseMatrix, Tensor]]) -> None:
        """Put the parts together.

        Args:
            sparse: both halves' sparse part, shape (R, 2F).
            halves: for each half a matrix of shape (R, k) and k dense rows, shape (k, F), whose product is its other part.
        """
        self._sparse = sparse
        self._halves = halves

    def multiply(self, weight: Tensor) -> Tensor:
        """Product with W, shape (2F, outputs), without a gradient; shape (R, outputs)."""
        product = self._sparse.multiply(weight)
        for (sums, dense), of_half in zip(self._halves, weight.chunk(2), strict=True):
            if len(dense):
                product += sums.multiply(dense @ of_half)
        return product

    def multiply_transposed(self, gradient: Tensor) -> Tensor:
        """Product of the transpose with G, shape (R, outputs), all summed up in one place; shape (2F, outputs)."""
        product = self._sparse.transpose().multiply(gradient)
        for (sums, dense), of_half in zip(self._halves, product.chunk(2), strict=True):
            if len(dense):
                of_half.addmm_(dense.T, sums.transpose().multiply(gradient))
        return product

    def __matmul__(self, weight: Tensor) -> Tensor:
        """Product with W, shape (2F, outputs); gradients flow to W."""
        return _Product.apply(self, weight)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: JoinedRows, weight: Tensor) -> Tensor:
        ctx.rows = rows
        return rows.multiply(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.rows.multiply_transposed(gradient)


class MendedSubgraphEvaluator(Evaluator):
    """Applies a model to nodes of a mended subgraph."""

    def __init__(self, mended: MendedSubgraph, device: str = "cpu") -> None:
        """Prepare the inputs.

        Args:
            mended: the mended subgraph.
            device: where tensors live.
        """
        super().__init__(mended.graph, device)
        self._mended = mended
        self._device = device
        self._nodes: np.ndarray | None = None

    def logits(self, model: GraphSAGE) -> Tensor:
        """Logits of all nodes, generated ones included, shape (n + g, C)."""
        return self.logits_of(model, np.arange(self._mended.graph.num_nodes))

    def correct(self, model: GraphSAGE, nodes: np.ndarray) -> int:
        """How many of ``nodes`` get their true class."""
        labels = self._labels[torch.from_numpy(nodes).to(self._labels.device)]
        return int((self.logits_of(model, nodes).argmax(dim=1) == labels).sum())

    @torch.no_grad()
    def logits_of(self, model: GraphSAGE, nodes: np.ndarray) -> Tensor:
        """Logits of k nodes, shape (k, C).  They are the same ones round after round, so what they depend on is kept."""
        if self._nodes is None or not np.array_equal(nodes, self._nodes):
            real = self._mended.real.num_nodes
            self._nodes = nodes
            self._around = Surroundings(self._mended.graph, real, nodes, len(model.convolutions), self._device)
        return self._around.logits(model, self._mended.features)
