"""A client's mended subgraph: its own nodes 0 … n − 1, then the generated ones, each a neighbour of
the node it was made for.

Generated features are dense: on MSAcademic some 20,000 rows of 6,805 numbers.  They stay one block
in half precision, and a mini-batch multiplies only the rows that it has drawn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.halo import within
from feddep.graph.split import Split
from feddep.methods.method import StepResult
from feddep.nn.encoder_names import encoder_class
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import ConstantMatrix, SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.training.task import Task

_ROWS = 512  # of generated features that are multiplied at once


def attach(graph: Graph, owner: np.ndarray) -> Graph:
    """A graph with g more nodes, the k-th of which has one neighbour, ``owner[k]``.

    The new nodes have no stored features, since generated ones are dense and are kept elsewhere
    (:class:`StackedFeatures`).
    """
    new = len(owner)
    links = sp.csr_matrix(
        (np.ones(new, dtype=np.float32), (owner, np.arange(new))), shape=(graph.num_nodes, new)
    )
    return graph.extended(sp.bmat([[graph.adjacency, links], [links.T, None]], format="csr"))


@dataclass(frozen=True, eq=False)
class StackedFeatures:
    """The features of nodes of a mended subgraph, sparse for the client's own and dense for
    generated ones, as one matrix: ``real``, shape (k, F), above the r rows ``chosen``, int64, of
    ``generated``, shape (g, F), of any precision.

    ``X @ W`` is a dense tensor of shape (k + r, outputs), differentiable in W and in the generated
    features.
    """

    real: SparseMatrix
    generated: Tensor
    chosen: Tensor

    def __matmul__(self, dense: Tensor) -> Tensor:
        below = [self.generated[rows].to(dense.dtype) @ dense for rows in self.chosen.split(_ROWS)]
        return torch.cat([self.real @ dense, *below])


class ReceptiveField:
    """The part of a mended subgraph that the logits of some nodes depend on, with full
    neighbourhoods.

    A GraphSAGE of K layers reads the features of the nodes within K hops, and wants the hidden
    units of those within K − 1. Generated nodes are leaves: most of them are in the first set only,
    and are multiplied by half of the first layer's weights.
    """

    def __init__(
        self, mended: Graph, real: int, nodes: np.ndarray, layers: int, device: str = "cpu"
    ) -> None:
        """Find what a GraphSAGE of so many ``layers`` reads for ``nodes``; the first ``real`` of
        ``mended`` are the client's.
        """
        read, hidden = within(mended, nodes, layers), within(mended, nodes, layers - 1)
        mean = mean_adjacency(mended)[hidden]
        self._to_hidden = SparseMatrix.from_scipy(mean[:, read], device)
        # Whole in the rows that a later layer reads.
        self._among_hidden = SparseMatrix.from_scipy(mean[:, hidden], device)
        self._read, self._hidden = (
            self._parts(mended, real, each, device) for each in (read, hidden)
        )
        self._rows = torch.from_numpy(np.searchsorted(hidden, nodes)).to(device)

    @staticmethod
    def _parts(
        mended: Graph, real: int, nodes: np.ndarray, device: str
    ) -> tuple[SparseMatrix, Tensor]:
        """Features of those of ``nodes`` that are real, and numbers of those that are generated."""
        first = np.searchsorted(nodes, real)
        features = SparseMatrix.from_scipy(mended.features[nodes[:first]], device)
        return features, torch.from_numpy(nodes[first:] - real).to(device)

    def logits(self, model: GraphSAGE, generated: Tensor) -> Tensor:
        """Logits of the nodes, shape (k, C), from the features of all generated nodes, of any
        precision, shape (g, F).
        """
        (read, read_new), (own, own_new) = self._read, self._hidden
        first, *others = model.convolutions
        of_own, of_neighbours = first.weight.split(first.inputs)
        neighbours = self._to_hidden @ (StackedFeatures(read, generated, read_new) @ of_neighbours)
        hidden = StackedFeatures(own, generated, own_new) @ of_own + neighbours + first.bias
        for convolution in others:
            hidden = convolution.full(hidden.relu(), self._among_hidden)
        return hidden[self._rows]


class MendedFeatureTable(FeatureTable):
    """Looks up [x_v ‖ mean x_u] as :class:`feddep.nn.feature_table.FeatureTable` does, for real and
    generated nodes alike.
    """

    def __init__(self, mended: Graph, generated: Tensor) -> None:
        """Prepare the lookup in a graph that :func:`attach` has made; rows are wanted where
        generated features are, (g, F).
        """
        super().__init__(mended.features, generated.device, mended.degrees)
        self._first = mended.num_nodes - len(generated)
        self._generated = generated

    def own(self, nodes: np.ndarray) -> "JoinedRows":
        """As :meth:`feddep.nn.feature_table.FeatureTable.own`."""
        rows = np.flatnonzero(nodes >= self._first)
        return JoinedRows(super().own(nodes), [self._dense(rows, nodes[rows], 1.0, len(nodes))])

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> "JoinedRows":
        """As :meth:`feddep.nn.feature_table.FeatureTable.joined`."""
        generated = np.flatnonzero(own >= self._first)
        rows, columns = np.nonzero(neighbours >= self._first)
        halves = [
            self._dense(generated, own[generated], 1.0, len(own)),
            self._dense(rows, neighbours[rows, columns], 1 / neighbours.shape[1], len(own)),
        ]
        return JoinedRows(super().joined(own, neighbours), halves)

    def _dense(
        self, rows: np.ndarray, nodes: np.ndarray, share: float, size: int
    ) -> tuple[SparseMatrix, Tensor]:
        """The matrix that sums ``share`` times the features of generated ``nodes`` into ``rows``,
        ascending; and the features.
        """
        unique, columns = np.unique(nodes, return_inverse=True)
        starts = np.searchsorted(rows, np.arange(size + 1)).astype(np.int32)
        weights = np.full(len(rows), share, dtype=np.float32)
        sums = SparseMatrix(
            starts, columns.astype(np.int32), weights, (size, len(unique)), self._device
        )
        chosen = torch.from_numpy(unique.astype(np.int64) - self._first).to(self._generated.device)
        return sums, self._generated[chosen].float()


@dataclass(frozen=True, eq=False)
class JoinedRows(ConstantMatrix):
    """A sparse matrix of one or two parts, shape (R, parts · F), with sums of dense rows added to
    each.

    A part is a matrix of shape (R, k) and k dense rows, shape (k, F), whose product is added.
    """

    sparse: ConstantMatrix
    parts: list[tuple[SparseMatrix, Tensor]]

    def multiply(self, weight: Tensor) -> Tensor:
        product = self.sparse.multiply(weight)
        for (sums, dense), of_part in zip(self.parts, weight.chunk(len(self.parts)), strict=True):
            if len(dense):
                product += sums.multiply(dense @ of_part)
        return product

    def multiply_transposed(self, gradient: Tensor) -> Tensor:
        product = self.sparse.multiply_transposed(gradient)
        for (sums, dense), of_part in zip(self.parts, product.chunk(len(self.parts)), strict=True):
            if len(dense):
                of_part.addmm_(dense.T, sums.multiply_transposed(gradient))
        return product


class MendedSubgraph(Evaluator):
    """G'_i, the client's subgraph with the neighbours that were generated for it: what to train on,
    and evaluation of its nodes.

    Attributes:
        graph: n + g nodes, of which the generated ones come last, without stored features.
        table: inputs of these nodes.
    """

    def __init__(
        self,
        graph: Graph,
        owner: Tensor,
        features: Tensor,
        aggregation: Callable[[Graph], sp.csr_matrix] = mean_adjacency,
    ) -> None:
        """Mend the client's subgraph G_i, n nodes.

        ``owner`` is the node that each generated neighbour is for, shape (g,), ``features`` are
        theirs, of any precision, shape (g, F), on the device where all is wanted; ``aggregation``
        is as for :class:`feddep.training.evaluator.Evaluator`.
        """
        device = str(features.device)
        super().__init__(attach(graph, owner.cpu().numpy()), device, aggregation)
        real = SparseMatrix.from_scipy(graph.features, device)
        self.features = StackedFeatures(real, features, torch.arange(len(features), device=device))  # type: ignore[assignment]
        self.table = MendedFeatureTable(self.graph, features)
        self._real = graph.num_nodes
        self._generated = features
        self._nodes: np.ndarray | None = None

    @torch.no_grad()
    def logits_of(self, model: Any, nodes: np.ndarray) -> Tensor:
        """Logits of k nodes, shape (k, C).  They are the same ones round after round, so what they
        depend on is kept.
        """
        if not isinstance(model, GraphSAGE):
            return super().logits_of(model, nodes)
        if self._nodes is None or not np.array_equal(nodes, self._nodes):
            self._nodes = nodes
            self._field = ReceptiveField(
                self.graph,
                self._real,
                nodes,
                len(model.convolutions),
                str(self._generated.device),
            )
        return self._field.logits(model, self._generated)


def mended_subgraph(task: Task, graph: Graph, owner: Tensor, features: Tensor) -> MendedSubgraph:
    """A :class:`MendedSubgraph` for the task's encoder and device."""
    return MendedSubgraph(
        graph, owner, features.to(task.device), encoder_class(task.setting.encoder).aggregation
    )


def mended_subgraphs(task: Task, generator: StepResult) -> Iterator[tuple[MendedSubgraph, Split]]:
    """Each client's mended subgraph and its split, from what the step ``generator`` has made."""
    generated = (generator.of_clients(name) for name in ("owner", "features"))
    for (graph, split), owner, features in zip(task.subgraphs(), *generated, strict=True):
        yield mended_subgraph(task, graph, owner, features), split
