"""Clipped sums of the gradients of single examples, without computing these gradients ("ghost
clipping").

All weights of the classifiers act by y_r = a_r W, on the rows r of one or several inputs, so that
the gradient of example e is g_e = Σ_{r ∈ e} a_rᵀ γ_r with γ_r = ∂ loss_e / ∂ y_r, and

    ‖g_e‖² = Σ_{r, s ∈ e} ⟨a_r, a_s⟩ ⟨γ_r, γ_s⟩,

from the inputs a and one backward pass that stops at the γ (Goodfellow, 2015, for one row an
example; Li et al., 2022, "ghost clipping", for several; Lee and Kifer, 2021, for other layers).
The clipped sum is Σ_r a_rᵀ (c_e γ_r), c_e = min(1, C / ‖g_e‖), from the same rows (Bu et al., 2023,
"book-keeping"), without a second backward pass.  A parameter that has no rule here raises an error,
so that none escapes the clipping.

Opacus expects layers such as ``nn.Linear`` with dense inputs of one entry an example, and
``torch.func`` cannot batch an autograd function without a rule for it.  Here the first layer is
such a function on a sparse matrix, and examples differ in rows.  The g_e themselves would be 56
million numbers for a batch of 32 on MSAcademic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.sampling import PAD, SampledTrees
from feddep.nn.sparse import ConstantMatrix, SparseMatrix


class ExampleRows:
    """Which example each row belongs to; rows are ordered by example, and examples may differ in
    their number of rows.
    """

    def __init__(self, of_row: np.ndarray, batch: int, device: torch.device) -> None:
        """Lay out the rows of each example in a grid of shape (B, P), where P is the most rows of
        one example.

        Args:
            of_row: example of each row, ascending, shape (R,).
            batch: number of examples B.
            device: where the rows are.
        """
        counts = np.bincount(of_row, minlength=batch)
        starts = np.cumsum(counts) - counts
        self._of_row = of_row
        self._position = np.arange(len(of_row)) - starts[of_row]
        self._shape = (batch, int(counts.max()))
        self._full = len(of_row) == batch * self._shape[1]
        self._device = device

    @cached_property
    def of_row(self) -> Tensor:
        """Example of each row, shape (R,)."""
        return self._tensor(self._of_row)

    @cached_property
    def _place(self) -> Tensor:
        return self._tensor(self._of_row * self._shape[1] + self._position)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def gram(self, rows: Tensor | SparseMatrix) -> Tensor:
        """⟨a_r, a_s⟩ for all rows r and s of the same example, shape (B, P, P); 0 where an example
        has no such rows.
        """
        if isinstance(rows, SparseMatrix):
            return self._sparse_gram(rows)
        if not self._full:
            rows = rows.new_zeros(math.prod(self._shape), rows.shape[1]).index_copy_(
                0, self._place, rows
            )
        rows = rows.view(*self._shape, -1)
        return rows @ rows.transpose(1, 2)

    def _sparse_gram(self, rows: SparseMatrix) -> Tensor:
        values, columns, starts = rows._arrays
        batch, most = self._shape
        # Each example gets columns of its own, so that only rows of the same example have a
        # non-zero product.
        width = rows.shape[1]
        apart = columns + np.repeat(self._of_row * width, np.diff(starts))
        matrix = sp.csr_matrix((values, apart, starts), shape=(rows.shape[0], batch * width))
        product = (matrix @ matrix.T).tocoo()
        gram = np.zeros((batch, most, most), dtype=np.float32)
        gram[
            self._of_row[product.row], self._position[product.row], self._position[product.col]
        ] = product.data
        return self._tensor(gram)


@dataclass(frozen=True)
class LinearTerm:
    """Term of one parameter in an output: y_r += a_r W, or y_r += b where there is no input.

    Attributes:
        parameter: the parameter.
        inputs: the rows a_r, shape (R, I); none for a bias.
        first: W is the I rows of ``parameter`` from this one on.
    """

    parameter: nn.Parameter
    inputs: Tensor | SparseMatrix | None
    first: int = 0

    def gram(self, examples: ExampleRows) -> Tensor | float:
        """⟨a_r, a_s⟩, as :meth:`ExampleRows.gram`."""
        return 1.0 if self.inputs is None else examples.gram(self.inputs)

    def add_gradient(self, outputs: Tensor) -> None:
        """Add Σ_r a_rᵀ γ_r to the parameter's gradient.

        Args:
            outputs: the γ_r, shape (R, O).
        """
        gradient: Any = self.parameter.grad
        if self.inputs is None:
            gradient += outputs.sum(dim=0)
            return
        of_weight = gradient[self.first : self.first + self.inputs.shape[1]]
        if isinstance(self.inputs, SparseMatrix):
            of_weight += self.inputs.transpose().multiply(outputs)
        else:
            of_weight.addmm_(self.inputs.T, outputs)


@dataclass(frozen=True)
class LinearOutput:
    """An output of a layer that is linear in its parameters: y_r is the sum of the terms.

    Attributes:
        outputs: the y_r, shape (R, O).
        terms: one for each parameter.
        examples: the examples that the rows r belong to.
    """

    outputs: Tensor
    terms: Sequence[LinearTerm]
    examples: ExampleRows

    def squared_norms(self, gradients: Tensor) -> Tensor:
        """Each example's share of ‖g_e‖², shape (B,), from the γ_r, shape (R, O)."""
        inputs = sum(term.gram(self.examples) for term in self.terms)
        return (inputs * self.examples.gram(gradients)).sum(dim=(1, 2))


def add_clipped(
    model: nn.Module,
    linear_outputs: Sequence[LinearOutput],
    losses: Tensor,
    clip: float,
    scale: float = 1.0,
) -> Tensor:
    """Add ``scale`` · Σ_e g_e · min(1, C / ‖g_e‖) to the gradients of the parameters of ``model``.

    Args:
        model: the classifier.
        linear_outputs: all outputs in which its parameters acted.
        losses: loss of each example, shape (B,).
        clip: clipping norm C.
        scale: a factor.

    Returns:
        The norms ‖g_e‖, shape (B,).

    Raises:
        TypeError: if some parameter acted elsewhere, so that its gradient cannot be clipped.
    """
    known = {id(term.parameter) for output in linear_outputs for term in output.terms}
    for name, parameter in model.named_parameters():
        if id(parameter) not in known:
            raise TypeError(
                f"DP-SGD has no rule for the parameter {name} of {type(model).__name__}"
            )
    gradients = torch.autograd.grad(losses.sum(), [output.outputs for output in linear_outputs])
    with torch.no_grad():
        squares = sum(
            output.squared_norms(each)
            for output, each in zip(linear_outputs, gradients, strict=True)
        )
        norms = torch.as_tensor(squares).clamp(min=0).sqrt()
        shares = scale * clip / norms.clamp(min=clip)
        for output, each in zip(linear_outputs, gradients, strict=True):
            weighted = each * shares[output.examples.of_row].unsqueeze(1)
            for term in output.terms:
                term.add_gradient(weighted)
    return norms


def recorded(
    model: nn.Module,
    trees: SampledTrees,
    table: Any,
    num_nodes: int,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, list[LinearOutput]]:
    """Classify a batch whose examples share no row in any layer, and record the linear outputs of
    the model.

    Args:
        model: a GraphSAGE or an embedding-fused classifier.
        trees: sampled neighbourhoods, at least one.
        table: the features, for an embedding-fused classifier also the mended embeddings, of their
            nodes.
        num_nodes: number of nodes n of the graph.
        generator: gives the dropout masks.

    Returns:
        The logits, shape (B, C), and the outputs.
    """
    disjoint = _DisjointTable(table, num_nodes)
    trees = disjoint.rename(trees)
    found: list[LinearOutput] = []
    layers = [module for module in model.modules() if hasattr(module, "linear_terms")]
    fusions: Any = getattr(model, "fusions", None)

    def record(module: Any, inputs: tuple[Any, ...], outputs: Tensor) -> None:
        batch, rows = len(trees), len(outputs)
        by_node = inputs[0] is disjoint.looked_up
        of_row = disjoint.examples if by_node else np.repeat(np.arange(batch), rows // batch)
        terms = [
            LinearTerm(parameter, x.detach() if isinstance(x, Tensor) else x, first)
            for parameter, x, first in module.linear_terms(*inputs)
        ]
        if fusions is not None:
            # Z^k z̄_v is added to the output of the convolution, so both have the same gradient.
            fusion = fusions[layers.index(module)]
            terms.append(
                LinearTerm(fusion, disjoint.embeddings(trees.nodes[:, : rows // batch].ravel()))
            )
        found.append(LinearOutput(outputs, terms, ExampleRows(of_row, batch, outputs.device)))

    handles = [layer.register_forward_hook(record) for layer in layers]
    try:
        return model(trees, disjoint, generator), found
    finally:
        for handle in handles:
            handle.remove()


class _DisjointTable:
    """A table of features in which node v of example e has the number e·n + v, so that examples
    share no node.

    A model that computes a layer once for each node of a batch, such as
    :class:`feddep.nn.selfloop.SelfLoopSAGE`, then does so once for each node of an example.
    """

    def __init__(self, table: Any, num_nodes: int) -> None:
        self._table = table
        self._num_nodes = num_nodes
        self.looked_up: SparseMatrix | None = None
        """The last result of :meth:`own`."""
        self.examples = np.empty(0, dtype=np.int64)
        """The example of each of its rows."""

    def rename(self, trees: SampledTrees) -> SampledTrees:
        """Trees of a batch, shape (B, …), with the new numbers."""
        first = np.arange(len(trees), dtype=np.int64) * self._num_nodes
        return SampledTrees(
            np.where(trees.nodes == PAD, PAD, trees.nodes + first[:, None]), trees.fanouts
        )

    def _original(self, nodes: np.ndarray) -> np.ndarray:
        return np.where(nodes == PAD, PAD, nodes % self._num_nodes)

    def own(self, nodes: np.ndarray) -> SparseMatrix:
        # A row for nobody is zero in any example.
        self.examples = np.maximum(nodes, 0) // self._num_nodes
        self.looked_up = self._table.own(self._original(nodes))
        return self.looked_up

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> ConstantMatrix:
        return self._table.joined(self._original(own), self._original(neighbours))

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        return self._table.embeddings(self._original(nodes))
