"""S2FGL: the received model teaches a client's by a repository of class means and by projections on
eigenvectors of similarity graphs (Tan et al., ICML 2025).

Once, a client scores its nodes by their random walks to training nodes,

    max over u of P_vu + α Σ_u P_vu,    P = (I − (1 − α) D⁻¹ A)⁻¹,    u: training nodes,

and takes the best third, I, and the best fifth, J.  After its local steps it sends, with its
weights, the mean embedding of the training nodes of each class in I, and how many of all its
training nodes these are.  The server draws 70 % of the clients four times; the means over them are
the repository B, of four rows a class, which it sends.  From the second round on, with embeddings
h, the inputs of the last layer, and those of the received model with a bar, a client adds to its
loss

    λ₁ τ² mean over nodes v of KL(softmax_b cos(h̄_v, b)/τ ‖ softmax_b cos(h_v, b)/τ),   b: rows of B
    λ₂ Σ_i mean over entries of (u_i u_iᵀ h − ū_i ū_iᵀ h̄)²

where h are of the nodes J in the second line, and u_i eigenvectors of the ten smallest and the ten
largest eigenvalues of deg(S) − S, ū_i likewise.  S has for each node the cosines of its embedding
with itself and with the three most similar ones.  No gradient passes through u_i.

Readings.  The code takes labels of all nodes of I for B, validation and test nodes among them; here
of training nodes alone.  Its S is not symmetric, which its solver supposes; here it is S + Sᵀ over
two.  Its embeddings for B are those of the last training step; here they are of the model that is
sent, without dropout.  Its encoder is an ACM-GCN; here it is the setting's.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import kl_div, normalize

from feddep.federation.boundary import ByClient, Payload
from feddep.federation.client import EXTRA, Client, Update
from feddep.federation.server import Server
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.distilled import S2FGLParameters
from feddep.methods.personalised.fedproto import class_means
from feddep.methods.personalised.moon import embeddings
from feddep.training.learner import FullBatchLearner
from feddep.training.task import RunResult, Task
from feddep.utils import seeding

RESTART = 0.85
"""α of the walks (code)."""
SIMILAR, ENDS = 3, 10
"""Most similar nodes of a node in S, and eigenvectors at each end (code)."""
DRAWS, DRAWN = 4, 0.7
"""Rows of B for each class, and the share of clients that each is a mean over (code)."""


def ranked(graph: Graph, train: np.ndarray) -> np.ndarray:
    """All nodes, that with the highest score first."""
    walk = sp.diags_array(1 / np.maximum(graph.degrees, 1)) @ graph.adjacency
    ends = np.eye(graph.num_nodes)[:, train]
    reached = ends
    for _ in range(20):  # the rest of the series is below 10⁻¹⁶
        reached = ends + (1 - RESTART) * (walk @ reached)
    scores = reached.max(axis=1, initial=0) + RESTART * reached.sum(axis=1)
    return np.argsort(-scores, kind="stable")


@torch.no_grad()
def eigenvectors(h: Tensor) -> Tensor:
    """u_i of n nodes from their embeddings, shape (n, H): in columns, at most 20."""
    cosines = normalize(h) @ normalize(h).T
    nearest = cosines.topk(min(SIMILAR + 1, len(h)), dim=1)
    similar = torch.zeros_like(cosines).scatter(1, nearest.indices, nearest.values)
    laplacian = similar.sum(dim=1).diag() - similar
    vectors = torch.linalg.eigh((laplacian + laplacian.T) / 2).eigenvectors
    return torch.cat([vectors[:, :ENDS], vectors[:, -ENDS:]], dim=1)


def projection_distance(h: Tensor, u: Tensor, taught: Tensor, of_taught: Tensor) -> Tensor:
    """Σ_i mean (u_i u_iᵀ h − ū_i ū_iᵀ h̄)², without the products of n rows."""
    ours, theirs = u.T @ h, of_taught.T @ taught
    mixed = ((u * of_taught).sum(dim=0) * (ours * theirs).sum(dim=1)).sum()
    return (ours.square().sum() + theirs.square().sum() - 2 * mixed) / h.numel()


class S2FGLClient(Client):
    """A client that the model and the repository that it receives teach."""

    learner: FullBatchLearner
    repository: Tensor

    def __init__(self, *arguments: Any, params: S2FGLParameters) -> None:
        """Set up a client; the first arguments are those of :class:`Client`."""
        super().__init__(*arguments)
        self.params = params
        graph, labels = self.evaluator.graph, self.evaluator.labels
        best, n = ranked(graph, self.split.train), graph.num_nodes
        known = np.intersect1d(best[: n // 3], self.split.train)
        self.known = torch.from_numpy(known).to(labels.device)
        self.aligned = torch.from_numpy(best[: max(n // 5, 1)]).to(labels.device)

    def load(self, weights: Payload) -> None:
        """Take over the server's weights and, from the second round on, the repository."""
        super().load({name: weights[name] for name in self.model.state_dict()})
        if "repository" in weights:
            sent = {"repository": weights["repository"]}
            received = self._boundary.send(self.number, "down", EXTRA, sent)
            self.repository = normalize(received["repository"])
            self.taught = embeddings(self.model, self.evaluator)
            self.of_taught = eigenvectors(self.taught[self.aligned])
            self.learner.penalty = self.penalty

    def penalty(self, model: Any, hidden: Tensor, logits: Tensor) -> Tensor:
        """Both terms of the loss, from embeddings of all nodes, shape (n, H)."""
        params = self.params
        ours, theirs = (
            (normalize(h) @ self.repository.T / params.tau).log_softmax(dim=1)
            for h in (hidden, self.taught)
        )
        assigned = kl_div(ours, theirs, reduction="batchmean", log_target=True)
        h = hidden[self.aligned]
        distance = projection_distance(
            h, eigenvectors(h), self.taught[self.aligned], self.of_taught
        )
        return (
            params.repository_weight * params.tau**2 * assigned + params.alignment_weight * distance
        )

    def extra(self) -> Payload:
        """Mean embeddings of the classes, shape (C, H), and of which share of the training nodes,
        (C,).
        """
        hidden = embeddings(self.model, self.evaluator)[self.known]
        classes = self.evaluator.graph.num_classes
        means, counts = class_means(hidden, self.evaluator.labels[self.known], classes)
        return {"means": means, "shares": counts / max(self.learner.size, 1)}


class RepositoryServer(Server):
    """A server of FedAvg that keeps a repository."""

    def __init__(self, *arguments: Any, seed: int) -> None:
        """Start from initial weights, without a repository."""
        super().__init__(*arguments)
        self.rng = seeding.generator(seed, "s2fgl", "clients")
        self.repository: Payload = {}

    def aggregate(self, updates: Sequence[Update]) -> None:
        """The mean of the weights, and a new repository, shape (4 C, H)."""
        super().aggregate(updates)
        rows = []
        for _ in range(DRAWS):
            drawn = self.rng.choice(len(updates), max(int(DRAWN * len(updates)), 1), replace=False)
            sent = [updates[k] for k in drawn]
            counts = torch.stack([each.nodes * each.extra["shares"] for each in sent]).unsqueeze(2)
            means = torch.stack([each.extra["means"] for each in sent])
            rows.append((counts * means).sum(dim=0) / counts.sum(dim=0).clamp(min=1))
        self.repository = {"repository": torch.cat(rows)}

    def weights_for(self, client: int) -> Payload:
        return {**self.weights, **self.repository}


def run(task: Task, parameters: S2FGLParameters, steps: Any = None) -> RunResult:
    """FedAvg of taught clients."""
    task.check_hidden()
    model: Any = task.new_model()
    *_, width, classes = model.output_widths
    count = task.ownership.num_clients
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(S2FGLClient, params=parameters),
        partial(RepositoryServer, seed=task.seed),
        extra=ByClient(
            up=[{"means": (classes, width), "shares": (classes,)}] * count,
            down=[{"repository": (DRAWS * classes, width)}] * count,
        ),
    )
