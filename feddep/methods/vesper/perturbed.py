"""Perturbed message passing (PMP): each layer's sums over neighbours get Gaussian noise (VESPER,
Algorithms 1 and 2).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from feddep.graph.blocks import Blocks
from feddep.nn.linear import Linear, draw_uniform
from feddep.nn.sparse import SparseMatrix
from feddep.utils.errors import DivergenceError

Aggregation = Literal["gin", "gcn"]
ROWS = 2**14
"""Most nodes that are encoded, passed through a layer or decoded at a time where nothing is
learned; a mini-batch has fewer.
"""


@dataclass(frozen=True)
class Design:
    """Order of a layer's computations on h, the unit rows of the layer before.

    With the aggregate a_v = ω_v h_v + Σ_u β_uv h_u and z ~ N(0, θ² I):

    * ``weights_first``, PMP: h_v ← ReLU(W a_v + z) / ‖·‖, with ‖W‖₂ = 1;
    * ``noise_first``: h_v ← ReLU(W (a_v + z)) / ‖·‖, and no gradient passes the aggregate, as in
      GAP.  All that is learned is then computed from what has noise, and W needs no bound;
    * ``no_weights``, GAP: h_v ← (a_v + z) / ‖·‖;
    * ``noise_last``, VFGNN: h_v ← ReLU(W a_v) / ‖·‖, with ‖W‖₂ = 1; of the last layer only h_v + z
        is used.

    Attributes:
        aggregation: ``gin``: ω_v = β_uv = 1.  ``gcn``: ω_v = c_v², β_uv = c_u c_v with c_v =
            1/√(max(d_v, floor) + 1).
        order: one of the above.
        theta: standard deviation θ of the noise on each number; 0 for none.
        min_degree: D_min: where d_v is less, a linear map of h_v with weights of its own, W_tr h_v
            + b_tr, takes the place of W a_v (truncated message passing, Algorithm 2); 0 for no such
            map.
        floor: see ``aggregation``.
        encodings: whether the rows before the first layer, which hold no edges and get no noise,
            are put out as well.
        own: whether a_v holds ω_v h_v; without it a node is no neighbour of its own.
    """

    aggregation: Aggregation = "gin"
    order: Literal["weights_first", "noise_first", "no_weights", "noise_last"] = "weights_first"
    theta: float = 0.0
    min_degree: int = 0
    floor: float = 0.0
    encodings: bool = False
    own: bool = True


def spectrally_normalised(weight: Tensor) -> Tensor:
    """The matrix divided by its spectral norm, so that ‖W‖₂ = 1; the gradient flows through the
    norm as well.

    The norm is that of a singular value decomposition.  Power iteration (Miyato et al., 2018)
    approaches it from below, so that what it divides by has a norm above 1: no bound on a
    sensitivity.

    Raises:
        DivergenceError: if it has none, as weights are too large or not finite.
    """
    try:
        return weight / torch.linalg.matrix_norm(weight, 2)
    except torch.linalg.LinAlgError:
        raise DivergenceError(
            "the weights of a layer of message passing have no spectral norm"
        ) from None


def stacked(parts: Iterable[Tensor], rows: int) -> Tensor:
    """Parts of some rows each as one tensor of so many rows; without a gradient, one part is kept
    at a time.
    """
    if torch.is_grad_enabled():
        found = list(parts)
        return found[0] if len(found) == 1 else torch.cat(found)
    whole, start = None, 0
    for part in parts:
        if whole is None:
            whole = part.new_empty(rows, part.shape[1])
        whole[start : start + len(part)] = part
        start += len(part)
    assert whole is not None
    return whole


@dataclass(frozen=True, eq=False)
class NoisedSums:
    """One release of the only layer of ``noise_first``, from which its rows are computed with
    whatever weights there are.

    Attributes:
        sums: what W reads, with noise; shape (R, d).
        low: whether the linear map of truncated message passing reads it instead, shape (R, 1);
            None for no such map.
        encodings: the rows before the layer, shape (R, d), if they are put out.
    """

    sums: Tensor
    low: Tensor | None
    encodings: Tensor | None


RowsFrom = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""Gives rows of some nodes v from a_v and h_v, shape (R, d), and whether the map for low degrees is
taken, shape (R, 1), none without such a map.
"""


class PerturbedMessagePassing(nn.Module):
    """L layers of message passing with noise, in the order of a :class:`Design`; the private
    representation extractor of VESPER, and those of its baselines.
    """

    def __init__(self, width: int, layers: int, design: Design) -> None:
        """Set up the layers, all of one width d; call :meth:`reset_parameters` before use."""
        super().__init__()
        self.depth = layers
        self.design = design
        learned = 0 if design.order == "no_weights" else layers
        self.raw = nn.ParameterList(nn.Parameter(torch.empty(width, width)) for _ in range(learned))
        self.low = nn.ModuleList(
            Linear(width, width) for _ in range(learned if design.min_degree else 0)
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights uniformly from ±1/√d."""
        for weight in self.raw:
            draw_uniform([weight], weight.shape[1], generator)
        for each in self.low:
            each.reset_parameters(generator)  # type: ignore[operator]

    def weight(self, layer: int) -> Tensor:
        """W of layer l, from 1 to L, as it is used; shape (d, d)."""
        raw: Tensor = self.raw[layer - 1]
        return raw if self.design.order == "noise_first" else spectrally_normalised(raw)

    def forward(
        self,
        encodings: Tensor | Iterable[Tensor],
        blocks: Blocks,
        degrees: np.ndarray,
        generator: torch.Generator | None = None,
    ) -> list[Tensor]:
        """The rows of the roots after each layer.

        Args:
            encodings: of the nodes of the graph, shape (n, d), together or in parts of some rows;
                made unit rows first.
            blocks: the message-flow graph; each of its nodes is computed once in each layer that it
                is needed in, so that its noise is drawn once a layer.
            degrees: d_v of its nodes, whole numbers or not; shape (n,).
            generator: source of the noise; needed unless θ is 0.

        Returns:
            H^(1) … H^(L), each of shape (B, d), or of ``noise_last`` H^(L) alone; before them, if
            asked for, H^(0).
        """
        parts = [encodings] if isinstance(encodings, Tensor) else encodings
        hidden = stacked(map(normalize, parts), len(blocks.nodes))
        before = [hidden[: blocks.sizes[0]].clone()] if self.design.encodings else []
        found = []
        for layer in range(1, self.depth + 1):
            hidden = self._layer(hidden, blocks, degrees, layer, self._after(layer, generator))
            roots = hidden[: blocks.sizes[0]]
            # So that the other rows can be forgotten.
            found.append(roots if torch.is_grad_enabled() else roots.clone())
        if self.design.order == "noise_last":
            found = [self._noised(found[-1], generator)]
        return before + found

    def _layer(
        self, hidden: Tensor, blocks: Blocks, degrees: np.ndarray, layer: int, rows_from: RowsFrom
    ) -> Tensor:
        """The rows of all nodes after a layer, computed :data:`ROWS` at a time."""
        size = blocks.sizes[blocks.hops - layer]

        def some(rows: slice) -> Tensor:
            aggregated = self._aggregated(hidden, blocks, degrees, layer, rows)
            low = self._is_low(degrees[rows], aggregated.device)
            return rows_from(aggregated, hidden[rows], low)

        return stacked(map(some, _pieces(size)), size)

    def _after(self, layer: int, generator: torch.Generator | None) -> RowsFrom:
        """The computation of a layer's unit rows."""
        order = self.design.order
        if order == "no_weights":
            return lambda aggregated, own, low: normalize(self._noised(aggregated, generator))
        weight = self.weight(layer)

        def rows_from(aggregated: Tensor, own: Tensor, low: Tensor | None) -> Tensor:
            if order == "noise_first":
                own = aggregated = self._sums(aggregated.detach(), own.detach(), low, generator)
            y = self._mapped(aggregated, own, low, layer, weight)
            if order == "weights_first":
                y = self._noised(y, generator)
            return normalize(y.relu())

        return rows_from

    def _sums(
        self, aggregated: Tensor, own: Tensor, low: Tensor | None, generator: torch.Generator | None
    ) -> Tensor:
        """a_v + z, or h_v + z where degrees are low."""
        return self._noised(
            aggregated if low is None else torch.where(low, own, aggregated), generator
        )

    def noised_sums(
        self,
        encodings: Iterable[Tensor],
        blocks: Blocks,
        degrees: np.ndarray,
        generator: torch.Generator | None,
    ) -> NoisedSums:
        """The noised sums of the roots, for one layer of ``noise_first``; the arguments are those
        of :meth:`forward`.
        """
        hidden, size = stacked(map(normalize, encodings), len(blocks.nodes)), blocks.sizes[0]
        return NoisedSums(
            self._layer(hidden, blocks, degrees, 1, partial(self._sums, generator=generator)),
            self._is_low(degrees[:size], hidden.device),
            hidden[:size] if self.design.encodings else None,
        )

    def from_sums(self, released: NoisedSums, rows: Tensor) -> list[Tensor]:
        """Outputs of :meth:`forward` for some rows of a release, with the weights as they are
        now.
        """
        x, low = released.sums[rows], None if released.low is None else released.low[rows]
        before = [] if released.encodings is None else [released.encodings[rows]]
        return [*before, normalize(self._mapped(x, x, low, 1, self.weight(1)).relu())]

    def _is_low(self, degrees: np.ndarray, device: torch.device) -> Tensor | None:
        """Whether the map for low degrees is taken, shape (R, 1); None without such a map."""
        least = self.design.min_degree
        return torch.from_numpy(degrees < least).to(device)[:, None] if least else None

    def _mapped(
        self, x: Tensor, own: Tensor, low: Tensor | None, layer: int, weight: Tensor
    ) -> Tensor:
        """W x, or W_tr h_v + b_tr where degrees are low."""
        y = x @ weight.T
        return y if low is None else torch.where(low, self.low[layer - 1](own), y)

    def _aggregated(
        self, hidden: Tensor, blocks: Blocks, degrees: np.ndarray, layer: int, rows: slice
    ) -> Tensor:
        """ω_v h_v + Σ_u β_uv h_u for some rows of a layer."""
        indptr, indices, (_, columns) = blocks.neighbours(layer)
        ends = indptr[rows.start : rows.stop + 1]
        heard = indices[ends[0] : ends[-1]]
        own = hidden[rows]
        if self.design.aggregation == "gin":
            values = np.ones(len(heard), dtype=np.float32)
        else:
            scale = (1 / np.sqrt(np.maximum(degrees[:columns], self.design.floor) + 1)).astype(
                np.float32
            )
            values = np.repeat(scale[rows], np.diff(ends)) * scale[heard]
            own = own * torch.from_numpy(scale[rows] ** 2).to(hidden.device)[:, None]
        matrix = SparseMatrix(ends - ends[0], heard, values, (len(own), columns), hidden.device)
        return own + matrix @ hidden if self.design.own else matrix @ hidden

    def _noised(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        if self.design.theta == 0:
            return x
        return x + self.design.theta * torch.randn(x.shape, generator=generator, device=x.device)


def _pieces(size: int) -> Iterator[slice]:
    """Slices of :data:`ROWS` rows at a time."""
    return (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))
