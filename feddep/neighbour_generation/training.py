"""Training a client's NeighGen on its impaired subgraph, and mending its subgraph with it.

    L^n_i = λ^d 1/|V̄| Σ_v L₁^S(ñ_v − n_v) + λ^f L^f_i                                                          (Equation 4)
    L^f_i = 1/|V̄| Σ_v Σ_{p ≤ ñ_v} [ min_{u ∈ N(v) ∩ V^h} ‖x̃_v^p − x_u‖² + α Σ_{j ≠ i} min_{u ∈ V_j} ‖x̃_v^p − x_u‖² ]     (6)
    L_i   = L^n_i + λ^c L^c_i                                                                                  (5)

(FedSage, Sections 4.1 to 4.3).  v runs over V_i^t, the nodes of the impaired subgraph that are sampled in epoch t (Algorithm
1, line 22), V^h are the hidden nodes, and the minimum over an empty set is left out.  L^c is the cross-entropy of a GraphSAGE
on the mended impaired subgraph, in which all nodes have generated neighbours that the logits of V_i^t depend on.

The terms of other clients j come as gradients (:mod:`feddep.neighbour_generation.federated`).  A minimum has the gradient of
the distance to whatever attains it, so each term is a distance to a target that is searched for beforehand.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, smooth_l1_loss

from feddep import seeding
from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.halo import within
from feddep.impairing import HiddenFrom, Impaired, impair
from feddep.neighbour_generation.nearest import Nearest
from feddep.neighbour_generation.subgraph import Surroundings, attach
from feddep.nn.neighgen import Generated, NeighGen
from feddep.nn.sparse import SparseMatrix
from feddep.problem import Part, Problem
from feddep.splits import Split
from feddep.training import OPTIMIZERS

Scale = Literal["paper", "authors"]
"""``paper``: squared distances, summed over a node's neighbours; ``authors``: their mean over slots and coordinates."""

Ask = Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]
"""Sends a request to the other clients, the weights of H^g and the embeddings of V_i^t; gives the sum of their gradients."""

_NODES = 1024
"""Neighbours are generated for so many nodes at once."""


@dataclass(frozen=True)
class Training:
    """How NeighGen is built and trained: every choice that FedSage+ leaves open.  "Code" is that of its authors.

    Attributes:
        hidden_share: share h of nodes that impairing hides.  Paper: from 3.4 % to 27.8 %, and 15 % where it studies α.
        hidden_from: the nodes that may be hidden.  Paper: any (``all``); code: half of the validation nodes (``validation``).
        max_generated: most neighbours S generated for a node.  Code: 5.
        embedding: width d_z.  Code: 128.
        generator_width: width of fGen's last hidden layer.  Code: 2048, which for the 6,805 features of MSAcademic makes a
            layer of 70 million weights, sent 2 M² times an epoch.  Paper: depths may vary with the dataset, and very few
            layers suffice (Appendix D.1).  Ours is as wide as the embeddings.
        local_epochs: epochs in which NeighGen is trained alone, before the others take part.  Code: 20; Algorithm 1: none.
        federated_epochs: epochs e_g of Algorithm 1.  Code: 20.
        generator_batch: nodes V_i^t sampled in an epoch, which is one step.  Paper: batch size 64, not said of what; code:
            all training nodes.  What is generated for them and their neighbours is in memory at once.
        generator_learning_rate: step size of Adam.  Paper and code: 0.001.
        generator_weight_decay: Code: 0.0001.
        scale: squared distances as the ``paper`` writes them, or their mean over slots and coordinates (``authors``).
        count_weight: λ^d.  Paper: all weights are 1.
        feature_weight: λ^f.
        cross_weight: α, of the terms of other clients in L^f.  Paper: 1.
        task_weight: λ^c, of the cross-entropy.
    """

    hidden_share: float = 0.15
    hidden_from: HiddenFrom = "all"
    max_generated: int = 5
    embedding: int = 128
    generator_width: int = 128
    local_epochs: int = 20
    federated_epochs: int = 20
    generator_batch: int = 64
    generator_learning_rate: float = 0.001
    generator_weight_decay: float = 0.0001
    scale: Scale = "paper"
    count_weight: float = 1.0
    feature_weight: float = 1.0
    cross_weight: float = 1.0
    task_weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        for name in ("max_generated", "embedding", "generator_width", "generator_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("local_epochs", "federated_epochs", "generator_weight_decay", "cross_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0")
        if not 0 <= self.hidden_share < 1:
            raise ValueError("hidden_share must be from 0 to below 1")
        if self.generator_learning_rate <= 0:
            raise ValueError("generator_learning_rate must be above 0")


def impair_client(problem: Problem, how: Training, number: int, client: Part) -> Impaired:
    """Hide some of a client's nodes."""
    return impair(*client, how.hidden_share, how.hidden_from, seeding.generator(problem.seed, f"client{number}", "impairing"))


def new_neighgen(problem: Problem, how: Training, *stream: str) -> NeighGen:
    """A NeighGen whose initial weights come from the stream ``stream`` of the run."""
    setting, features = problem.setting, problem.graph.num_features
    neighgen = NeighGen(
        features, setting.hidden, how.embedding, setting.layers, how.max_generated, how.generator_width, setting.dropout
    )
    neighgen.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(problem.seed, *stream, "neighgen", "weights")))
    return neighgen.to(problem.device)


def distance(features: Tensor, targets: Tensor, nodes: int, slots: int, scale: Scale) -> Tensor:
    """1/n Σ ‖x̃ − target‖² over the generated neighbours of n nodes; with ``scale`` "authors" divided by S · F as well.

    Args:
        features: x̃, shape (g, F).
        targets: what each is to resemble, shape (g, F).
        nodes: number of nodes n, with and without generated neighbours.
        slots: most neighbours S that a node may have.
        scale: how distances are measured.
    """
    total = (features - targets).square().sum() / nodes
    return total if scale == "paper" else total / (slots * features.shape[1])


class HiddenNeighbours:
    """N(v) ∩ V^h, the hidden neighbours of each remaining node v: what NeighGen is to reconstruct."""

    def __init__(self, features: sp.csr_matrix, impaired: Impaired, device: str = "cpu") -> None:
        """Look them up.

        Args:
            features: features of the client's whole subgraph, shape (N, F).
            impaired: what is hidden.
            device: where tensors live.
        """
        v, u = impaired.pairs[:, 0], np.searchsorted(impaired.hidden, impaired.pairs[:, 1])
        shape = (len(impaired.kept), len(impaired.hidden))
        self._lost = sp.csr_matrix((np.ones(len(v), dtype=np.int8), (v, u)), shape=shape)
        self._features = features[impaired.hidden]
        self._device = device

    def nearest(self, points: Tensor, nodes: np.ndarray) -> Tensor:
        """The features nearest to each generated neighbour among the hidden neighbours of the node it is for; shape (g, F).

        Args:
            points: x̃, shape (g, F).
            nodes: remaining node v that each is for, which has hidden neighbours, shape (g,).
        """
        lost = self._lost[nodes]
        columns = np.unique(lost.indices)
        return Nearest(self._features[columns], self._device).nearest(points, lost[:, columns].toarray() > 0)


def local_loss(generated: Generated, nodes: np.ndarray, missing: Tensor, hidden: HiddenNeighbours, how: Training) -> Tensor:
    """L^n of the module's docstring, without the terms of other clients.

    Args:
        generated: what is generated for the sampled nodes, n of them.
        nodes: the sampled nodes, in the impaired subgraph, shape (n,).
        missing: n_v, the true number of hidden neighbours of each, shape (n,).
        hidden: the hidden neighbours.
        how: weights and scale.
    """
    loss = how.count_weight * smooth_l1_loss(generated.count, missing.to(generated.count.dtype))
    known = missing[generated.owner] > 0
    if how.feature_weight and known.any():
        features = generated.features[known]
        targets = hidden.nearest(features.detach(), nodes[generated.owner[known].cpu().numpy()])
        loss = loss + how.feature_weight * distance(features, targets, len(nodes), how.max_generated, how.scale)
    return loss


def part_of(generated: Generated, places: np.ndarray) -> Generated:
    """What is generated for some of the nodes only: those at ``places``, ascending."""
    device = generated.owner.device
    chosen = torch.from_numpy(places).to(device)
    position = torch.full((len(generated.count),), -1, dtype=torch.int64, device=device)
    position[chosen] = torch.arange(len(places), device=device)
    owner = position[generated.owner]
    kept = owner >= 0
    return Generated(generated.count[chosen], owner[kept], generated.features[kept])


class NeighGenTrainer:
    """One client's NeighGen, and the classifier that is trained beside it and thrown away afterwards."""

    def __init__(
        self, problem: Problem, how: Training, number: int, client: Part, impaired: Impaired, neighgen: NeighGen
    ) -> None:
        """Prepare for training; neighbourhoods are full, dropout, noise and samples come from the client's own streams.

        Args:
            problem: the run.
            how: how to train.
            number: the client's number i.
            client: its subgraph G_i and split.
            impaired: its impaired subgraph Ḡ_i.
            neighgen: the network with its initial weights.
        """
        graph, split = client
        seed, device, name = problem.seed, problem.device, f"client{number}"
        self.neighgen = neighgen
        self.classifier = problem.new_model()
        self.batch = min(how.generator_batch, len(impaired.kept))
        """Number of nodes sampled in an epoch, |V_i^t|."""
        self._how = how
        self._hops = problem.setting.layers - 1
        self._whole = graph
        self._graph = impaired.graph
        self._device = device
        self._x, self._mean = self._matrices(impaired.graph)
        self._hidden = HiddenNeighbours(graph.features, impaired, device)
        self._missing = torch.from_numpy(impaired.missing).to(device)
        self._labels = _training_labels(impaired, split).to(device)
        self._sampling = seeding.generator(seed, name, "neighgen", "sampling")
        self._draws = torch.Generator(device).manual_seed(seeding.derive_seed(seed, name, "neighgen"))
        self.renew_optimizer()

    def renew_optimizer(self) -> None:
        """Start with a new optimiser: Adam (FedSage, Section 5.1) of all weights, the classifier's included."""
        weights = [*self.neighgen.parameters(), *self.classifier.parameters()]
        how = self._how
        self._optimizer: torch.optim.Optimizer = OPTIMIZERS["adam"](
            weights, lr=how.generator_learning_rate, weight_decay=how.generator_weight_decay
        )

    def step(self, ask: Ask | None = None) -> float:
        """One epoch t: sample V_i^t and take one step; returns the loss L_i, without what other clients compute.

        Args:
            ask: asks the other clients for their gradients; without it, NeighGen is trained on the client alone.
        """
        how = self._how
        self.neighgen.train()
        self._optimizer.zero_grad()
        nodes = np.sort(self._sampling.permutation(self._graph.num_nodes)[: self.batch])
        near = within(self._graph, nodes, self._hops) if how.task_weight else nodes
        places = np.searchsorted(near, nodes)
        z = self.neighgen.encoder(self._x, self._mean, self._draws)[self._tensor(near)]
        generated = self.neighgen.generator(z, self._draws)
        loss = local_loss(part_of(generated, places), nodes, self._missing[self._tensor(nodes)], self._hidden, how)
        if how.task_weight:
            loss = loss + how.task_weight * self._task_loss(generated, near, nodes)
        loss.backward()
        if ask is not None:
            request = {**self.neighgen.generator.state_dict(), "embeddings": z[self._tensor(places)].detach()}
            weight = how.feature_weight * how.cross_weight
            for key, gradient in ask(request).items():
                parameter = self.neighgen.generator.get_parameter(key)
                own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = own.add_(gradient, alpha=weight)
        self._optimizer.step()
        return float(loss.detach())

    def _task_loss(self, generated: Generated, near: np.ndarray, nodes: np.ndarray) -> Tensor:
        """L^c, the mean cross-entropy of those of ``nodes`` that are training nodes; zero where there are none."""
        labels = self._labels[self._tensor(nodes)]
        if not (labels >= 0).any():
            return labels.new_zeros((), dtype=torch.float32)
        mended = attach(self._graph, near[generated.owner.cpu().numpy()])
        around = Surroundings(mended, self._graph.num_nodes, nodes, self._hops + 1, self._device)
        return cross_entropy(around.logits(self.classifier, generated.features), labels, ignore_index=-1)

    @torch.no_grad()
    def mend(self) -> dict[str, Tensor]:
        """Generate missing neighbours for the client's whole subgraph G_i.

        Returns:
            ``count``, ñ_v of each node, float32, shape (n,); ``owner``, the node that each generated one is for, ascending,
            int64, shape (g,); and ``features`` of the generated ones, in half precision, shape (g, F).
        """
        self.neighgen.eval()
        z = self.neighgen.encoder(*self._matrices(self._whole), self._draws)
        counts, owners, features = [], [], []
        for start in range(0, len(z), _NODES):
            generated = self.neighgen.generator(z[start : start + _NODES], self._draws)
            order = generated.owner.argsort(stable=True)
            counts.append(generated.count)
            owners.append(generated.owner[order] + start)
            features.append(generated.features[order].half())
        return {"count": torch.cat(counts), "owner": torch.cat(owners), "features": torch.cat(features)}

    def _matrices(self, graph: Graph) -> tuple[SparseMatrix, SparseMatrix]:
        x, mean = (SparseMatrix.from_scipy(matrix, self._device) for matrix in (graph.features, mean_adjacency(graph)))
        return x, mean

    def _tensor(self, nodes: np.ndarray) -> Tensor:
        return torch.from_numpy(nodes).to(self._device)


def _training_labels(impaired: Impaired, split: Split) -> Tensor:
    """The class of each remaining training node, −1 for all other remaining nodes."""
    labels = np.full(len(impaired.kept), -1)
    train = split.restrict(impaired.kept).train
    labels[train] = impaired.graph.labels[train]
    return torch.from_numpy(labels)


class Joint(nn.Module):
    """All that is trained with the loss L_i (Equation 5): NeighGen and the classifier beside it."""

    def __init__(self, trainer: NeighGenTrainer) -> None:
        super().__init__()
        self.neighgen = trainer.neighgen
        self.classifier = trainer.classifier
