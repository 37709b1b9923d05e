"""FGSSL: the received global model teaches a client's, by nodes of a class and by neighbours (Huang et al., IJCAI 2023).

In every local step of FedAvg two views of the subgraph are drawn, without some edges and columns of features: a weak one, which
the frozen global model reads, and a strong one, which the client's reads.  With the inputs h of the last layers, those of the
global model with a bar, s_ij = cos(h_i, h̄_j), P_i the training nodes of the class of node i, K_i those of others, and logits z,

    contrast:      mean over training nodes i and p ∈ P_i of −log(e^(s_ip/τ) / (e^(s_ip/τ) + Σ_{k ∈ K_i} e^(s_ik/τ)))
    distillation:  ω² mean over nodes i of KL(S̄_i ‖ S_i),  S_i = softmax over neighbours j of cos(z_i, z_j) / ω

are added to the cross-entropy.  What is sent is as in FedAvg.

Slip of the authors' code: the contrast with the global model is overwritten by one of two views of the client's own model, and
the distillation is computed and not used: the global model teaches nothing (``teacher: local``).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.distilled import FGSSLParameters
from feddep.training.evaluator import Evaluator
from feddep.training.task import Part, RunResult, Task
from feddep.utils import seeding


def without(graph: Graph, edges: float, columns: float, rng: np.random.Generator) -> Graph:
    """The graph without a share of its edges, and with a share of its columns of features at 0."""
    all_edges, x = graph.edges(), graph.features
    kept = all_edges[rng.random(len(all_edges)) >= edges]
    mask = (rng.random(graph.num_features) >= columns).astype(np.float32)
    features = sp.csr_matrix((x.data * mask[x.indices], x.indices, x.indptr), shape=x.shape)
    return Graph.from_edges(kept, features, graph.labels, graph.num_classes)


def contrast(h: Tensor, taught: Tensor, labels: Tensor, tau: float) -> Tensor:
    """The contrast of k training nodes, from both models' inputs of the last layer, shape (k, H) each."""
    s = normalize(h) @ normalize(taught).T / tau
    same = labels[:, None] == labels
    negatives = s.masked_fill(same, -1e9).logsumexp(dim=1, keepdim=True)
    return ((softplus(negatives - s) * same).sum(dim=1) / same.sum(dim=1)).mean()


def neighbour_distribution(z: Tensor, edges: tuple[Tensor, Tensor], omega: float) -> Tensor:
    """log S, one number for each directed edge (i, j)."""
    unit, (i, j) = normalize(z), edges
    scores = (unit[i] * unit[j]).sum(dim=1) / omega
    sums = torch.zeros(len(z), device=z.device).index_add(0, i, scores.exp())
    return scores - sums[i].log()


def distillation(z: Tensor, taught: Tensor, edges: tuple[Tensor, Tensor], omega: float) -> Tensor:
    """The distillation, from both models' logits, shape (n, C) each."""
    log_s, log_g = (neighbour_distribution(each, edges, omega) for each in (z, taught))
    return omega**2 * (log_g.exp() * (log_g - log_s)).sum() / len(z)


class FGSSLClient(Client):
    """A client that the model that it receives teaches."""

    def __init__(self, *arguments: Any, task: Task, parts: Sequence[Part], params: FGSSLParameters) -> None:
        """Set up a client; the first arguments are those of :class:`feddep.federation.client.Client`."""
        super().__init__(*arguments)
        self.graph, self.params, self.device = parts[self.number][0], params, task.device
        self.teacher: Any = task.new_model().requires_grad_(requires_grad=False)
        self.random = seeding.generator(task.seed, f"client{self.number}", "views")
        self.dropout = seeding.torch_generator(task.seed, f"client{self.number}", "views", device=task.device)
        self.train_nodes = torch.from_numpy(self.split.train).to(task.device)
        starts = np.repeat(np.arange(self.graph.num_nodes), self.graph.degrees)
        self.edges = torch.from_numpy(starts).to(task.device), torch.from_numpy(self.graph.indices).long().to(task.device)
        self.learner.regularizer = self.taught

    def load(self, weights: Payload) -> None:
        """Take over the server's weights, as a teacher also."""
        super().load(weights)
        self.teacher.load_state_dict(self.model.state_dict())

    def view(self, edges: float, columns: float) -> Evaluator:
        """Inputs of a model on a view of the subgraph."""
        return Evaluator(without(self.graph, edges, columns, self.random), self.device, self.model.aggregation)

    def taught(self, model: Any) -> Tensor:
        """What is added to the loss of one step."""
        params, nodes = self.params, self.train_nodes
        weak, strong = self.view(params.weak_edges, params.weak_columns), self.view(params.strong_edges, params.strong_columns)
        labels, own = weak.labels[nodes], params.teacher == "local"
        teacher, dropout = (model, self.dropout) if own else (self.teacher, None)
        taught = teacher.body(weak.features, weak.adjacency, generator=dropout)
        hidden = model.body(strong.features, strong.adjacency, generator=self.dropout)
        loss = params.contrast_weight * contrast(hidden[nodes], taught[nodes], labels, params.tau)
        if own:
            return loss
        z, z_taught = model.head(hidden, strong.adjacency), teacher.head(taught, weak.adjacency)
        return loss + params.distillation_weight * distillation(z, z_taught, self.edges, params.omega)


def run(task: Task, parameters: FGSSLParameters, steps: Any = None) -> RunResult:
    """FedAvg with taught clients."""
    parts = task.subgraphs()
    return fedavg.train_on(task, parts, partial(FGSSLClient, task=task, parts=parts, params=parameters))
