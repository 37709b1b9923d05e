"""FGSSL: the received global model teaches a client's, by nodes of a class and by neighbours (Huang
et al., IJCAI 2023).

In every local step of FedAvg two views of the subgraph are drawn, without some edges and columns of
features: a weak one, which the frozen global model reads, and a strong one, which the client's
reads.  With the inputs h of the last layers, those of the global model with a bar, s_ij = cos(h_i,
h̄_j), P_i the training nodes of the class of node i, K_i those of others, and logits z,

    contrast:      mean over training nodes i and p ∈ P_i of −log(e^(s_ip/τ) / (e^(s_ip/τ) + Σ_{k ∈
        K_i} e^(s_ik/τ)))
    distillation:  ω² mean over nodes i of KL(S̄_i ‖ S_i),  S_i = softmax over neighbours j of
        cos(z_i, z_j) / ω

are added to the cross-entropy.  What is sent is as in FedAvg.

Slip of the authors' code: the contrast with the global model is overwritten by one of two views of
the client's own model, and the distillation is computed and not used: the global model teaches
nothing (``teacher: local``).  Its contrast has the e^(s_ip/τ) of all p ∈ P_i in the denominator
(``denominator: all``).
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.distilled import FGSSLParameters
from feddep.nn.sparse import ConstantMatrix, SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.training.task import RunResult, Task
from feddep.utils import seeding


class MaskedColumns(ConstantMatrix):
    """X diag(m), without a copy of X: its product is that of X with the rows of W scaled by m."""

    def __init__(self, matrix: ConstantMatrix, mask: Tensor) -> None:
        """Mask the columns of X, shape (n, F), by m, shape (F,)."""
        self._matrix, self._mask = matrix, mask[:, None]

    def multiply(self, dense: Tensor) -> Tensor:
        return self._matrix.multiply(dense * self._mask)

    def multiply_transposed(self, dense: Tensor) -> Tensor:
        return self._matrix.multiply_transposed(dense) * self._mask


View = tuple[ConstantMatrix, SparseMatrix]
"""Inputs of a model: features, shape (n, F), and the matrix to aggregate with, (n, n)."""


class Views:
    """Draws views of a graph by masks over what a model reads of it, which is neither copied nor
    sorted again.
    """

    def __init__(
        self, graph: Graph, whole: Evaluator, rng: np.random.Generator, device: str
    ) -> None:
        """Number the edges; ``whole`` has the inputs of a model on the whole graph."""
        self.features, self.rng, self.device = whole.features, rng, device
        self.shape, self.num_edges = (graph.num_nodes, graph.num_features), graph.num_edges
        self.rows, columns = (each.cpu().numpy() for each in whole.adjacency.entries())
        self.columns = columns.astype(np.int32)
        first, second = np.sort([self.rows, columns], axis=0)
        joined = first != second
        self.edge = np.full(len(joined), -1)  # of each entry; -1 for self-loops
        self.edge[joined] = np.unique(
            (first * graph.num_nodes + second)[joined], return_inverse=True
        )[1]

    def draw(self, edges: float, columns: float) -> View:
        """A view without a share of the edges, normalised as in a GCN, and with a share of the
        columns of features at 0.
        """
        n, width = self.shape
        kept = np.append(self.rng.random(self.num_edges) >= edges, True)[self.edge]
        rows, neighbours = self.rows[kept], self.columns[kept]
        sizes = np.bincount(rows, minlength=n)
        scale = (sizes**-0.5).astype(np.float32)
        indptr = np.append(0, sizes.cumsum()).astype(np.int32)
        adjacency = SparseMatrix(
            indptr, neighbours, scale[rows] * scale[neighbours], (n, n), self.device, symmetric=True
        )
        mask = (self.rng.random(width) >= columns).astype(np.float32)
        return MaskedColumns(self.features, torch.from_numpy(mask).to(self.device)), adjacency


def contrast(
    h: Tensor, taught: Tensor, labels: Tensor, tau: float, denominator: str = "pair"
) -> Tensor:
    """The contrast of k training nodes, from both models' inputs of the last layer, shape (k, H)
    each.
    """
    s = normalize(h) @ normalize(taught).T / tau
    same = labels[:, None] == labels
    if denominator == "all":
        terms = s.logsumexp(dim=1, keepdim=True) - s
    else:
        negatives = s.masked_fill(same, -1e9).logsumexp(dim=1, keepdim=True)
        terms = softplus(negatives - s)
    return ((terms * same).sum(dim=1) / same.sum(dim=1)).mean()


def neighbour_distribution(z: Tensor, edges: tuple[Tensor, Tensor], omega: float) -> Tensor:
    """log S, one number for each directed edge (i, j)."""
    unit, (i, j) = normalize(z), edges
    scores = (unit.index_select(0, i) * unit.index_select(0, j)).sum(dim=1) / omega
    sums = torch.zeros(len(z), device=z.device).index_add(0, i, scores.exp())
    return scores - sums.index_select(0, i).log()


def distillation(z: Tensor, taught: Tensor, edges: tuple[Tensor, Tensor], omega: float) -> Tensor:
    """The distillation, from both models' logits, shape (n, C) each."""
    log_s, log_g = (neighbour_distribution(each, edges, omega) for each in (z, taught))
    return omega**2 * (log_g.exp() * (log_g - log_s)).sum() / len(z)


class FGSSLClient(Client):
    """A client that the model that it receives teaches."""

    def __init__(self, *arguments: Any, task: Task, params: FGSSLParameters) -> None:
        """Set up a client; the first arguments are those of
        :class:`feddep.federation.client.Client`.
        """
        super().__init__(*arguments)
        self.params = params
        self.teacher: Any = task.new_model().requires_grad_(requires_grad=False)
        rng = seeding.generator(task.seed, f"client{self.number}", "views")
        self.views = Views(self.evaluator.graph, self.evaluator, rng, task.device)
        self.dropout = seeding.torch_generator(
            task.seed, f"client{self.number}", "views", device=task.device
        )
        self.train_nodes = torch.from_numpy(self.split.train).to(task.device)
        i, j = self.evaluator.adjacency.entries()
        self.edges = i[i != j], j[i != j]
        self.learner.regularizer = self.taught

    def load(self, weights: Payload) -> None:
        """Take over the server's weights, as a teacher also."""
        super().load(weights)
        self.teacher.load_state_dict(self.model.state_dict())

    def taught(self, model: Any) -> Tensor:
        """Term of the loss of one step."""
        params, nodes = self.params, self.train_nodes
        weak_x, weak = self.views.draw(params.weak_edges, params.weak_columns)
        strong_x, strong = self.views.draw(params.strong_edges, params.strong_columns)
        own, terms = params.teacher == "local", []
        teacher, dropout = (model, self.dropout) if own else (self.teacher, None)
        with torch.set_grad_enabled(own):
            taught = teacher.body(weak_x, weak, generator=dropout)
        hidden = model.body(strong_x, strong, generator=self.dropout)
        if params.contrast_weight:
            labels = self.evaluator.labels[nodes]
            found = contrast(hidden[nodes], taught[nodes], labels, params.tau, params.denominator)
            terms.append(params.contrast_weight * found)
        if params.distillation_weight and not own:
            z = model.head(hidden, strong)
            with torch.no_grad():
                z_taught = teacher.head(taught, weak)
            terms.append(
                params.distillation_weight * distillation(z, z_taught, self.edges, params.omega)
            )
        return sum(terms, torch.zeros((), device=hidden.device))


def run(task: Task, parameters: FGSSLParameters, steps: Any = None) -> RunResult:
    """FedAvg with taught clients."""
    task.check_hidden()
    return fedavg.train_on(
        task, task.subgraphs(), partial(FGSSLClient, task=task, params=parameters)
    )
