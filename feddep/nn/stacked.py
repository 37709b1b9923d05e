"""Classifiers of one shape, each on a graph of its own, computed together on all nodes.

The graphs are one graph that falls apart into them, and the weight matrices of the first layer
stand one below the other: a sparse product is one operation for all, and gradients are written down
instead of recorded.  Every number is, to the last bit, what each classifier has on its own.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function

from feddep.nn.dropout import drop_, scale
from feddep.nn.layered import Terms
from feddep.nn.sparse import SparseMatrix

Gradients = list[tuple[Tensor, ...]]
"""Those of a layer's weight matrix and bias, and of Z^k if any, of each model."""
ALIGNED = 16
"""The rows of each graph begin at a multiple of this, and so at a multiple of 64 bytes, as a tensor
of their own would: the last bits of BLAS's sums depend on it.
"""
_MANY = 16
"""Entries of X a row of the stacked weights from where on a product takes longer than to see
whether the weights have changed.
"""


class StackedNodes:
    """All n nodes of several graphs, or some of them.

    Attributes:
        parts: where those of each graph are.
        adjacency: what models aggregate with, a row for each of these nodes, a column for each of
            all.
    """

    def __init__(self, parts: Sequence[slice], adjacency: SparseMatrix, rows: Any = None) -> None:
        """Take nodes of each graph; ``rows`` are their numbers among all, if they are some."""
        self.parts = parts
        self.adjacency = adjacency
        self._rows = None if rows is None else torch.from_numpy(rows).to(adjacency.device)

    def restrict(self, nodes: Sequence[np.ndarray]) -> "StackedNodes":
        """Some nodes of each graph, in its own ids."""
        moved = [part.start + each for part, each in zip(self.parts, nodes, strict=True)]
        ends = np.cumsum([0, *map(len, nodes)]).tolist()
        parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        rows = np.concatenate(moved)
        return StackedNodes(parts, self.adjacency.rows(rows), rows)

    def of(self, outputs: Tensor) -> Tensor:
        """A copy of the rows of these nodes, from those of all."""
        return outputs.clone() if self._rows is None else outputs.index_select(0, self._rows)

    def spread(self, outputs: Tensor) -> Tensor:
        """The rows of all nodes, from those of these: zeros for the others."""
        if self._rows is None:
            return outputs
        everywhere = outputs.new_zeros(self.adjacency.shape[1], outputs.shape[1])
        return everywhere.index_copy_(0, self._rows, outputs)


class StackedGraphs:
    """Several graphs.

    Attributes:
        nodes: all of their nodes.
    """

    def __init__(
        self, features: Sequence[SparseMatrix], adjacencies: Sequence[SparseMatrix]
    ) -> None:
        """Stack the graphs, given by X and the matrix that models aggregate with."""
        sizes = [matrix.shape[0] for matrix in adjacencies]
        starts = np.cumsum([0, *(-(-size // ALIGNED) * ALIGNED for size in sizes)]).tolist()
        parts = [slice(start, start + size) for start, size in zip(starts, sizes, strict=False)]
        n, self._starts = starts.pop(), starts
        self.nodes = StackedNodes(parts, SparseMatrix.blocks(adjacencies, starts, starts, (n, n)))
        self._features = list(features)
        self._placed: dict[Terms, SparseMatrix] = {}
        self._product: tuple[Tensor, Tensor] | None = None

    def product(self, layer: Terms, weights: Tensor) -> Tensor:
        """X W_t of each term and graph, shape (t n, outputs), from the stacked weight matrices of
        a first layer.

        Where the features have many entries, it is kept: clients are evaluated with the weights
        from which they make their next step.
        """
        features, stacked = self.features(layer, weights.shape[1]), weights.flatten(0, 1)
        if features.nnz < _MANY * len(stacked):
            return features.multiply(stacked)
        if self._product is None or not torch.equal(self._product[0], stacked):
            self._product = stacked.clone(), features.multiply(stacked)
        return self._product[1]

    def features(self, layer: Terms, inputs: int) -> SparseMatrix:
        """What to multiply the stacked weight matrices of a first layer by, each of so many
        ``inputs``: a row for each term and node.
        """
        if layer not in self._placed:
            n, count = self.nodes.adjacency.shape[0], len(self._features)
            self._placed[layer] = SparseMatrix.blocks(
                self._features * len(layer),
                [t * n + start for t in range(len(layer)) for start in self._starts],
                [i * inputs + first for first, _ in layer for i in range(count)],
                (len(layer) * n, count * inputs),
            )
        return self._placed[layer]


class StackedModels:
    """Layers of several models; the weights of the first are one tensor, of which each model's are
    views.

    A model may have a list ``additions`` of a matrix Z^k a layer: z̄ Z^k is added to its outputs.

    Attributes:
        models: the models.
        terms: those of each layer.
        parameters: all parameters of the models.
        additions: Z^k of each model, of each layer; empty where there are none.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        """Stack the models, whose layers all are convolutions."""
        self.models = models
        self.terms = [layer.terms for layer in models[0].layers]
        self.parameters = [weight for model in models for weight in model.parameters()]
        added = [getattr(model, "additions", ()) for model in models]
        self.additions = list(zip(*added, strict=True))
        self._layers = list(zip(*(model.layers for model in models), strict=True))
        self._first = torch.empty(0)

    def tensors(self, name: str) -> list[list[Tensor]]:
        """The ``weight`` or ``bias`` of each model, of each layer."""
        return [[getattr(layer, name) for layer in layers] for layers in self._layers]

    def first(self, weights: Sequence[Tensor]) -> Tensor:
        """The weights of the first layer as one tensor, shape (M, inputs, outputs); a copy where
        they are no parameters but computed, by a parametrization.
        """
        if not isinstance(weights[0], nn.Parameter):
            return torch.stack([weight.detach() for weight in weights])
        if any(
            weight.data_ptr() != own.data_ptr()
            for weight, own in itertools.zip_longest(weights, self._first, fillvalue=self._first)
        ):
            self._first = torch.stack([weight.detach() for weight in weights])
            for weight, own in zip(weights, self._first, strict=True):
                weight.data = own
        return self._first


class StackedPass:
    """One computation of the logits, and of gradients, at the weights as they are."""

    def __init__(
        self,
        models: StackedModels,
        graphs: StackedGraphs,
        embeddings: Sequence[Any],
        generators: Sequence[torch.Generator] = (),
    ) -> None:
        """Prepare for M models, their graphs and what their additions read, z̄ of each graph's
        nodes, shape (n_i, d_z), or none.

        Without ``generators``, of each model the source of its dropout masks, nothing is dropped.
        """
        self._graphs, self._generators, self._terms = graphs, generators, models.terms
        self._dropout = models.models[0].dropout if generators else 0.0
        self._weights, self._biases = models.tensors("weight"), models.tensors("bias")
        self._additions, self._embeddings = models.additions, embeddings
        self._first = models.first(self._weights[0])
        self._hidden: list[Tensor] = []

    def body(self) -> Tensor:
        """Inputs of the last layer, shape (n, H)."""
        for k in range(len(self._terms) - 1):
            hidden = self._outputs(k, self._graphs.nodes)
            for i, part in enumerate(self._graphs.nodes.parts):
                own = hidden[part].relu_()
                if self._dropout:
                    drop_(own, self._dropout, self._generators[i])
            self._hidden.append(hidden)
        return self._hidden[-1]

    def head(self, nodes: StackedNodes) -> Tensor:
        """Logits of k nodes, shape (k, C)."""
        return self._outputs(len(self._terms) - 1, nodes)

    def _outputs(self, k: int, nodes: StackedNodes) -> Tensor:
        layer = self._terms[k]
        if k:
            mapped = [self._mapped(k, first) for first, _ in layer]
        else:
            mapped = list(self._graphs.product(layer, self._first).chunk(len(layer)))
        total, *others = (
            nodes.adjacency.multiply(each) if aggregated else nodes.of(each)
            for each, (_, aggregated) in zip(mapped, layer, strict=True)
        )
        for other in others:
            total.add_(other)
        for part, bias in zip(nodes.parts, self._biases[k], strict=True):
            total[part].add_(bias)
        if self._additions:
            added = total.new_zeros(self._graphs.nodes.adjacency.shape[0], total.shape[1])
            for part, z, addition in self._mended(k):
                torch.mm(z, addition, out=added[part])
            total.add_(nodes.of(added))
        return total

    def _mended(self, k: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Nodes, z̄ and Z^k of each graph."""
        return zip(self._graphs.nodes.parts, self._embeddings, self._additions[k], strict=True)

    def _mapped(self, k: int, first: int) -> Tensor:
        """h W_t in layer k ≥ 1, shape (n, outputs)."""
        hidden = self._hidden[k - 1]
        outputs = hidden.new_empty(len(hidden), self._weights[k][0].shape[1])
        for part, weight in zip(self._graphs.nodes.parts, self._weights[k], strict=True):
            torch.mm(hidden[part], weight[first : first + hidden.shape[1]], out=outputs[part])
        return outputs

    def head_gradient(self, gradient: Tensor, nodes: StackedNodes) -> tuple[Tensor, Gradients]:
        """From the gradient of the logits of k nodes, shape (k, C), that of the inputs of the last
        layer, shape (n, H), and those of its weights.
        """
        return self._gradients(len(self._terms) - 1, gradient, nodes)

    def body_gradients(self, gradient: Tensor) -> list[Gradients]:
        """From the gradient of the inputs of the last layer, those of the weights of all layers
        before.
        """
        found: list[Gradients] = []
        kept = scale(gradient, self._dropout)
        for k in reversed(range(len(self._terms) - 1)):
            for part in self._graphs.nodes.parts:
                own = gradient[part]
                torch.ops.aten.threshold_backward.grad_input(
                    own, self._hidden[k][part], 0, grad_input=own
                ).mul_(kept)
            gradient, of_weights = self._gradients(k, gradient, self._graphs.nodes)
            found.insert(0, of_weights)
        return found

    def _gradients(self, k: int, gradient: Tensor, nodes: StackedNodes) -> tuple[Tensor, Gradients]:
        layer, parts = self._terms[k], self._graphs.nodes.parts
        everywhere = nodes.spread(gradient)
        others = [[everywhere[part].sum(0) for part in parts]]
        if self._additions:
            others.append([torch.mm(z.t(), everywhere[part]) for part, z, _ in self._mended(k)])
        mapped = [
            nodes.adjacency.multiply_transposed(gradient) if aggregated else everywhere
            for _, aggregated in layer
        ]
        if k == 0:
            features = self._graphs.features(layer, self._first.shape[1])
            joined = mapped[0] if len(mapped) == 1 else torch.cat(mapped)
            of_first = features.multiply_transposed(joined).view_as(self._first)
            return everywhere, list(zip(of_first, *others, strict=True))
        hidden = self._hidden[k - 1]
        of_hidden = [torch.empty_like(hidden) for _ in layer]
        of_weights = [torch.empty_like(weight) for weight in self._weights[k]]
        for i, part in enumerate(parts):
            for (first, _), each, of_inputs in zip(layer, mapped, of_hidden, strict=True):
                rows = slice(first, first + hidden.shape[1])
                torch.mm(hidden[part].t(), each[part], out=of_weights[i][rows])
                torch.mm(each[part], self._weights[k][i][rows].t(), out=of_inputs[part])
        total, *further = of_hidden
        for each in further:
            total.add_(each)
        return total, list(zip(of_weights, *others, strict=True))

    def assign(self, gradients: Sequence[Gradients]) -> list[Tensor]:
        """Set the gradients of the weights of the first layers.

        Returns:
            A number to call ``backward`` of, where weights are computed, so that gradients reach
            what they are computed from.
        """
        computed: list[tuple[Tensor, Tensor]] = []
        for k, of_layer in enumerate(gradients):
            groups = [self._weights[k], self._biases[k], *self._additions[k : k + 1]]
            for tensors, own in zip(zip(*groups, strict=True), of_layer, strict=True):
                for tensor, each in zip(tensors, own, strict=True):
                    if not tensor.is_leaf:
                        computed.append((tensor, each))
                    elif tensor.requires_grad:
                        tensor.grad = each
        if not computed:
            return []
        tensors, known = zip(*computed, strict=True)
        return [_WithGradients.apply(known, *tensors)]


class _WithGradients(Function):
    """Zero, whose gradients with respect to some tensors are known."""

    @staticmethod
    def forward(ctx: Any, known: Sequence[Tensor], *tensors: Tensor) -> Tensor:
        ctx.known = known
        return tensors[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.known
