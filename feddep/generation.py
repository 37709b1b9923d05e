"""Training DGen on a client: reconstruct what is hidden at home, resemble what others have, and help the classifier.

    L^n_i = 1/|V̄_i| Σ_v [ β^d L₁^S(ñ_v − n_v) + β^f Σ_p min_{u ∈ N̄_i(v)} ‖z̃^p_v − z'_u‖²
                                              + β^n Σ_{j ≠ i} Σ_p min_{z' ∈ Z'_j} ‖z̃^p_v − z'‖² ]

(FedDEP, Section 3.2), and L_i = L^n_i + L^c_i with the cross-entropy L^c_i of a classifier on the mended impaired subgraph
(Equation 3.1).  v runs over the remaining nodes V̄_i of the impaired subgraph and p over the generated embeddings of v.
The minimum over an empty N̄_i(v) is left out.

A minimum has the gradient of the distance to whatever attains it.  So each term is a distance to the nearest target, and
the targets are looked up beforehand, by one search for all nodes at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, smooth_l1_loss

from feddep import seeding
from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.impairing import Impaired
from feddep.nn.dgen import DGen, Generated, Slots
from feddep.nn.fused import FusedClassifier
from feddep.nn.sparse import SparseMatrix
from feddep.splits import Split
from feddep.training import OPTIMIZERS

Scale = Literal["paper", "authors"]
"""``paper``: squared distances, summed over a node's embeddings; ``authors``: their mean over slots and coordinates."""

Search = Callable[[Tensor, Tensor], Tensor]
"""Finds what is nearest to each generated embedding among what each other client has.

Takes embeddings, shape (n, S, d_z), and which of them count, shape (n, S); returns the nearest, shape (M − 1, n, S, d_z).
"""

_BLOCK = 2**24
"""At most so many distances are held at once."""


@dataclass(frozen=True)
class LossWeights:
    """Weights of the four terms; FedDEP, Section 4.1: all are 1.

    Attributes:
        count: β^d, of the number of missing neighbours.
        intra: β^f, of the reconstruction of the client's own hidden nodes.
        cross: β^n, of the resemblance to what other clients have.
        task: of the cross-entropy of the classifier.
    """

    count: float = 1.0
    intra: float = 1.0
    cross: float = 1.0
    task: float = 1.0


@dataclass(frozen=True)
class GeneratorTraining:
    """How DGen and the classifier beside it are trained, full-batch.

    Attributes:
        epochs: number of steps.
        optimizer: ``sgd`` or ``adam``.
        learning_rate: step size.
        rate: probability r of the Bernoulli sampler.
        slots: what a node's embeddings are averaged over.
        scale: how distances are measured.
        weights: weights of the terms of the loss.
    """

    epochs: int
    optimizer: str
    learning_rate: float
    rate: float
    slots: Slots
    scale: Scale
    weights: LossWeights


def nearest(points: Tensor, candidates: Tensor) -> Tensor:
    """The candidate nearest to each point; shape of ``points``, detached.

    Args:
        points: shape (…, d).
        candidates: shape (k, d), at least one.
    """
    flat = points.detach().reshape(-1, points.shape[-1])
    rows = max(1, _BLOCK // len(candidates))
    squares = candidates.square().sum(dim=1)  # ‖p − c‖² without ‖p‖², which is the same for all c
    found = [(squares - 2 * (block @ candidates.T)).argmin(dim=1) for block in flat.split(rows)]
    return candidates.detach()[torch.cat(found)].view(points.shape)


def nearest_in(others: Sequence[Tensor]) -> Search:
    """A search in what is at hand: the prototypes Z'_j that the other clients have shared before (pseudo-FL)."""

    def search(embeddings: Tensor, chosen: Tensor) -> Tensor:
        if not others:
            return embeddings.new_zeros(0, *embeddings.shape)
        return torch.stack([nearest(embeddings, candidates) for candidates in others])

    return search


def nearest_hidden(embeddings: Tensor, pairs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """For each generated embedding of v the nearest z'_u among v's hidden neighbours u.

    Args:
        embeddings: generated embeddings, shape (n, S, d_z).
        pairs: (v, u) for each hidden neighbour u of v, int64, shape (P, 2).
        targets: z'_u for all nodes u of the client's subgraph, shape (N, d_z).

    Returns:
        The nearest targets, shape (n, S, d_z), and which nodes have any, bool, shape (n,); both detached.
    """
    with torch.no_grad():
        v, u = pairs.unbind(dim=1)
        count, slots = embeddings.shape[:2]
        row = v.unsqueeze(1).expand(-1, slots)
        distances = (embeddings[v] - targets[u].unsqueeze(1)).square().sum(dim=2)
        least = distances.new_full((count, slots), torch.inf).scatter_reduce(0, row, distances, "amin")
        # Of equally near ones the first: positions of pairs are made to compete as distances did.
        position = torch.arange(len(v), device=v.device).unsqueeze(1).expand(-1, slots)
        position = torch.where(distances == least[v], position, len(v))
        first = position.new_full((count, slots), len(v)).scatter_reduce(0, row, position, "amin")
        has = torch.isfinite(least[:, 0])
        found = torch.zeros_like(embeddings)
        found[has] = targets[u[first[has]]]
        return found, has


def distance(embeddings: Tensor, found: Tensor, counted: Tensor, scale: Scale) -> Tensor:
    """1/n Σ_v Σ_p ‖z̃^p_v − nearest‖² over the slots that count; with ``scale`` "authors" divided by S · d_z as well.

    Args:
        embeddings: shape (n, S, d_z).
        found: the nearest target of each, shape (n, S, d_z).
        counted: bool, shape (n, S).
        scale: how distances are measured.
    """
    nodes, slots, width = embeddings.shape
    total = ((embeddings - found).square().sum(dim=2) * counted).sum() / max(nodes, 1)
    return total if scale == "paper" else total / (slots * width)


def generator_loss(
    generated: Generated, missing: Tensor, pairs: Tensor, targets: Tensor, search: Search, weights: LossWeights, scale: Scale
) -> Tensor:
    """L^n_i of the module's docstring.

    Args:
        generated: what DGen generates for the remaining nodes.
        missing: true number n_v of hidden neighbours, shape (n,).
        pairs: (v, u) for each hidden neighbour u of v, int64, shape (P, 2).
        targets: z'_u of the nodes of the client's own subgraph, shape (N, d_z).
        search: finds the nearest that each other client has.
        weights: weights of the terms.
        scale: how distances are measured.
    """
    embeddings, chosen = generated.embeddings, generated.chosen
    loss = weights.count * smooth_l1_loss(generated.count, missing.to(generated.count.dtype))
    if weights.intra:
        found, has = nearest_hidden(embeddings, pairs, targets)
        loss = loss + weights.intra * distance(embeddings, found, chosen & has.unsqueeze(1), scale)
    if weights.cross:
        for found in search(embeddings.detach(), chosen):
            loss = loss + weights.cross * distance(embeddings, found, chosen, scale)
    return loss


class Generator:
    """One client's DGen: trained on its impaired subgraph, applied to its whole subgraph."""

    def __init__(self, dgen: DGen, how: GeneratorTraining, seed: int, name: str, device: str = "cpu") -> None:
        """Set up.

        Args:
            dgen: the network, with its weights.
            how: optimisation.
            seed: the run's seed.
            name: names the random streams, for example ``client3``.
            device: where tensors live.
        """
        self._dgen = dgen.to(device)
        self._how = how
        self._device = device
        self._draws = torch.Generator(device).manual_seed(seeding.derive_seed(seed, name, "generator"))

    def train(
        self, classifier: FusedClassifier, impaired: Impaired, split: Split, targets: Tensor, search: Search
    ) -> list[float]:
        """Train DGen together with a classifier of the client's own; returns the loss L_i at each step.

        Args:
            classifier: the classifier of L^c_i, which gives DGen task-oriented supervision; it is trained as well.
            impaired: the impaired subgraph and what is missing from it.
            split: training nodes of the client's whole subgraph; those that are hidden are not trained on.
            targets: z'_u of all nodes of the whole subgraph.
            search: finds the nearest that each other client has.
        """
        how, graph = self._how, impaired.graph
        x, mean = self._matrices(graph)
        aggregate = SparseMatrix.from_scipy(classifier.aggregation(graph), self._device)
        missing, pairs = (torch.from_numpy(array).to(self._device) for array in (impaired.missing, impaired.pairs))
        labelled = torch.from_numpy(split.restrict(impaired.kept).train).to(self._device)
        labels = torch.from_numpy(graph.labels).to(self._device)[labelled]
        classifier.to(self._device)
        both = [*self._dgen.parameters(), *classifier.parameters()]
        optimizer: Any = OPTIMIZERS[how.optimizer](both, lr=how.learning_rate)
        self._dgen.train()
        losses = []
        for _ in range(how.epochs):
            optimizer.zero_grad()
            generated = self._dgen(x, mean, how.rate, self._draws)
            loss = generator_loss(generated, missing, pairs, targets, search, how.weights, how.scale)
            if how.weights.task and len(labelled):
                logits = classifier.full(x, aggregate, generated.mean(how.slots))
                loss = loss + how.weights.task * cross_entropy(logits[labelled], labels)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        return losses

    @torch.no_grad()
    def mend(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """z̄_v of all nodes of a graph, shape (n, d_z), and ñ_v, shape (n,), from one draw of noise and selection."""
        self._dgen.eval()
        x, mean = self._matrices(graph)
        generated = self._dgen(x, mean, self._how.rate, self._draws)
        return generated.mean(self._how.slots), generated.count

    def _matrices(self, graph: Graph) -> tuple[SparseMatrix, SparseMatrix]:
        matrices = (graph.features, mean_adjacency(graph))
        x, mean = (SparseMatrix.from_scipy(matrix, self._device) for matrix in matrices)
        return x, mean
