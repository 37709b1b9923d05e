"""GraphSAGE with the mean aggregator (Hamilton et al., 2017, Algorithms 1 and 2), mini-batch and
full-batch.
"""

import itertools
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.sampling import SampledTrees
from feddep.nn.dropout import drop
from feddep.nn.layered import Convolution, LayeredClassifier, Terms
from feddep.nn.linear import draw_uniform
from feddep.nn.sparse import ConstantMatrix


class SAGEConv(Convolution):
    """One convolution: h_v = W · [x_v ‖ mean of x_u over the neighbours u of v] + b.

    ``weight`` holds Wᵀ, shape (2 · inputs, outputs): the rows for the node itself, then those for
    its neighbours.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs = inputs
        self.weight = nn.Parameter(torch.empty(2 * inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights and bias uniformly from ±1/√inputs, as two separate linear maps of that many
        inputs would.
        """
        draw_uniform((self.weight, self.bias), self.inputs, generator)

    def forward(self, joined: Tensor | ConstantMatrix) -> Tensor:
        """Convolve rows that are joined already, [x_v ‖ mean x_u], shape (R, 2 · inputs), to shape
        (R, outputs).
        """
        return joined @ self.weight + self.bias

    def linear_terms(self, joined: Any) -> list[tuple[nn.Parameter, Any, int]]:
        """As those of :class:`feddep.nn.selfloop.MatrixLayer`; the bias is multiplied by
        nothing.
        """
        return [(self.weight, joined, 0), (self.bias, None, 0)]

    @property
    def terms(self) -> Terms:
        return (self.inputs, True), (0, False)


class GraphSAGE(LayeredClassifier):
    """L convolutions with ReLU and dropout between them; the output is one logit a class.

    Subclasses override the three ``_complete`` methods to change what the convolutions k = 0 … L −
    1 read and return in a mini-batch; here these methods change nothing.
    """

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up L = ``layers`` convolutions from F features to C classes; call
        :meth:`reset_parameters` before use.
        """
        widths = [features, *[hidden] * (layers - 1), classes]
        super().__init__(
            [SAGEConv(*pair) for pair in itertools.pairwise(widths)], dropout, "convolution"
        )
        self.convolutions = self.layers

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The matrix whose row v averages over the neighbours of v."""
        return mean_adjacency(graph)

    def forward(
        self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None
    ) -> Tensor:
        nodes, neighbours = trees.split(trees.nodes)
        hidden = self.convolutions[0](
            table.joined(nodes.ravel(), neighbours.reshape(-1, neighbours.shape[2]))
        )
        hidden = self._complete_outputs(0, hidden, trees, table)
        for k, convolution in enumerate(self.convolutions[1:], start=1):
            trees = trees.inner
            hidden = self._complete_inputs(
                k, hidden.relu().view(*trees.nodes.shape, -1), trees, table
            )
            own, drawn = trees.split(drop(hidden, self.dropout, generator))
            mean, present = drawn.mean(dim=2), trees.has_neighbours
            if not present.all():
                mean = mean * torch.from_numpy(present).to(mean.device).unsqueeze(2)
            mean = self._complete_neighbours(k, mean, trees, table)
            hidden = convolution(torch.cat([own, mean], dim=2).flatten(0, 1))
            hidden = self._complete_outputs(k, hidden, trees, table)
        return hidden

    def _complete_inputs(self, k: int, hidden: Tensor, trees: SampledTrees, table: Any) -> Tensor:
        """The inputs of convolution k ≥ 1 at all tree nodes, shape (B, P (1 + f), H)."""
        return hidden

    def _complete_neighbours(
        self, k: int, neighbours: Tensor, trees: SampledTrees, table: Any
    ) -> Tensor:
        """The mean neighbours that convolution k ≥ 1 reads at the tree nodes before the last hop,
        shape (B, P, H).
        """
        return neighbours
