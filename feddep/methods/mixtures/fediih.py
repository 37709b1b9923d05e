"""FedIIH: each latent factor of a disentangled network is mixed by its own similarity of clients
(Yu et al., AAAI 2025), as the authors' code runs it.

The network has P factors of width d.  With h = dropout(LeakyReLU(X W + b)), shape (n, P, d), each
of its routing layers takes x = h / ‖h‖ a factor, u = x, and a few times, for all nodes u with their
neighbours v,

    p_vuj = softmax over factors j of x_vj · u_uj,    u_uj ← x_uj + Σ_v p_vuj x_vj,    u_uj ← u_uj /
        ‖u_uj‖,

and gives dropout(LeakyReLU(u)); a linear map classifies.  A client sends its weights and for each
factor the mean m_j over its nodes of what further routing layers make of h.  The server mixes the
columns of W and rows of the last map that belong to factor j by

    softmax over clients l of s (1 − JS_j(k, l) / ln 2),
    JS(k, l) = (KL(N_k ‖ M) + KL(N_l ‖ M)) / 2,

with normal distributions N_k of mean m_j and log-variance m_j, and M of the mean of both means and
of both variances; the last bias gets the plain mean.

The paper's hierarchical variational graph autoencoder has no part in what the code learns: its
optimiser holds two vectors that are never sent, and its gradients of the network are erased before
the next step.  As routing has no weights, its means and log-variances are one function of h up to
dropout, and are sent once here; the code sends them as they are in training, here they are without
dropout.  JS is not bounded by ln 2, as M is no mixture: similarities may be negative.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize

from feddep.federation.boundary import Payload
from feddep.federation.client import Client, Update
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.mixtures import FedIIHParameters
from feddep.methods.mixtures.mixing_server import MixingServer
from feddep.nn.dropout import drop
from feddep.nn.linear import Linear, draw_uniform
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import RunResult, Task

Edges = tuple[Tensor, Tensor]
"""The nodes u and neighbours v of all directed edges, shape (E,) each."""


def routed(h: Tensor, edges: Edges, times: int) -> Tensor:
    """u of n nodes, from their h, both of shape (n, P, d)."""
    targets, sources = edges
    x = normalize(h, dim=2)
    of_neighbours, u = x.index_select(0, sources), x
    for _ in range(times):
        p = (of_neighbours * u.index_select(0, targets)).sum(dim=2).softmax(dim=1)
        u = normalize(x.index_add(0, targets, of_neighbours * p.unsqueeze(2)), dim=2)
    return u


class DisentangledNetwork(nn.Module):
    """The network."""

    def __init__(
        self,
        features: int,
        width: int,
        classes: int,
        layers: int,
        dropout: float,
        params: FedIIHParameters,
    ) -> None:
        """Set up P factors of a width and layers, two of them linear; other arguments are those of
        :class:`feddep.nn.sage.GraphSAGE`.
        """
        super().__init__()
        self.dropout, self.params = dropout, params
        self.routing_layers, self.latent_layers = max(layers - 2, 1), 1 + (layers > 2)
        self.weight = nn.Parameter(torch.empty(features, params.factors * width))
        self.bias = nn.Parameter(torch.empty(params.factors * width))
        self.last = Linear(params.factors * width, classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew; W and b from ±1 / √(P d) (code)."""
        draw_uniform((self.weight, self.bias), len(self.bias), generator)
        self.last.reset_parameters(generator)

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The adjacency matrix, which tells the edges."""
        return graph.adjacency

    def route(
        self, h: Tensor, edges: Edges, layers: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Several routing layers, from and to shape (n, P, d)."""
        for _ in range(layers):
            u = leaky_relu(routed(h, edges, self.params.routings))
            h = drop(u, self.dropout, generator)
        return h

    def hidden(
        self, x: Any, adjacency: SparseMatrix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Inputs of the last map, shape (n, P, d)."""
        h = drop(leaky_relu(x @ self.weight + self.bias), self.dropout, generator)
        h = h.unflatten(1, (self.params.factors, -1))
        return self.route(h, adjacency.entries(), self.routing_layers, generator)

    def full(
        self, x: Any, adjacency: SparseMatrix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        return self.last(self.hidden(x, adjacency, generator).flatten(1))

    @torch.no_grad()
    def latents(self, x: Any, adjacency: SparseMatrix) -> Tensor:
        """m of the graph, shape (P, d)."""
        h = self.hidden(x, adjacency)
        return self.route(h, adjacency.entries(), self.latent_layers).mean(dim=0)


class FedIIHClient(Client):
    """A client that sends the means of its factors."""

    def extra(self) -> Payload:
        """m, shape (P, d)."""
        inputs = self.evaluator
        return {"latents": self.model.latents(inputs.features, inputs.adjacency)}


def divergences(means: Tensor) -> Tensor:
    """JS_j of each two of K clients, shape (P, K, K), from all m, shape (K, P, d)."""
    mean = means.transpose(0, 1).double()
    variance = mean.exp()
    middle = (mean.unsqueeze(1) + mean.unsqueeze(2)) / 2
    spread = (variance.unsqueeze(1) + variance.unsqueeze(2)) / 2
    own, own_variance = mean.unsqueeze(2), variance.unsqueeze(2)
    terms = (spread / own_variance).log() + (own_variance + (own - middle).square()) / spread - 1
    one_way = terms.sum(dim=3) / 2
    return (one_way + one_way.transpose(1, 2)) / 2


class FactorServer(MixingServer):
    """Mixes clients, factor by factor."""

    def mixture(self, updates: Sequence[Update]) -> Tensor:
        """Shares a_jkl of clients l in factor j of client k, shape (P, K, K)."""
        found = divergences(torch.stack([update.extra["latents"] for update in updates]))
        return (self.parameters.scale * (1 - found / torch.log(torch.tensor(2.0)))).softmax(dim=2)

    def aggregate(self, updates: Sequence[Update]) -> None:
        """Mix the clients' weights anew."""
        shares = self.mixture(updates).float()
        factors = len(shares)
        sent = {
            name: torch.stack([update.weights[name] for update in updates]) for name in self.weights
        }
        mixed = {
            name: torch.einsum(
                "jkl,l...jd->k...jd", shares, sent[name].unflatten(-1, (factors, -1))
            )
            for name in ("weight", "bias", "last.weight")
        }
        bias = sent["last.bias"].mean(dim=0)
        self._personal = {
            update.client: {
                **{name: each[k].flatten(-2) for name, each in mixed.items()},
                "last.bias": bias,
            }
            for k, update in enumerate(updates)
        }


def run(task: Task, parameters: FedIIHParameters, steps: Any = None) -> RunResult:
    """Disentangled networks, mixed by factor."""
    width = task.setting.hidden_channels
    return fedavg.train_on(
        task,
        task.subgraphs(),
        FedIIHClient,
        partial(FactorServer, parameters=parameters),
        lambda: task.drawn(DisentangledNetwork(*task.model_sizes, parameters)),
        extra={"latents": (parameters.factors, width)},
    )
