"""DP-SGD (Abadi et al., 2016, Algorithm 1) for the classifiers of this benchmark, and noise on a whole update.

A step samples every training node with probability q (Poisson sampling, which the accounting assumes; shuffled batches of
fixed size have no such theorem), clips the gradient g_e of each example e, a node with its sampled tree, to norm C, and gives
the optimiser

    (Σ_e g_e · min(1, C / ‖g_e‖) + N(0, σ²C² I)) / (q n).

The gradients g_e are never made: on MSAcademic a batch of 32 of them would be 56 million numbers.  All weights here act by
y_r = a_r W, on the rows r of one or several inputs, so that g_e = Σ_{r ∈ e} a_rᵀ γ_r with γ_r = ∂ loss_e / ∂ y_r, and

    ‖g_e‖² = Σ_{r, s ∈ e} ⟨a_r, a_s⟩ ⟨γ_r, γ_s⟩,

from the inputs a and one backward pass that stops at the γ (Goodfellow, 2015, for one row an example; Li et al., 2022, "ghost
clipping", for several; Lee and Kifer, 2021, for other layers).  The clipped sum is Σ_r a_rᵀ (c_e γ_r), c_e = min(1, C / ‖g_e‖),
from the same rows (Bu et al., 2023, "book-keeping"), and needs no second backward pass.  So what is clipped is what is summed:
a parameter that has no rule here gets no gradient but stops the training, and none can slip past the clipping.

Neither Opacus nor ``torch.func`` fits.  Opacus hooks ``nn.Linear`` and its like, takes their dense inputs to hold one entry an
example in the first dimension, and otherwise makes the g_e; ``torch.func`` makes them too, and cannot batch an autograd
function that has no rule for it.  Here the first layer is such a function on a sparse matrix, and examples differ in rows.

Noise comes from the run's seed, by a generator that is not a cryptographic one, in single precision: results can be
reproduced, as a benchmark's must, and for the same reason this is no implementation to protect real data with.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from feddep import seeding
from feddep.federation.boundary import Payload
from feddep.graph import Graph
from feddep.nn.features import FeatureTable
from feddep.nn.fused import FusedLayer, FusedSAGE, MendedTable
from feddep.nn.sage import SAGEConv
from feddep.nn.sparse import SparseMatrix
from feddep.sampling import NOBODY, sample_trees
from feddep.settings import Setting


@dataclass(frozen=True)
class Privacy:
    """How much noise.

    Attributes:
        sigma: noise multiplier σ: the noise's standard deviation as a multiple of ``clip``; 0 only clips.
        clip: clipping norm C.

    Raises:
        ValueError: if a value is outside its range.
    """

    sigma: float = 2.0
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise ValueError(f"sigma is {self.sigma}; it must be a number of at least 0")
        if not (math.isfinite(self.clip) and self.clip > 0):
            raise ValueError(f"clip is {self.clip}; it must be a number above 0")


class PrivateLearner:
    """Trains a classifier on the training nodes of one graph by DP-SGD; in place of a :class:`feddep.training.Learner`.

    The classifier is a :class:`~feddep.nn.sage.GraphSAGE`, or an embedding-fused one where there are mended embeddings.

    The weights are what the guarantee is about.  The loss that :meth:`epoch` returns is exact, and not covered.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: np.ndarray,
        setting: Setting,
        seed: int,
        name: str,
        device: str = "cpu",
        table: FeatureTable | MendedTable | None = None,
        *,
        privacy: Privacy,
    ) -> None:
        """Prepare for training.

        Args:
            graph: the graph that neighbours are drawn from.
            nodes: training nodes.
            setting: batch size, which is the expected one here, fan-out and number of layers are used.
            seed: the run's seed.
            name: names the learner's streams, for example ``client3``.
            device: where tensors live.
            table: the inputs of nodes, as the models to come look them up; without one, the graph's features.
            privacy: clipping norm and noise.
        """
        self._graph = graph
        self._nodes = nodes
        self._setting = setting
        self._privacy = privacy
        self._table = FeatureTable(graph.features, setting.fanout, device) if table is None else table
        self._labels = torch.from_numpy(graph.labels).to(device)
        self._sampling = seeding.generator(seed, name, "sampling")
        self._dropout = torch.Generator(device).manual_seed(seeding.derive_seed(seed, name, "dropout"))
        self._noise = torch.Generator(device).manual_seed(seeding.derive_seed(seed, name, "noise"))
        self.steps = 0
        """Steps taken so far, those on an empty batch included: the T of the accounting."""

    @property
    def size(self) -> int:
        """Number of training nodes n."""
        return len(self._nodes)

    @property
    def rate(self) -> float:
        """Probability q that a training node is in a batch: the batch size as a share of n, at most 1; 0 without nodes."""
        return self._expected / max(self.size, 1)

    @property
    def steps_per_epoch(self) -> int:
        """As many steps as there would be mini-batches."""
        return -(-self.size // self._setting.batch_size)

    @property
    def _expected(self) -> int:
        """Expected number of examples in a batch, q n."""
        return min(self._setting.batch_size, self.size)

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """Take the steps of one epoch; return the mean loss of the examples that were sampled, in nats; 0 if none was."""
        setting = self._setting
        batches = [self._draw_batch() for _ in range(self.steps_per_epoch)]
        roots = np.concatenate([self._nodes[:0], *batches])
        trees = sample_trees(self._graph, roots, setting.fanout, setting.layers, self._sampling)
        labels = self._labels[torch.from_numpy(roots).to(self._labels.device)]
        total, start = torch.zeros((), device=labels.device), 0
        for batch in batches:
            members = slice(start, start + len(batch))
            total += self._step(model, trees[members], labels[members])
            optimizer.step()
            self.steps += 1
            start += len(batch)
        return float(total) / max(len(roots), 1)

    def _draw_batch(self) -> np.ndarray:
        """The training nodes of one batch, each of which is in it with probability exactly q."""
        return self._nodes[self._sampling.integers(self.size, size=self.size) < self._expected]

    def _step(self, model: nn.Module, trees: np.ndarray, labels: Tensor) -> Tensor:
        """Set the gradients of the parameters for one batch; returns the sum of its losses."""
        privacy, scale = self._privacy, 1 / self._expected
        start_gradients(model, privacy.sigma * privacy.clip * scale, self._noise)
        if not len(trees):
            return labels.new_zeros((), dtype=torch.float32)
        with recorded(model, trees, self._table, self._graph.num_nodes) as record:
            losses = cross_entropy(record.classify(self._dropout), labels, reduction="none")
        add_clipped(model, record.products, losses, privacy.clip, scale)
        return losses.detach().sum()


def start_gradients(model: nn.Module, deviation: float, generator: torch.Generator) -> None:
    """Set the gradient of every parameter to noise N(0, ``deviation``²), or to zero for a deviation of 0."""
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter)
        if deviation > 0:
            parameter.grad.normal_(0, deviation, generator=generator)
        else:
            parameter.grad.zero_()


class Examples:
    """To which example each row belongs; rows are ordered by example, each may have another number of them."""

    def __init__(self, of_row: np.ndarray, batch: int, device: torch.device) -> None:
        """Lay the rows of each example out in a grid of shape (B, P), where P is the most that one has.

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
        """⟨a_r, a_s⟩ for all rows r and s of the same example, shape (B, P, P); 0 where an example has no such rows."""
        if isinstance(rows, SparseMatrix):
            return self._sparse_gram(rows)
        if not self._full:
            rows = rows.new_zeros(math.prod(self._shape), rows.shape[1]).index_copy_(0, self._place, rows)
        rows = rows.view(*self._shape, -1)
        return rows @ rows.transpose(1, 2)

    def _sparse_gram(self, rows: SparseMatrix) -> Tensor:
        values, columns, starts = rows._arrays
        batch, most = self._shape
        # Each example gets columns of its own: the product of all rows with all rows then holds the wanted pairs only.
        width = rows.shape[1]
        apart = columns + np.repeat(self._of_row * width, np.diff(starts))
        matrix = sp.csr_matrix((values, apart, starts), shape=(rows.shape[0], batch * width))
        product = (matrix @ matrix.T).tocoo()
        gram = np.zeros((batch, most, most), dtype=np.float32)
        gram[self._of_row[product.row], self._position[product.row], self._position[product.col]] = product.data
        return self._tensor(gram)


@dataclass(frozen=True)
class Factor:
    """What one parameter does: y_r += a_r W, or y_r += b where there is no input.

    Attributes:
        parameter: the parameter.
        inputs: the rows a_r, shape (R, I); none for a bias.
        first: W is the I rows of ``parameter`` from this one on.
    """

    parameter: nn.Parameter
    inputs: Tensor | SparseMatrix | None
    first: int = 0

    def gram(self, examples: Examples) -> Tensor | float:
        """⟨a_r, a_s⟩, as :meth:`Examples.gram`."""
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
class Product:
    """One place in a model where parameters act: y_r is the sum of some factors.

    Attributes:
        outputs: the y_r, shape (R, O).
        factors: what adds up to it.
        examples: the examples that the rows r belong to.
    """

    outputs: Tensor
    factors: Sequence[Factor]
    examples: Examples

    def squared_norms(self, gradients: Tensor) -> Tensor:
        """Each example's share of ‖g_e‖², shape (B,), from the γ_r, shape (R, O)."""
        inputs = sum(factor.gram(self.examples) for factor in self.factors)
        return (inputs * self.examples.gram(gradients)).sum(dim=(1, 2))


def add_clipped(model: nn.Module, products: Sequence[Product], losses: Tensor, clip: float, scale: float = 1.0) -> Tensor:
    """Add ``scale`` · Σ_e g_e · min(1, C / ‖g_e‖) to the gradients of the parameters of ``model``.

    Args:
        model: the classifier.
        products: all places where its parameters acted.
        losses: loss of each example, shape (B,).
        clip: clipping norm C.
        scale: a factor.

    Returns:
        The norms ‖g_e‖, shape (B,).

    Raises:
        TypeError: if some parameter acted elsewhere, so that its gradient cannot be clipped.
    """
    known = {id(factor.parameter) for product in products for factor in product.factors}
    for name, parameter in model.named_parameters():
        if id(parameter) not in known:
            raise TypeError(f"DP-SGD has no rule for the parameter {name} of {type(model).__name__}")
    gradients = torch.autograd.grad(losses.sum(), [product.outputs for product in products])
    with torch.no_grad():
        squares = sum(product.squared_norms(each) for product, each in zip(products, gradients, strict=True))
        norms = torch.as_tensor(squares).clamp(min=0).sqrt()
        shares = scale * clip / norms.clamp(min=clip)
        for product, each in zip(products, gradients, strict=True):
            weighted = each * shares[product.examples.of_row].unsqueeze(1)
            for factor in product.factors:
                factor.add_gradient(weighted)
    return norms


class Record:
    """A batch whose examples share no row in any layer, and what its parameters did to it."""

    def __init__(self, model: nn.Module, trees: np.ndarray, table: Any, num_nodes: int) -> None:
        self._model = model
        self._table = _Apart(table, num_nodes)
        self._trees = self._table.rename(trees)
        self.products: list[Product] = []

    def classify(self, generator: torch.Generator | None) -> Tensor:
        """The model's logits, shape (B, C); ``generator`` gives the dropout masks."""
        return self._model(self._trees, self._table, generator)

    def note(self, module: Any, inputs: tuple[Any, ...], outputs: Tensor) -> None:
        """Remember what a convolution got and gave; a forward hook."""
        batch, rows = len(self._trees), len(outputs)
        by_node = inputs[0] is self._table.looked_up
        of_row = self._table.examples if by_node else np.repeat(np.arange(batch), rows // batch)
        if isinstance(module, FusedLayer):
            factors = _factors_of_fused(module, *inputs)
        else:
            factors = [Factor(module.weight, _detached(inputs[0])), Factor(module.bias, None)]
            if isinstance(self._model, FusedSAGE):
                # Z^k z̄_v is added to what the convolution gives, so the gradient there is the one that Z^k gets.
                fusion = self._model.fusions[self._model.convolutions.index(module)]
                factors.append(Factor(fusion, self._table.embeddings(self._trees[:, : rows // batch].ravel())))
        self.products.append(Product(outputs, factors, Examples(of_row, batch, outputs.device)))


@contextmanager
def recorded(model: nn.Module, trees: np.ndarray, table: Any, num_nodes: int) -> Iterator[Record]:
    """Record what the parameters of ``model`` do while :meth:`Record.classify` classifies a batch.

    Args:
        model: a GraphSAGE or an embedding-fused classifier.
        trees: sampled neighbourhoods, shape (B, (1 + d)^L), at least one.
        table: the features, for an embedding-fused classifier also the mended embeddings, of their nodes.
        num_nodes: number of nodes n of the graph.
    """
    record = Record(model, trees, table, num_nodes)
    handles = [
        module.register_forward_hook(record.note) for module in model.modules() if isinstance(module, SAGEConv | FusedLayer)
    ]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _factors_of_fused(layer: FusedLayer, x: Tensor | SparseMatrix, z: Tensor) -> list[Factor]:
    return [Factor(layer.weight, _detached(x)), Factor(layer.weight, z, layer.widths[0])]


def _detached(inputs: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
    return inputs.detach() if isinstance(inputs, Tensor) else inputs


class _Apart:
    """Stands before a table of features: node v of example e bears the number e·n + v, so that examples have no node in common.

    A model that computes a layer once for each node of a batch, such as :class:`feddep.nn.fused.FusedGNN`, then does so once
    for each node of an example.
    """

    def __init__(self, table: Any, num_nodes: int) -> None:
        self._table = table
        self._num_nodes = num_nodes
        self.looked_up: SparseMatrix | None = None
        """What :meth:`own` returned last."""
        self.examples = np.empty(0, dtype=np.int64)
        """The example of each of its rows."""

    def rename(self, trees: np.ndarray) -> np.ndarray:
        """Trees of a batch, shape (B, …), with the nodes' new numbers."""
        first = np.arange(len(trees), dtype=np.int64) * self._num_nodes
        return np.where(trees == NOBODY, NOBODY, trees + first[:, None])

    def _known_as(self, nodes: np.ndarray) -> np.ndarray:
        return np.where(nodes == NOBODY, NOBODY, nodes % self._num_nodes)

    def own(self, nodes: np.ndarray) -> SparseMatrix:
        self.examples = np.maximum(nodes, 0) // self._num_nodes  # a row for nobody is zero, whose ever it is
        self.looked_up = self._table.own(self._known_as(nodes))
        return self.looked_up

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> SparseMatrix:
        return self._table.joined(self._known_as(own), self._known_as(neighbours))

    def embeddings(self, nodes: np.ndarray) -> Tensor:
        return self._table.embeddings(self._known_as(nodes))


def privatise(update: Payload, clip: float, sigma: float, generator: torch.Generator) -> Payload:
    """Clip all of an update at once to norm C and add noise: u · min(1, C / ‖u‖) + N(0, σ²C² I).

    This hides the whole of what a client has learned, where DP-SGD hides one example.  FedGNN (Wu et al., 2022) protects what
    its clients send in this way, but cuts each number off at ±C and adds Laplace noise; the σ that FedDEP names for it (Section
    4.1) is that of a Gaussian, whose sensitivity is the norm.

    Args:
        update: the numbers to send, by name.
        clip: clipping norm C of the whole update.
        sigma: noise multiplier σ.
        generator: source of the noise, on the device of the tensors.

    Raises:
        ValueError: if ``clip`` or ``sigma`` is outside its range, or the update has no norm.
    """
    privacy = Privacy(sigma, clip)
    norm = math.sqrt(sum(float(tensor.double().square().sum()) for tensor in update.values()))
    if not math.isfinite(norm):
        raise ValueError(f"the update has the norm {norm}; only finite numbers can be clipped")
    share = min(1.0, privacy.clip / norm) if norm else 1.0
    deviation = privacy.sigma * privacy.clip
    return {
        name: tensor * share + deviation * torch.empty_like(tensor).normal_(generator=generator)
        for name, tensor in update.items()
    }
