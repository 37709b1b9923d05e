"""Training a client's NeighGen on its impaired subgraph, and mending its subgraph with it.

    L^n_i = λ^d 1/|V̄| Σ_v L₁^S(ñ_v − n_v) + λ^f L^f_i
    (Equation 4) L^f_i = 1/|V̄| Σ_v Σ_{p ≤ ñ_v} [ min_{u ∈ N(v) ∩ V^h} ‖x̃_v^p − x_u‖² + α Σ_{j ≠ i}
    min_{u ∈ V_j} ‖x̃_v^p − x_u‖² ]     (6) L_i   = L^n_i + λ^c L^c_i
    (5)

(FedSage, Sections 4.1 to 4.3).  v runs over V_i^t, the nodes of the impaired subgraph that are
sampled in epoch t (Algorithm 1, line 22), V^h are the hidden nodes, and the minimum over an empty
set is left out.  L^c is the cross-entropy of a GraphSAGE on the mended impaired subgraph, in which
all nodes have generated neighbours that the logits of V_i^t depend on.

The terms of other clients j come as gradients (:mod:`feddep.methods.fedsage.cross_client`).  A
minimum has the gradient of the distance to whatever attains it, so each term is a distance to a
target that is searched for beforehand.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, smooth_l1_loss

from feddep.federation.boundary import Payload
from feddep.graph.halo import within
from feddep.graph.impairing import Impaired
from feddep.graph.split import Split
from feddep.methods.fedsage import NeighGenParameters
from feddep.methods.fedsage.mended_subgraph import ReceptiveField, attach
from feddep.methods.fedsage.neighgen import Generated, NeighGen
from feddep.nn.sparse import SparseMatrix, graph_matrices
from feddep.training.divergence import check_finite
from feddep.training.learner import OPTIMIZERS
from feddep.training.task import ClientData, Task
from feddep.utils import seeding

Ask = Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]
"""Sends a request to the other clients, the weights of H^g and the embeddings of V_i^t; gives the
sum of their gradients.
"""

_NODES = 1024  # for which neighbours are generated at once
_BLOCK = 2**22  # scores, and numbers of the points, that are held at once: 16 MiB of each


def new_neighgen(task: Task, params: NeighGenParameters, *stream: str) -> NeighGen:
    """A NeighGen whose initial weights come from the stream ``stream`` of the run."""
    features, hidden, _, layers, dropout = task.model_sizes
    neighgen = NeighGen(
        features,
        hidden,
        params.embedding,
        layers,
        params.max_generated,
        params.generator_width,
        dropout,
    )
    return task.drawn(neighgen, *stream, "neighgen", "weights")


def batch_size(params: NeighGenParameters, impaired: Impaired) -> int:
    """|V_i^t|, the number of nodes that a client samples in an epoch, and of the embeddings in its
    request.
    """
    return min(params.generator_batch, len(impaired.kept))


def distance(features: Tensor, targets: Tensor, nodes: int, slots: int, scale: str) -> Tensor:
    """1/n Σ ‖x̃ − target‖² over the neighbours generated for n nodes; with ``scale`` "authors"
    divided by S · F as well.

    ``features`` and the ``targets`` that each is to resemble have the shape (g, F); S is the number
    of ``slots`` of a node.
    """
    total = (features - targets).square().sum() / nodes
    return total if scale == "paper" else total / (slots * features.shape[1])


class Nearest:
    """Exact search for the row x_u that minimises ‖x̃ − x_u‖².

    What differs between candidates is ‖x_u‖² − 2 ⟨x̃, x_u⟩, and all inner products of a block of
    points are one sparse product, which costs one multiplication for each stored feature and point.
    """

    def __init__(self, features: sp.csr_matrix, device: str = "cpu") -> None:
        """Prepare the search among ``features``, shape (k, F), for points that live on
        ``device``.
        """
        self._features = features
        self._matrix = SparseMatrix.from_scipy(features, device)
        squares = np.asarray(features.multiply(features).sum(axis=1), dtype=np.float32).reshape(
            -1, 1
        )
        self._squares = torch.from_numpy(squares).to(device)
        self._device = device

    @torch.no_grad()
    def search(self, points: Tensor, allowed: np.ndarray | None = None) -> Tensor:
        """Position of the nearest candidate of each of the points, (g, F), of equally near ones the
        first; int64, shape (g,).

        ``allowed`` says which candidates each point may have, at least one each, bool, shape (g,
        k); all without it.
        """
        rows = max(1, _BLOCK // max(self._features.shape))
        found = [torch.zeros(0, dtype=torch.int64, device=points.device)]
        for start in range(0, len(points), rows):
            block = slice(start, start + rows)
            scores = self._squares - 2 * self._matrix.multiply(points[block].T.contiguous())
            if allowed is not None:
                scores[torch.from_numpy(~allowed[block].T).to(scores.device)] = torch.inf
            found.append(scores.argmin(dim=0))
        return torch.cat(found)

    def nearest(self, points: Tensor, allowed: np.ndarray | None = None) -> Tensor:
        """x_u nearest to each point, shape (g, F); the arguments are those of :meth:`search`."""
        rows = self._features[self.search(points, allowed).cpu().numpy()]
        return torch.from_numpy(rows.toarray().astype(np.float32, copy=False)).to(self._device)


class HiddenNeighbours:
    """N(v) ∩ V^h, the hidden neighbours of each remaining node v: what NeighGen is to
    reconstruct.
    """

    def __init__(self, features: sp.csr_matrix, impaired: Impaired, device: str = "cpu") -> None:
        """Find them; ``features`` are those of the client's whole subgraph, shape (N, F)."""
        v, u = impaired.pairs[:, 0], np.searchsorted(impaired.hidden, impaired.pairs[:, 1])
        self._lost = sp.csr_matrix(
            (np.ones(len(v), dtype=np.int8), (v, u)),
            shape=(len(impaired.kept), len(impaired.hidden)),
        )
        self._features = features[impaired.hidden]
        self._device = device

    def nearest(self, points: Tensor, nodes: np.ndarray) -> Tensor:
        """The features nearest to each x̃ of ``points`` among the hidden neighbours of its node,
        which has some; shape (g, F).
        """
        lost = self._lost[nodes]
        columns = np.unique(lost.indices)
        return Nearest(self._features[columns], self._device).nearest(
            points, lost[:, columns].toarray() > 0
        )


def local_loss(
    generated: Generated,
    nodes: np.ndarray,
    missing: Tensor,
    hidden: HiddenNeighbours,
    params: NeighGenParameters,
) -> Tensor:
    """L^n of the module's docstring, without the terms of other clients.

    ``generated`` is for the sampled ``nodes`` of the impaired subgraph, which truly miss n_v
    neighbours, shape (n,) each.
    """
    loss = params.count_weight * smooth_l1_loss(generated.count, missing.to(generated.count.dtype))
    known = missing[generated.owner] > 0
    if params.feature_weight and known.any():
        features = generated.features[known]
        targets = hidden.nearest(features.detach(), nodes[generated.owner[known].cpu().numpy()])
        loss = loss + params.feature_weight * distance(
            features, targets, len(nodes), params.max_generated, params.scale
        )
    return loss


def part_of(generated: Generated, places: np.ndarray) -> Generated:
    """Restrict to the nodes at ``places``, ascending."""
    device = generated.owner.device
    chosen = torch.from_numpy(places).to(device)
    position = torch.full((len(generated.count),), -1, dtype=torch.int64, device=device)
    position[chosen] = torch.arange(len(places), device=device)
    owner = position[generated.owner]
    kept = owner >= 0
    return Generated(generated.count[chosen], owner[kept], generated.features[kept])


class NeighGenTrainer:
    """One client's NeighGen, and the classifier that is trained beside it and thrown away
    afterwards.

    A task's inspectors are shown V_i^t as ``neighgen nodes`` in each epoch: the client's number,
    and its nodes in its own ids.
    """

    def __init__(
        self,
        task: Task,
        params: NeighGenParameters,
        number: int,
        client: ClientData,
        impaired: Impaired,
        neighgen: NeighGen,
    ) -> None:
        """Prepare client ``number``, which has an ``impaired`` subgraph Ḡ_i and a ``neighgen`` with
        its initial weights.

        Neighbourhoods are full; dropout, noise and samples come from the client's own streams.
        """
        graph, split = client
        seed, device, name = task.seed, task.device, f"client{number}"
        self.neighgen = neighgen
        self.classifier = task.new_sage()
        self.model = nn.ModuleDict({"neighgen": neighgen, "classifier": self.classifier})
        """All that is trained with the loss L_i (Equation 5)."""
        self.batch = batch_size(params, impaired)
        """Number of nodes sampled in an epoch, |V_i^t|."""
        self._number = number
        self._kept, self._inspectors = impaired.kept, task.inspectors
        self.losses: list[float] = []
        """The loss L_i of each epoch."""
        self._gradients: list[Tensor | None] = []
        self._params = params
        self._hops = task.setting.layers - 1
        self._whole = graph
        self._graph = impaired.graph
        self._device = device
        self._x, self._mean = graph_matrices(impaired.graph, device)
        self._hidden = HiddenNeighbours(graph.features, impaired, device)
        self._missing = torch.from_numpy(impaired.missing).to(device)
        self._labels = _training_labels(impaired, split).to(device)
        self._sampling = seeding.generator(seed, name, "neighgen", "sampling")
        self._draws = seeding.torch_generator(seed, name, "neighgen", device=device)
        self.renew_optimizer()

    def renew_optimizer(self) -> None:
        """Start with a new optimiser: Adam (FedSage, Section 5.1) of all weights, the classifier's
        included.
        """
        self._optimizer = OPTIMIZERS["adam"](
            self.model.parameters(),
            lr=self._params.generator_learning_rate,
            weight_decay=self._params.generator_weight_decay,
        )

    def step(self, ask: Ask | None = None) -> float:
        """One epoch t, :meth:`begin` and :meth:`finish`; returns the loss L_i, without what other
        clients compute.

        ``ask`` asks the other clients for their gradients; without it, NeighGen is trained on the
        client alone.
        """
        request = self.begin()
        return self.finish({} if ask is None else ask(request))

    def begin(self) -> Payload:
        """Sample V_i^t and compute the gradient of L_i, without the terms of other clients.

        Returns what these are asked with: the weights of H^g_i, not copied, and the embeddings
        Z_i^t as ``embeddings``.

        Raises:
            DivergenceError: if the loss is not finite.
        """
        params = self._params
        self.neighgen.train()
        self._optimizer.zero_grad()
        nodes = np.sort(self._sampling.permutation(self._graph.num_nodes)[: self.batch])
        for inspect in self._inspectors:
            inspect("neighgen nodes", (self._number, self._kept[nodes]))
        near = within(self._graph, nodes, self._hops) if params.task_weight else nodes
        places = np.searchsorted(near, nodes)
        z = self.neighgen.encode(self._x, self._mean, self._draws)[self._tensor(near)]
        generated = self.neighgen.generator(z, self._draws)
        loss = local_loss(
            part_of(generated, places),
            nodes,
            self._missing[self._tensor(nodes)],
            self._hidden,
            params,
        )
        if params.task_weight:
            loss = loss + params.task_weight * self._task_loss(generated, near, nodes)
        loss.backward()
        self.losses.append(float(loss.detach()))
        self._gradients = [parameter.grad for parameter in self.model.parameters()]
        self._check(self.losses[-1])
        return {
            **self.neighgen.generator.state_dict(),
            "embeddings": z[self._tensor(places)].detach(),
        }

    def finish(self, of_others: Mapping[str, Tensor]) -> float:
        """Take the step that :meth:`begin` has begun, with the sum of other clients' gradients;
        returns the loss L_i.

        A trainer may be pickled in between.
        """
        for parameter, own in zip(self.model.parameters(), self._gradients, strict=True):
            parameter.grad = own  # which is lost where a parameter is pickled
        weight = self._params.feature_weight * self._params.cross_weight
        for key, gradient in of_others.items():
            parameter = self.neighgen.generator.get_parameter(key)
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = own.add_(gradient, alpha=weight)
        self._optimizer.step()
        return self.losses[-1]

    def _task_loss(self, generated: Generated, near: np.ndarray, nodes: np.ndarray) -> Tensor:
        """L^c, the mean cross-entropy of those of ``nodes`` that are training nodes; zero where
        there are none.
        """
        labels = self._labels[self._tensor(nodes)]
        if not (labels >= 0).any():
            return labels.new_zeros((), dtype=torch.float32)
        mended = attach(self._graph, near[generated.owner.cpu().numpy()])
        field = ReceptiveField(mended, self._graph.num_nodes, nodes, self._hops + 1, self._device)
        return cross_entropy(
            field.logits(self.classifier, generated.features), labels, ignore_index=-1
        )

    @torch.no_grad()
    def mend(self) -> dict[str, Tensor]:
        """Generate missing neighbours for the client's whole subgraph G_i.

        Returns:
            ``count``, ñ_v, shape (n,); ``owner``, the node that each generated one is for,
            ascending, int64, shape (g,); ``features`` of the generated ones, in half precision,
            shape (g, F); and ``loss``, that of each epoch.
        """
        self.neighgen.eval()
        # Here instead of after each step, of which it would be a good part: a weight that is not
        # finite shows in the next loss.
        self._check(0.0, self.model.parameters())
        z = self.neighgen.encode(*graph_matrices(self._whole, self._device), self._draws)
        parts = []
        for start in range(0, len(z), _NODES):
            generated = self.neighgen.generator(z[start : start + _NODES], self._draws)
            order = generated.owner.argsort(stable=True)
            parts.append(
                {
                    "count": generated.count,
                    "owner": generated.owner[order] + start,
                    "features": generated.features[order].half(),
                }
            )
        self._check(0.0, [part["count"] for part in parts])
        mended = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        return {**mended, "loss": torch.tensor(self.losses)}

    def _check(self, loss: float, numbers: Iterable[Tensor] = ()) -> None:
        check_finite(
            f"the generator of client{self._number} in epoch {len(self.losses)}",
            loss,
            numbers,
            "lower generator_learning_rate or its weights",
        )

    def _tensor(self, nodes: np.ndarray) -> Tensor:
        return torch.from_numpy(nodes).to(self._device)


def _training_labels(impaired: Impaired, split: Split) -> Tensor:
    """The class of each remaining training node, −1 for all other remaining nodes."""
    labels = np.full(len(impaired.kept), -1)
    train = split.restrict(impaired.kept).train
    labels[train] = impaired.graph.labels[train]
    return torch.from_numpy(labels)
