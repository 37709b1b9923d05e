"""Model updates as evidence on edges: a round's change of weights, projected on what an edge
between two nodes would add.

The gradient of a GraphSAGE is a sum of outer products.  Where root v reads neighbour u, the
neighbour weights of convolution k get a multiple of h_u δ_vᵀ: h is the input of u, δ the gradient
at the output of v.  The attacker computes both for isolated nodes from the weights before the
round, and projects the round's change Δ = before − after:

    s^k(u, v) = ⟨Δ^k_neighbours, h^k_u (δ^k_v)ᵀ⟩

and, for u's own rows, s'^k(u, v) = ⟨Δ^k_own, h^k_u δ'ᵀ⟩ with δ' = σ'(u) ⊙ W^{k+1}_neighbours
δ^{k+1}_v.  Projections are summed over rounds, and compared with those of the same v, or u, and all
other nodes.

With fewer nodes than features, Δ⁰ = Xᵀ B has the ridge solution B = (X Xᵀ + λ)⁻¹ X Δ⁰.  Its row u
sums the gradients of all that read u.  Its cosine with δ⁰_v or δ' is a further projection.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.learner import new_optimizer
from studies.privacy.privacy_audit.pairs import Pairs

EARLY_ROUNDS = 5
"""First rounds, which also give features of their own: predictions are still wrong, and gradients
large.
"""

_RIDGE = 1e-2
"""λ as a share of the mean of the diagonal of X Xᵀ."""


def train_locally(model: Any, learner: Any, setting: TrainingConfig, epochs: int) -> float:
    """Train a model in place as a client does between two messages; returns the last epoch's mean
    loss a node, in nats.
    """
    optimizer, loss = new_optimizer(model, setting), math.nan
    for _ in range(epochs):
        loss = learner.epoch(model, optimizer)
    return loss


class Convolution(NamedTuple):
    """One convolution's weights: for the node itself and for its neighbours, each of shape (inputs,
    outputs), and its bias.
    """

    own: np.ndarray
    neighbours: np.ndarray
    bias: np.ndarray


def convolutions(weights: Mapping[str, Tensor]) -> list[Convolution]:
    """A copy of the convolutions of a GraphSAGE, or of a model with the same layout, from its
    weights.
    """
    found: list[Convolution] = []
    while (name := f"convolution{len(found)}") + ".weight" in weights:
        weight, bias = (
            weights[f"{name}.{part}"].detach().cpu().numpy().copy() for part in ("weight", "bias")
        )
        own, neighbours = np.split(weight, 2)
        found.append(Convolution(own, neighbours, bias))
    return found


def weight_change(before: Sequence[Convolution], after: Sequence[Convolution]) -> list[Convolution]:
    """Δ = before − after, for each weight."""
    return [Convolution(*map(np.subtract, *layers)) for layers in zip(before, after, strict=True)]


class NodeSolver:
    """Solves sums over features for nodes by ridge regression: B = (X Xᵀ + λ)⁻¹ X Δ, with X of
    shape (n, F).
    """

    def __init__(self, features: sp.csr_matrix) -> None:
        self._features = features
        gram = (features @ features.T).toarray().astype(np.float64)
        gram[np.diag_indices_from(gram)] += _RIDGE * gram.trace() / len(gram)
        self._factor = cho_factor(gram)

    def __call__(self, delta: np.ndarray) -> np.ndarray:
        """B, shape (n, H), from Δ, shape (F, H)."""
        return cho_solve(self._factor, self._features @ delta)


class IsolatedPass:
    """Forward and backward pass of a classifier over a client's nodes without any edge; ``train``
    are those that have a loss.

    Attributes:
        inputs: h^k, the input of each convolution k, shape (n, width).
        active: σ', the derivative of the activation, behind each convolution but the last.
        probabilities: predicted probability of each class, shape (n, classes).
        gradients: δ^k, the loss's gradient at the output of each convolution k.
    """

    def __init__(self, graph: Graph, train: np.ndarray, model: list[Convolution]) -> None:
        self._model = model
        self.inputs: list[Any] = [graph.features]
        self.active: list[np.ndarray] = []
        for layer in model[:-1]:
            out = self.inputs[-1] @ layer.own + layer.bias
            self.active.append(out > 0)
            self.inputs.append(np.maximum(out, 0))
        logits = self.inputs[-1] @ model[-1].own + model[-1].bias
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        self.probabilities = odds / odds.sum(axis=1, keepdims=True)
        gradient = self.probabilities - np.eye(graph.num_classes, dtype=np.float32)[graph.labels]
        gradient[np.setdiff1d(np.arange(graph.num_nodes), train)] = 0
        self.gradients = [gradient]
        for layer, active in zip(model[:0:-1], self.active[::-1], strict=True):
            self.gradients.insert(0, active * (self.gradients[0] @ layer.own.T))

    def projections(self, delta: list[Convolution], solver: NodeSolver) -> list[np.ndarray]:
        """⟨Δ, what an edge would add⟩ for each way in which it would; each of shape (n, n):
        neighbour u, root v.
        """
        found = [
            (h @ layer.neighbours) @ gradient.T
            for h, layer, gradient in zip(self.inputs, delta, self.gradients, strict=True)
        ]
        found.append(unit(solver(delta[0].neighbours)) @ unit(self.gradients[0]).T)
        for k, active in enumerate(self.active):
            through = self.gradients[k + 1] @ self._model[k + 1].neighbours.T
            found.append((active * (self.inputs[k] @ delta[k].own)) @ through.T)
            if k == 0:
                found.append(unit(active * solver(delta[0].own)) @ unit(through).T)
        return found


class UpdateFeatures:
    """Features of pairs from one client's model updates; of its graph the edges are not used, of
    its split the training nodes.
    """

    def __init__(self, graph: Graph, split: Split) -> None:
        self._graph, self._train = graph, split.train
        self._solver = NodeSolver(graph.features)
        self._before: list[Convolution] | None = None
        self._early: list[np.ndarray] = []
        self._all: list[np.ndarray] = []
        self._last: IsolatedPass | None = None
        self.rounds = 0

    def receive(self, direction: str, kind: str, payload: Mapping[str, Tensor]) -> None:
        """Process the weights that the client gets or sends."""
        if kind != "model":
            return
        model = convolutions(payload)
        if direction == "down":
            self._before = model
            return
        assert self._before is not None, "a client sends weights only after it has got some"
        before = IsolatedPass(self._graph, self._train, self._before)
        found = before.projections(weight_change(self._before, model), self._solver)
        self._all = [a + b for a, b in zip(self._all, found, strict=True)] if self._all else found
        self.rounds += 1
        if self.rounds <= EARLY_ROUNDS:
            self._early = self._all
        self._last = IsolatedPass(self._graph, self._train, model)

    def features(self, pairs: Pairs) -> np.ndarray:
        """Features of pairs of the client's nodes; shape (N, k), where k depends on the number of
        convolutions alone.

        For each projection, of the first rounds and of all: the sum over both directions, once
        standardised over the neighbours of the same root v, and once centred over both u and v.
        And how similar the two nodes are to the last model.
        """
        assert self._last is not None, "a run has at least one round"
        u, v = pairs.nodes.T
        columns = []
        for matrix in [*self._early, *self._all]:
            centred = (
                matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean()
            )
            columns += [each[u, v] + each[v, u] for each in (_standardised(matrix), centred)]
        columns += [
            cosines(rows[u], rows[v]) for rows in (self._last.inputs[-1], self._last.probabilities)
        ]
        return np.column_stack(columns)


def _standardised(matrix: np.ndarray) -> np.ndarray:
    """Each column less its mean and divided by its deviation; 0 where it is constant."""
    return _divide(matrix - matrix.mean(axis=0), matrix.std(axis=0, keepdims=True))


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths; 0 where they are zero."""
    return _divide(rows, np.linalg.norm(rows, axis=1, keepdims=True))


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """The quotients, or 0 where the divisor is."""
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine of each row of ``a`` and the same of ``b``; 0 where one of them is zero."""
    return (unit(a) * unit(b)).sum(axis=1)
