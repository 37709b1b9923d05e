"""Embedding-fused graph convolution: a classifier that reads generated embeddings of missing
neighbours (FedDEP, Section 3.1).

In both layouts of it, :class:`FusedGNN`, the paper's equation, and :class:`Fusions`, which adds to
any encoder what the authors' code adds to GraphSAGE, a layer treats what it aggregates from real
nodes and the mended embeddings z̄_v with separate weights (Statement 3.1).  Without mended
embeddings, z̄ = 0, only the real nodes are left: that is how the global graph is classified.
"""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.sampling import PAD, SampledTrees
from feddep.methods.feddep import FUSED_ENCODERS, check_layout
from feddep.methods.method import load
from feddep.nn.encoders import GAT, GCN, MLP
from feddep.nn.feature_table import FeatureTable
from feddep.nn.linear import draw_uniform
from feddep.nn.sage import GraphSAGE
from feddep.nn.selfloop import Initial, MatrixLayer, SelfLoopSAGE
from feddep.nn.sparse import SparseMatrix

Layout = Literal["paper", "authors", "chained"]
"""``paper``: :class:`FusedGNN`; ``authors``: an encoder with :class:`Fusions`; ``chained``: the
same with chained maps.
"""


class MendedTable(FeatureTable):
    """Looks up the inputs of sampled nodes: their sparse features x_v and their mended embeddings
    z̄_v.

    Attributes:
        mended: z̄ of all nodes, shape (n, d_z); may be replaced.
    """

    def __init__(
        self, features: sp.csr_matrix, embeddings: Tensor, degrees: np.ndarray | None = None
    ) -> None:
        """Prepare the lookup in X, float32 CSR, shape (n, F), and in z̄, shape (n, d_z), on whose
        device all is wanted.
        """
        super().__init__(features, embeddings.device, degrees)
        self.mended = embeddings

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        """z̄_v of the given nodes, shape (R, d_z); zero for PAD."""
        found = self.mended[torch.from_numpy(nodes).to(self.mended.device, torch.int64)]
        pads = nodes == PAD  # which finds the last row
        if pads.any():
            found[torch.from_numpy(pads).to(found.device)] = 0
        return found


class FusedLayer(MatrixLayer):
    """W · [x̄_v ‖ z̄_v], which is W^x x̄_v + W^z z̄_v (FedDEP, Section 3.1 and Statement 3.1; no
    bias, as printed).

    ``weight`` holds Wᵀ, shape (inputs + d_z, outputs): the rows for x̄_v, then those for z̄_v.
    """

    def __init__(self, inputs: int, embedding: int, outputs: int) -> None:
        super().__init__(inputs, outputs, embedding)

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw W^x anew, and W^z uniformly from ±1/√d_z."""
        super().reset_parameters(generator, initial)
        of_z = self.weight.detach()[self.inputs :]
        draw_uniform([of_z], len(of_z), generator)

    def forward(self, x: Tensor | SparseMatrix, z: Tensor | None = None) -> Tensor:
        """Shape (R, outputs), from x̄ of shape (R, inputs) and z̄ of shape (R, d_z), or none where
        all z̄ are zero.
        """
        of_x, of_z = self.weight[: self.inputs], self.weight[self.inputs :]
        return x @ of_x if z is None else x @ of_x + z @ of_z

    def linear_terms(self, x: Any, z: Any = None) -> list[tuple[nn.Parameter, Any, int]]:
        return [(self.weight, x, 0), (self.weight, z, self.inputs)]


class FusedGNN(SelfLoopSAGE):
    """The classifier F of the paper: K embedding-fused graph convolutions with weights W^(0) …
    W^(K).

    x⁰_v = σ(W⁰ · [x_v ‖ z̄_v]),    x^k_v = σ(W^k · [mean {x^{k−1}_u : u ∈ G¹(v)} ‖ z̄_v]),  k = 1 …
    K
    """

    def __init__(
        self, features: int, embedding: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        """Set up the layers for z̄ of width d_z = ``embedding``; the other arguments are those of
        :class:`SelfLoopSAGE`.
        """
        self.embedding = embedding
        super().__init__(features, hidden, classes, layers, dropout)

    def new_layer(self, inputs: int, outputs: int) -> FusedLayer:
        return FusedLayer(inputs, self.embedding, outputs)

    def _layer(self, k: int, x: Any, nodes: np.ndarray, table: Any) -> Tensor:
        return self.layers[k](x, table.embeddings(nodes))

    def _full_layer(self, k: int, x: Any, z: Tensor | None) -> Tensor:
        return self.layers[k](x, z)  # type: ignore[no-any-return]


class Fusions:
    """Adds a linear map of z̄_v to the outputs of each of an encoder's layers; the encoder reads a
    :class:`MendedTable`.

        h^k_v = Layer^k(h^{k−1})_v + Z^k z̄_v,  k = 1 … K

    Where the maps are ``chained``, each has a bias and reads what the one before it gives, as in
    the authors' code:

        h^k_v = Layer^k(h^{k−1})_v + f^k_v,  f^k_v = Z^k f^{k−1}_v + c^k,  f^0_v = z̄_v

    Without biases, and so not where they are chained, z̄ = 0 leaves the encoder, number for number:
    same initial weights for the same generator, same draws.
    """

    def __init__(
        self,
        features: int,
        embedding: int,
        hidden: int,
        classes: int,
        layers: int,
        dropout: float,
        chained: bool = False,
    ) -> None:
        """Set up the layers; the first arguments are those of :class:`FusedGNN`."""
        encoder: Any = super()
        encoder.__init__(features, hidden, classes, layers, dropout)
        outputs = self.output_widths
        inputs = [embedding, *outputs[:-1]] if chained else [embedding] * layers
        self.fusions = nn.ParameterList(
            torch.empty(*widths) for widths in zip(inputs, outputs, strict=True)
        )
        self.chained = chained
        if chained:
            self.biases = nn.ParameterList(torch.empty(width) for width in outputs)

    output_widths: Any

    @property
    def additions(self) -> list[Tensor]:
        """Z^k of each layer, as :class:`feddep.nn.stacked.StackedModels` reads them; none where
        the maps are chained.
        """
        return [] if self.chained else list(self.fusions)

    def reset_parameters(self, generator: torch.Generator, initial: Initial = "he") -> None:
        """Draw all weights anew: the encoder's first, which have one choice only, then Z^k and c^k,
        uniformly from ±1/√inputs.
        """
        encoder: Any = super()
        encoder.reset_parameters(generator)
        for k, fusion in enumerate(self.fusions):
            draw_uniform(
                [fusion, *([self.biases[k]] if self.chained else [])], fusion.shape[0], generator
            )

    def fused(self, k: int, z: Tensor) -> Tensor:
        """Term of the outputs of layer k, shape (R, H), from z̄ of shape (R, d_z)."""
        if not self.chained:
            return z @ self.fusions[k]
        for fusion, bias in zip(self.fusions[: k + 1], self.biases[: k + 1], strict=True):
            z = z @ fusion + bias
        return z

    def _complete_outputs(
        self, k: int, hidden: Tensor, trees: SampledTrees, table: MendedTable
    ) -> Tensor:
        return hidden + self.fused(k, table.embeddings(trees.inner.nodes.ravel()))

    def _complete_full(
        self, k: int, hidden: Tensor, z: Tensor | None, columns: Any = slice(None)
    ) -> Tensor:
        if z is None:
            z = hidden.new_zeros(1, self.fusions[0].shape[0])
        return hidden.add_(self.fused(k, z)[:, columns])


class FusedSAGE(Fusions, GraphSAGE):
    """The classifier of the authors' code: a GraphSAGE with maps of z̄_v added to each convolution
    (:class:`Fusions`).
    """


class FusedMLP(Fusions, MLP):  # type: ignore[misc]
    """An MLP with embeddings z̄."""


class FusedGCN(Fusions, GCN):  # type: ignore[misc]
    """A GCN with embeddings z̄: the paper's convolution with a GCN's sum in place of the mean over
    G¹(v), which holds v too.

        h^k_v = σ([Σ_{u ∈ G¹(v)} h^{k−1}_u / √((D_u + 1)(D_v + 1)) ‖ z̄_v] · [W^k ; Z^k] + b^k),
        h^0_v = x_v,  k = 1 … K

    D counts real neighbours only: z̄_v, a mean already, is not scaled by degrees.  The last layer
    has no σ.
    """


class FusedGAT(Fusions, GAT):  # type: ignore[misc]
    """A GAT with embeddings z̄."""


FusedClassifier = FusedGNN | FusedSAGE | FusedMLP | FusedGCN | FusedGAT
"""A classifier that reads embeddings z̄ beside features and edges."""


def fused_classifier(layout: Layout, *sizes: Any, encoder: str = "sage") -> Any:
    """An embedding-fused classifier without weights yet; ``sizes`` are the arguments of
    :class:`FusedGNN`.

    The layout ``paper`` has layers of its own, with self-loops; the others add embeddings to the
    layers of the ``encoder``, one of :data:`feddep.methods.feddep.FUSED_ENCODERS`.

    Raises:
        ConfigError: if the layout is not one of the encoder's.
    """
    check_layout(layout, encoder)
    if layout == "paper" or encoder == "sage_selfloop":
        return FusedGNN(*sizes)
    return load(FUSED_ENCODERS[encoder])(*sizes, chained=layout == "chained")
