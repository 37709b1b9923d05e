"""Training DGen on a client: reconstruct what is hidden at home, resemble what others have, and
help the classifier.

    L^n_i = 1/|V̄_i| Σ_v [ β^d L₁^S(ñ_v − n_v) + β^f Σ_p min_{u ∈ N̄_i(v)} ‖z̃^p_v − z'_u‖²
                                              + β^n Σ_{j ≠ i} Σ_p min_{z' ∈ Z'_j} ‖z̃^p_v − z'‖² ]

(FedDEP, Section 3.2), and L_i = L^n_i + L^c_i with the cross-entropy L^c_i of a classifier on the
mended impaired subgraph (Equation 3.1).  v runs over the remaining nodes V̄_i of the impaired
subgraph and p over the generated embeddings of v. The minimum over an empty N̄_i(v) is left out.

A minimum has the gradient of the distance to whatever attains it.  So each term is a distance to
the nearest target, and the targets are looked up beforehand, by one search for all nodes at once.
Distances and their gradients are computed a block of nodes at a time, so that no more than the
numbers of the targets is kept of each term.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, smooth_l1_loss

from feddep.graph.graph import Graph
from feddep.graph.impairing import Impaired
from feddep.graph.split import Split
from feddep.methods.feddep import GeneratorParameters
from feddep.methods.feddep.dgen import DGen, Generated
from feddep.methods.feddep.fused import FusedClassifier
from feddep.nn.sparse import SparseMatrix, graph_matrices
from feddep.training.divergence import check_finite
from feddep.training.learner import OPTIMIZERS
from feddep.utils import seeding


@dataclass(frozen=True, eq=False)
class Targets:
    """A target for each of g embeddings: the rows of ``candidates``, shape (k, d_z), that
    ``numbers``, (g,), names.

    ``targets[some]`` are those of some of them, shape (…, d_z), as of a tensor that holds them all.
    """

    candidates: Tensor
    numbers: Tensor

    def __getitem__(self, some: slice | Tensor) -> Tensor:
        return self.candidates[self.numbers[some]]


Search = Callable[[Tensor, Tensor], Sequence[Targets | Tensor]]
"""Finds what is nearest to each generated embedding among what each other client has.

Takes embeddings, shape (g, d_z), and which slots they fill, shape (n, S); returns the nearest that
each of the M − 1 others has.
"""

_BLOCK = 2**24  # distances that are held at once
# Coordinates of embeddings that are worked on at once, which a processor's cache holds.
_NUMBERS = 2**18


def nearest(points: Tensor, candidates: Tensor) -> Targets:
    """The one of ``candidates``, shape (k, d), at least one, that is nearest to each of ``points``,
    shape (g, d); detached.
    """
    points, candidates = points.detach(), candidates.detach()
    rows = max(1, _BLOCK // len(candidates))
    squares = candidates.square().sum(dim=1)  # ‖p − c‖² without ‖p‖², which is the same for all c
    found = [(squares - 2 * (block @ candidates.T)).argmin(dim=1) for block in points.split(rows)]
    return Targets(candidates, torch.cat(found))


def nearest_in(others: Sequence[Tensor]) -> Search:
    """A search in what is at hand: the prototypes Z'_j that the other clients have shared before
    (pseudo-FL).
    """
    return lambda embeddings, chosen: [nearest(embeddings, each) for each in others]


@torch.no_grad()
def nearest_hidden(generated: Generated, pairs: Tensor, targets: Tensor) -> tuple[Targets, Tensor]:
    """For each generated embedding of a node v, g in all, the nearest z'_u among v's hidden
    neighbours u.

    ``pairs`` are (v, u), int64, shape (P, 2), ``targets`` z'_u for all nodes u of the client's
    subgraph, shape (N, d_z).

    Returns:
        The nearest targets, any where a node has no hidden neighbours, and where it has some, bool,
        shape (g,); both detached.
    """
    # For example, node 0 has two generated embeddings, numbers 0 and 1, node 1 has one, number 2,
    # and the hidden neighbours of node 0 are 7 and 9, node 1 has none.  Pairs (0, 7) and (0, 9)
    # become (0, 7), (1, 7), (0, 9), (1, 9); embeddings 0 and 1 take the nearer of 7 and 9, and
    # embedding 2 has no target.
    embeddings, chosen = generated.embeddings, generated.chosen
    v, u = pairs.unbind(dim=1)
    pair, slot = chosen[v].nonzero().unbind(dim=1)
    place = (chosen.flatten().cumsum(dim=0) - 1).view_as(chosen)
    # From here on, pairs of an embedding and what it may resemble.
    v = place[v[pair], slot]
    u = u[pair]
    distances = embeddings.new_empty(len(v))
    for some in _blocks(len(v), embeddings.shape[1]):
        distances[some] = (embeddings[v[some]] - targets[u[some]]).square().sum(dim=1)
    least = distances.new_full((len(embeddings),), torch.inf).scatter_reduce(
        0, v, distances, "amin"
    )
    # Of equally near ones the first: positions of pairs are made to compete as distances did.
    position = torch.where(distances == least[v], torch.arange(len(v), device=v.device), len(v))
    first = position.new_full((len(embeddings),), len(v)).scatter_reduce(0, v, position, "amin")
    has = torch.isfinite(least)
    numbers = torch.zeros_like(first)
    numbers[has] = u[first[has]]
    return Targets(targets.detach(), numbers), has


def _blocks(rows: int, numbers: int) -> Iterator[slice]:
    """Rows a block at a time, each of so many numbers."""
    step = max(1, _NUMBERS // numbers)
    return (slice(start, start + step) for start in range(0, rows, step))


class _SquaredDistances(torch.autograd.Function):
    """Squared distances of embeddings z, shape (g, d_z), to the targets of each term: gives z
    again, then g numbers a term.

    Nothing but z and the targets is kept for the gradient.  It adds up in the order in which it
    would without blocks: what comes from whatever else reads z, then the terms from the last to the
    first.
    """

    @staticmethod
    def forward(
        ctx: Any, embeddings: Tensor, terms: Sequence[Targets | Tensor]
    ) -> tuple[Tensor, ...]:
        ctx.terms = terms
        ctx.save_for_backward(embeddings)
        ctx.set_materialize_grads(False)
        distances = [embeddings.new_empty(len(embeddings)) for _ in terms]
        for some in _blocks(*embeddings.shape):
            for term, of_term in zip(terms, distances, strict=True):
                of_term[some] = (embeddings[some] - term[some]).square().sum(dim=1)
        return embeddings.view_as(embeddings), *distances

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        (embeddings,) = ctx.saved_tensors
        rest, *of_terms = gradients
        terms = [
            (term, each) for term, each in zip(ctx.terms, of_terms, strict=True) if each is not None
        ]
        if not terms:
            return rest, None
        total = torch.empty_like(embeddings)
        for some in _blocks(*total.shape):
            z = embeddings[some]
            parts = [] if rest is None else [rest[some]]
            parts += [
                (2 * (z - term[some])).mul_(each[some].unsqueeze(1))
                for term, each in reversed(terms)
            ]
            total[some] = parts[0]
            for part in parts[1:]:
                total[some] += part
        return total, None


def squared_distances(
    embeddings: Tensor, terms: Sequence[Targets | Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Embeddings, shape (g, d_z), and their squared distances to the targets of each term, shape
    (g,) a term.

    Whatever else reads the embeddings shall read those that are returned, so that their gradient is
    added up in one place.
    """
    if not terms or not len(embeddings):
        return embeddings, [embeddings.new_zeros(len(embeddings)) for _ in terms]
    same, *distances = _SquaredDistances.apply(embeddings, terms)
    return same, distances


def mean_distance(squares: Tensor, chosen: Tensor, scale: str, width: int) -> Tensor:
    """1/n Σ_v Σ_p of ``squares``, shape (g,), in the slots ``chosen``, (n, S); by the authors'
    scale also divided by S · d_z.
    """
    nodes, slots = chosen.shape
    # With a zero for each empty slot, so that numbers are added up in an order that does not depend
    # on which are filled.
    total = squares.new_zeros(nodes, slots).masked_scatter(chosen, squares).sum() / max(nodes, 1)
    return total if scale == "paper" else total / (slots * width)


def generator_loss(
    generated: Generated,
    missing: Tensor,
    pairs: Tensor,
    targets: Tensor,
    search: Search,
    params: GeneratorParameters,
) -> tuple[Tensor, Generated]:
    """L^n_i of the module's docstring, and what was generated, for whatever else reads it
    (:func:`squared_distances`).

    ``generated`` is for the n remaining nodes, which truly miss n_v neighbours, ``missing``, shape
    (n,); ``pairs`` and ``targets`` are as for :func:`nearest_hidden`, and ``search`` finds the
    nearest that each other client has.
    """
    embeddings, chosen = generated.embeddings, generated.chosen
    loss = params.count_weight * smooth_l1_loss(generated.count, missing.to(generated.count.dtype))
    terms: list[tuple[float, Targets | Tensor, Tensor | float]] = []
    if params.intra_weight:
        terms.append((params.intra_weight, *nearest_hidden(generated, pairs, targets)))
    if params.cross_weight:
        terms += [
            (params.cross_weight, found, 1.0) for found in search(embeddings.detach(), chosen)
        ]
    embeddings, squares = squared_distances(embeddings, [found for _, found, _ in terms])
    for (weight, _, counted), of_term in zip(terms, squares, strict=True):
        loss = loss + weight * mean_distance(
            of_term * counted, chosen, params.scale, embeddings.shape[1]
        )
    return loss, dataclasses.replace(generated, embeddings=embeddings)


class Generator:
    """One client's DGen: trained on its impaired subgraph, applied to its whole subgraph."""

    def __init__(
        self, dgen: DGen, params: GeneratorParameters, seed: int, name: str, device: str = "cpu"
    ) -> None:
        """Set up ``dgen``, with its weights, for training; ``name`` names the random streams."""
        self._dgen = dgen.to(device)
        self._name = name
        self._params = params
        self._device = device
        self._draws = seeding.torch_generator(seed, name, "generator", device=device)

    def train(
        self,
        classifier: FusedClassifier,
        impaired: Impaired,
        split: Split,
        targets: Tensor,
        search: Search,
    ) -> list[float]:
        """Train DGen together with a classifier of the client's own; returns the loss L_i at each
        step.

        Args:
            classifier: the classifier of L^c_i, which gives DGen task-oriented supervision; it is
                trained as well.
            impaired: the impaired subgraph and what is missing from it.
            split: of the client's whole subgraph; hidden nodes are not trained on.
            targets: z'_u of all nodes of the whole subgraph.
            search: finds the nearest that each other client has.

        Raises:
            DivergenceError: if the loss or a weight is not a finite number after a step.
        """
        params, graph = self._params, impaired.graph
        x, mean = graph_matrices(graph, self._device)
        aggregate = SparseMatrix.from_scipy(classifier.aggregation(graph), self._device)
        missing, pairs = (
            torch.from_numpy(array).to(self._device) for array in (impaired.missing, impaired.pairs)
        )
        labelled = torch.from_numpy(split.restrict(impaired.kept).train).to(self._device)
        labels = torch.from_numpy(graph.labels).to(self._device)[labelled]
        classifier.to(self._device)
        both = [*self._dgen.parameters(), *classifier.parameters()]
        optimizer: Any = OPTIMIZERS[params.generator_optimizer](
            both, lr=params.generator_learning_rate
        )
        self._dgen.train()
        losses: list[float] = []
        for _ in range(params.generator_epochs):
            optimizer.zero_grad()
            generated = self._dgen(x, mean, params.bernoulli_rate, self._draws)
            self._check(f"in epoch {len(losses) + 1}", 0.0, [generated.embeddings, generated.count])
            loss, generated = generator_loss(generated, missing, pairs, targets, search, params)
            if params.task_weight and len(labelled):
                logits = classifier.full(x, aggregate, generated.mean(params.slots))
                loss = loss + params.task_weight * cross_entropy(logits[labelled], labels)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
            self._check(f"in epoch {len(losses)}", losses[-1], both)
        return losses

    @torch.no_grad()
    def mend(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """z̄_v of all nodes of a graph, shape (n, d_z), and ñ_v, shape (n,), from one draw of noise
        and selection.
        """
        self._dgen.eval()
        x, mean = graph_matrices(graph, self._device)
        generated = self._dgen(x, mean, self._params.bernoulli_rate, self._draws)
        mean = generated.mean(self._params.slots)
        self._check("after its training", 0.0, [mean, generated.count])
        return mean, generated.count

    def _check(self, when: str, loss: float, numbers: Iterable[Tensor]) -> None:
        check_finite(
            f"the generator of {self._name} {when}",
            loss,
            numbers,
            "lower generator_learning_rate or its weights",
        )
