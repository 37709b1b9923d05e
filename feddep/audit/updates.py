"""What the change of a classifier's weights in a round tells about pairs of nodes.

A GraphSAGE's gradient is a sum of outer products.  Where root v reads neighbour u, the rows of convolution k's weight that take
neighbours get a multiple of h_u δ_vᵀ: what comes in from u, times the gradient that goes out at v.  The attacker knows features
and labels, and from the weights before the round computes h and δ for nodes without any edge.  So it knows what an edge would
add, and projects the change Δ = before − after on it:

    s^k(u, v) = ⟨Δ^k_neighbours, h^k_u δ^k_vᵀ⟩,

and, for u as a neighbour whose own rows are used, ⟨Δ^k_own, h^k_u δ'ᵀ⟩, with δ' = σ'(u) ⊙ W^{k+1}_neighbours δ^{k+1}_v.

Where a client has fewer nodes than features, the first convolution can even be solved for its nodes: Δ⁰ = Xᵀ B has the
solution B = (X Xᵀ + λ)⁻¹ X Δ⁰, whose row u is the sum of the gradients of all who read u, free of those who read nodes with
the same features.  Its cosine with δ⁰_v, or δ', is a further projection.

Over the rounds these add up.  They are compared with those of the same v, or u, and all other nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor

from feddep.audit import AuditError
from feddep.audit.pairs import Pairs
from feddep.audit.tap import Message
from feddep.graph import Graph
from feddep.splits import Split

EARLY = 5
"""Rounds that are also looked at alone: in them predictions are wrong still, and gradients large."""


@dataclass(frozen=True, eq=False)
class Convolution:
    """One convolution's weights: for the node itself and for its neighbours, each of shape (inputs, outputs), and its bias."""

    own: np.ndarray
    neighbours: np.ndarray
    bias: np.ndarray


def convolutions(weights: Mapping[str, Tensor]) -> list[Convolution]:
    """The convolutions of a GraphSAGE, or of what has the same layout, by its weights.

    Raises:
        AuditError: if there are none under their names.
    """
    found: list[Convolution] = []
    while (name := f"convolution{len(found)}.weight") in weights:
        both = weights[name].detach().cpu().numpy().copy()
        half = len(both) // 2
        bias = weights[f"convolution{len(found)}.bias"].detach().cpu().numpy().copy()
        found.append(Convolution(both[:half], both[half:], bias))
    if not found:
        raise AuditError(f"the model has the weights {', '.join(weights)}; only classifiers with convolutions can be audited")
    return found


def change(before: list[Convolution], after: list[Convolution]) -> list[Convolution]:
    """What was subtracted from each weight."""
    return [
        Convolution(old.own - new.own, old.neighbours - new.neighbours, old.bias - new.bias)
        for old, new in zip(before, after, strict=True)
    ]


_RIDGE = 1e-2
"""λ as a share of the mean of the diagonal of X Xᵀ."""


class Solver:
    """From sums over features to sums over nodes: B = (X Xᵀ + λ)⁻¹ X Δ."""

    def __init__(self, features: sp.csr_matrix) -> None:
        """Prepare to solve; ``features`` are X, shape (n, F)."""
        self._features = features
        gram = (features @ features.T).toarray().astype(np.float64)
        gram[np.diag_indices_from(gram)] += _RIDGE * gram.trace() / len(gram)
        self._factor = cho_factor(gram)

    def __call__(self, delta: np.ndarray) -> np.ndarray:
        """B, shape (n, H), from Δ, shape (F, H)."""
        return cho_solve(self._factor, self._features @ delta)


class Alone:
    """A client's nodes as a classifier sees them without edges."""

    def __init__(self, graph: Graph, train: np.ndarray, model: list[Convolution]) -> None:
        """Go through the classifier and back.

        Args:
            graph: features and labels are used, and nothing else.
            train: the nodes that have a loss.
            model: the classifier.
        """
        self.model = model
        self.inputs: list[Any] = [graph.features]
        """h^k, what convolution k reads of each node."""
        self.active: list[np.ndarray] = []
        """σ' behind each convolution but the last."""
        for layer in model[:-1]:
            out = self.inputs[-1] @ layer.own + layer.bias
            self.active.append(out > 0)
            self.inputs.append(np.maximum(out, 0))
        logits = self.inputs[-1] @ model[-1].own + model[-1].bias
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        self.shares = shares / shares.sum(axis=1, keepdims=True)
        """Predicted probability of each class."""
        gradient = self.shares - np.eye(graph.num_classes, dtype=np.float32)[graph.labels]
        gradient[np.setdiff1d(np.arange(graph.num_nodes), train)] = 0
        self.gradients = [gradient]
        """δ^k, the gradient at the output of convolution k."""
        for layer, active in zip(model[:0:-1], self.active[::-1], strict=True):
            self.gradients.insert(0, active * (self.gradients[0] @ layer.own.T))

    def projections(self, delta: list[Convolution], solver: Solver) -> list[np.ndarray]:
        """⟨Δ, what an edge would add⟩ for each way in which it would; each of shape (n, n): neighbour u, root v.

        Args:
            delta: the change Δ.
            solver: solves the first convolution for nodes.
        """
        found = [
            (h @ layer.neighbours) @ gradient.T for h, layer, gradient in zip(self.inputs, delta, self.gradients, strict=True)
        ]
        found.append(unit(solver(delta[0].neighbours)) @ unit(self.gradients[0]).T)
        for k, active in enumerate(self.active):
            through = self.gradients[k + 1] @ self.model[k + 1].neighbours.T
            found.append((active * (self.inputs[k] @ delta[k].own)) @ through.T)
            if k == 0:
                found.append(unit(active * solver(delta[0].own)) @ unit(through).T)
        return found


class UpdateReading:
    """Listens to one client's updates."""

    def __init__(self, client: int, graph: Graph, split: Split, kind: str = "model") -> None:
        """Prepare to listen.

        Args:
            client: the client's number.
            graph: its subgraph, of which the edges are not looked at.
            split: its training nodes.
            kind: the kind of messages that carry the weights.
        """
        self._client, self._kind = client, kind
        self._graph, self._train = graph, split.train
        self._solver = Solver(graph.features)
        self._before: list[Convolution] | None = None
        self._early: list[np.ndarray] = []
        self._all: list[np.ndarray] = []
        self._last: Alone | None = None
        self.rounds = 0

    def hear(self, message: Message) -> None:
        """Take note of weights that the client gets or sends."""
        if message.client != self._client or message.kind != self._kind:
            return
        model = convolutions(message.payload)
        if message.direction == "down":
            self._before = model
            return
        assert self._before is not None, "a client sends weights only after it has got some"
        alone = Alone(self._graph, self._train, self._before)
        found = alone.projections(change(self._before, model), self._solver)
        self._all = [a + b for a, b in zip(self._all, found, strict=True)] if self._all else found
        self.rounds += 1
        if self.rounds <= EARLY:
            self._early = [matrix.copy() for matrix in self._all]
        self._last = Alone(self._graph, self._train, model)

    def facts(self, pairs: Pairs) -> np.ndarray:
        """What is known of pairs of the client's nodes; shape (N, k), where k depends on the number of convolutions alone.

        For each projection, of the first rounds and of all: the sum over both directions, each compared with all that the same
        root v might read, and compared with both u and v.  And how much alike the two nodes are to the last update.

        Raises:
            AuditError: if no update was heard.
        """
        if self._last is None:
            raise AuditError(f"client {self._client} has sent no update; the setting needs at least one round")
        u, v = pairs.nodes.T
        columns = []
        for matrix in [*self._early, *self._all]:
            of_root = _standardised(matrix)
            of_both = matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean()
            columns += [each[u, v] + each[v, u] for each in (of_root, of_both)]
        for rows in (self._last.inputs[-1], self._last.shares):
            columns.append(cosines(rows[u], rows[v]))
        return np.column_stack(columns)


def _standardised(matrix: np.ndarray) -> np.ndarray:
    """Each column less its mean and divided by its deviation; zero where it is constant."""
    deviation = matrix.std(axis=0)
    return np.where(deviation > 0, (matrix - matrix.mean(axis=0)) / np.where(deviation > 0, deviation, 1), 0)


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, or 0 where they are zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, rows / np.where(lengths > 0, lengths, 1), 0)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine of each row of ``a`` and the same of ``b``; 0 where one of them is zero."""
    return (unit(a) * unit(b)).sum(axis=1)
