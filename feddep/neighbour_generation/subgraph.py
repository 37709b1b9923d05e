"""A mended subgraph: the client's nodes 0 … n − 1, then the generated ones, each a neighbour of the node it was made for."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.appended import append_nodes
from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.halo import within
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix

_ROWS = 512
"""So many rows of generated features are multiplied at once."""


def attach(graph: Graph, owner: np.ndarray) -> Graph:
    """A graph with g more nodes, the k-th of which has one neighbour, ``owner[k]``.

    The new nodes have no stored features, since generated ones are dense and are kept elsewhere (:class:`Stacked`).

    Args:
        graph: the client's subgraph, n nodes.
        owner: node that each new one is attached to, shape (g,).
    """
    new = len(owner)
    if not new:
        return append_nodes(graph, graph.adjacency)
    links = sp.csr_matrix((np.ones(new, dtype=np.float32), (owner, np.arange(new))), shape=(graph.num_nodes, new))
    return append_nodes(graph, sp.bmat([[graph.adjacency, links], [links.T, None]], format="csr"))


class Stacked:
    """The features of nodes of a mended subgraph, sparse for the client's own and dense for generated ones, as one matrix.

    ``X @ W`` is a dense tensor of shape (k + r, outputs), differentiable in W and in the generated features.
    """

    def __init__(self, real: SparseMatrix, generated: Tensor, chosen: Tensor) -> None:
        """Stack features.

        Args:
            real: features of k of the client's nodes, shape (k, F).
            generated: features of all generated nodes, of any precision, shape (g, F).
            chosen: the r of these that come next, int64, shape (r,).
        """
        self._real = real
        self._generated = generated
        self._chosen = chosen

    def __matmul__(self, dense: Tensor) -> Tensor:
        """X @ dense."""
        below = [self._generated[rows].to(dense.dtype) @ dense for rows in self._chosen.split(_ROWS)]
        return torch.cat([self._real @ dense, *below])


class Surroundings:
    """What the logits of some nodes of a mended subgraph depend on, with full neighbourhoods.

    A GraphSAGE of K layers reads the features of the nodes within K hops, and wants the hidden units of those within K − 1.
    Generated nodes are leaves: most of them are in the first set only, and are multiplied by half of the first layer's weights.
    """

    def __init__(self, mended: Graph, real: int, nodes: np.ndarray, layers: int, device: str = "cpu") -> None:
        """Look around.

        Args:
            mended: the mended subgraph, as :func:`attach` makes it.
            real: number n of its nodes that are not generated, which come first.
            nodes: the nodes whose logits are wanted, shape (k,).
            layers: number of layers K.
            device: where tensors live.
        """
        read, hidden = within(mended, nodes, layers), within(mended, nodes, layers - 1)
        mean = mean_adjacency(mended)[hidden]
        self._to_hidden = SparseMatrix.from_scipy(mean[:, read], device)
        self._among_hidden = SparseMatrix.from_scipy(mean[:, hidden], device)  # whole in the rows that a later layer reads
        self._read, self._hidden = (self._parts(mended, real, each, device) for each in (read, hidden))
        self._places = torch.from_numpy(np.searchsorted(hidden, nodes)).to(device)

    @staticmethod
    def _parts(mended: Graph, real: int, nodes: np.ndarray, device: str) -> tuple[SparseMatrix, Tensor]:
        """Features of those of ``nodes`` that are real, and numbers of those that are generated."""
        first = np.searchsorted(nodes, real)
        features = SparseMatrix.from_scipy(mended.features[nodes[:first]], device)
        return features, torch.from_numpy(nodes[first:] - real).to(device)

    def logits(self, model: GraphSAGE, generated: Tensor) -> Tensor:
        """Logits of the nodes, shape (k, C), as :meth:`feddep.nn.sage.GraphSAGE.full` has them.

        Args:
            model: the classifier, of K layers.
            generated: features of all generated nodes, of any precision, shape (g, F).
        """
        (read, read_new), (own, own_new) = self._read, self._hidden
        first, *others = model.convolutions
        of_own, of_neighbours = first.weight.split(first.inputs)
        neighbours = self._to_hidden @ (Stacked(read, generated, read_new) @ of_neighbours)
        hidden = Stacked(own, generated, own_new) @ of_own + neighbours + first.bias
        for convolution in others:
            hidden = convolution.full(hidden.relu(), self._among_hidden)
        return hidden[self._places]
