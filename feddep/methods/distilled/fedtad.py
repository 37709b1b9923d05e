"""FedTAD: the server distils the clients' models into the global one on a graph that it generates
(Zhu et al., IJCAI 2024).

Once, each client sends its reliability for each class, the sum over its training nodes i of that
class of

    (1 + Σ_{j ∈ N(i)} cos(f_i, f_j)) / (|N(i)| + 1),   f_i = [x_i, t_i],   t_i = (T_ii, (T²)_ii, …),
    T = (A + I) D̂⁻¹

and the server divides it by the sum over the clients: r_kc.  It tells little less than the number
of training nodes a class. After each round of FedAvg the server draws noise z and equally many of
all classes c, and generates features x = G(z, c), each node joined to those most similar to it.
With the logits f_k of client k's model, f of the global model, and D_c their mean distance on class
c, it takes

    a step of the generator:     Σ_kc r_kc (λ₁ CE_c(f_k) − D_c(f, f_k)) + λ₂ M exp(−mean_ij ‖z_i −
        z_j‖² |x_i − x_j|)
    steps of the global model:   Σ_kc r_kc D_c(f, f_k)

where M is the number of clients, and norms are means over coordinates.  Adam's moments of both are
kept over all rounds.  No gradient of D reaches the clients' logits (code).

Slips of the authors' code: dropout is on wherever a model is used, also where it is tested; here it
is on where the global model is trained.  t_i are the numbers of the nodes that walks visit, which
outweigh all features (``topology: walk_ids``).  D is the L1 norm of logits, where the text names
the Kullback-Leibler divergence (``divergence``).  The file as published does not compile.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, normalize, one_hot

from feddep.federation.boundary import Payload
from feddep.federation.client import Client, Update
from feddep.federation.server import Server
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.distilled import FedTADParameters
from feddep.nn.linear import Linear
from feddep.nn.sparse import SparseMatrix
from feddep.training.divergence import check_finite
from feddep.training.learner import Adam
from feddep.training.task import RunResult, Task
from feddep.utils import seeding

NOISE = 32
"""Width of z (code)."""


def topology_embedding(
    graph: Graph, params: FedTADParameters, rng: np.random.Generator
) -> np.ndarray:
    """t_i of all nodes: return probabilities, shape (n, L), or ``walk_ids`` of walks of 1 … L
    nodes, shape (n, L (L + 1) / 2).
    """
    with_self_loops = graph.adjacency + sp.eye_array(
        graph.num_nodes, dtype=np.float32, format="csr"
    )
    step = sp.csr_matrix(with_self_loops / with_self_loops.sum(axis=0))
    power, returns, walks = sp.eye_array(graph.num_nodes, format="csr"), [], []
    for length in range(1, params.walk_length + 1):
        if params.topology == "return":
            power = power @ step
            returns.append(power.diagonal())
            continue
        here = np.arange(graph.num_nodes)
        for position in range(length):
            if position:  # to itself or to a neighbour
                drawn = rng.integers(graph.degrees[here] + 1)
                here = with_self_loops.indices[with_self_loops.indptr[here] + drawn]
            walks.append(here)
    return np.column_stack(returns or walks)


def reliability(
    graph: Graph, train: np.ndarray, params: FedTADParameters, rng: np.random.Generator
) -> np.ndarray:
    """A client's reliability for each class, shape (C,)."""
    f = sp.csr_matrix(sp.hstack([graph.features, topology_embedding(graph, params, rng)]))
    lengths = np.sqrt(np.asarray(f.multiply(f).sum(axis=1)).ravel())
    f = sp.diags_array(1 / np.maximum(lengths, 1e-8)) @ f
    cosines = np.asarray(f.multiply(graph.adjacency @ f).sum(axis=1)).ravel()
    of_nodes = (1 + cosines) / (graph.degrees + 1)
    sums = np.bincount(graph.labels[train], of_nodes[train], minlength=graph.num_classes)
    return sums.astype(np.float64)  # integers, where there is no training node


class FedTADClient(Client):
    """A client of FedAvg that sends its reliability with its first update."""

    def __init__(self, *arguments: Any, task: Task, params: FedTADParameters) -> None:
        """Set up a client; the first arguments are those of
        :class:`feddep.federation.client.Client`.
        """
        super().__init__(*arguments)
        rng = seeding.generator(task.seed, f"client{self.number}", "walks")
        found = reliability(self.evaluator.graph, self.split.train, params, rng)
        self.unsent = {"reliability": torch.from_numpy(found)}

    def extra(self) -> Payload:
        """The reliability, once."""
        unsent, self.unsent = self.unsent, {}
        return unsent


class Generator(nn.Module):
    """G: features of generated nodes, shape (n, F), from noise and classes."""

    def __init__(self, features: int, classes: int, random: torch.Generator) -> None:
        super().__init__()
        widths = [classes + NOISE, 64, 128, 256, features]
        self.classes = nn.Parameter(torch.randn(classes, classes, generator=random))
        layers = [Linear(*sizes) for sizes in itertools.pairwise(widths)]
        for layer in layers:
            layer.reset_parameters(random)
        self.layers = nn.ModuleList(layers)

    def forward(self, z: Tensor, c: Tensor) -> Tensor:
        hidden = torch.cat([self.classes[c], z], dim=1)
        for layer in self.layers[:-1]:
            hidden = layer(hidden).tanh()
        outputs: Tensor = self.layers[-1](hidden)
        return outputs


class FedTADServer(Server):
    """A server that distils after each mean."""

    def __init__(self, *arguments: Any, task: Task, params: FedTADParameters) -> None:
        """Start from initial weights, as :class:`feddep.federation.server.Server`."""
        super().__init__(*arguments)
        self.params, self.device = params, task.device
        self.random = task.torch_generator("fedtad", "noise")
        self.dropout = seeding.torch_generator(task.seed, "fedtad", "dropout", device=task.device)
        self.model = task.new_model()
        self.of_clients = [
            task.new_model().requires_grad_(False) for _ in range(task.ownership.num_clients)
        ]
        inputs, _, self.num_classes, _, _ = task.model_sizes
        self.generator = Generator(
            inputs, self.num_classes, task.torch_generator("fedtad", "weights")
        ).to(task.device)
        decay = task.setting.weight_decay
        self.of_generator = Adam(
            self.generator.parameters(), lr=params.generator_learning_rate, weight_decay=decay
        )
        self.of_model = Adam(
            self.model.parameters(), lr=params.global_learning_rate, weight_decay=decay
        )
        c = np.minimum(
            np.arange(params.generated) // max(params.generated // self.num_classes, 1),
            self.num_classes - 1,
        )
        self.classes = torch.from_numpy(c).to(task.device)
        self.members = one_hot(self.classes, self.num_classes).float()
        self.reliability = torch.zeros(0)

    def aggregate(self, updates: Sequence[Update]) -> None:
        """The mean of the clients' weights, and then distillation from each of them."""
        super().aggregate(updates)
        if not len(self.reliability):
            sums = torch.stack([update.extra["reliability"] for update in updates]).float()
            self.reliability = (sums / sums.sum(dim=0).clamp(min=1e-8)).to(self.device)
        for model, weights in zip(
            [self.model, *self.of_clients],
            [self.weights, *(each.weights for each in updates)],
            strict=True,
        ):
            model.load_state_dict(weights)
        for _ in range(self.params.repetitions):
            z = torch.randn(len(self.classes), NOISE, generator=self.random).to(self.device)
            self.train_generator(z)
            self.train_model(z)
        check_finite("the global model after distillation", 0.0, self.model.parameters())
        self.weights = {
            name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()
        }

    def train_generator(self, z: Tensor) -> None:
        """One step of the generator."""
        params, x = self.params, self.generator(z, self.classes)
        adjacency = self.joined(x)
        outputs = self.model.full(x, adjacency)
        loss = params.diversity_weight * len(self.of_clients) * diversity(z, x)
        for model, r in zip(self.of_clients, self.reliability, strict=True):
            logits = model.full(x, adjacency)
            semantic = self.by_class(cross_entropy(logits, self.classes, reduction="none"))
            loss = loss + r @ (
                params.semantic_weight * semantic - self.distance(outputs, logits.detach())
            )
        self.of_generator.zero_grad()
        loss.backward(inputs=list(self.generator.parameters()))
        self.of_generator.step()

    def train_model(self, z: Tensor) -> None:
        """Steps of the global model on one graph."""
        with torch.no_grad():
            x = self.generator(z, self.classes)
            adjacency = self.joined(x)
            logits = [model.full(x, adjacency) for model in self.of_clients]
        for _ in range(self.params.global_steps):
            self.of_model.zero_grad()
            outputs = self.model.full(x, adjacency, generator=self.dropout)
            distances = [
                r @ self.distance(outputs, target)
                for r, target in zip(self.reliability, logits, strict=True)
            ]
            torch.stack(distances).sum().backward()
            self.of_model.step()

    def joined(self, x: Tensor) -> SparseMatrix:
        """Matrix to aggregate with on the graph that joins each node to the most similar ones,
        itself among them.
        """
        unit = normalize(x.detach())
        nearest = (
            (unit @ unit.T).topk(min(self.params.neighbours, len(x)), dim=1).indices.cpu().numpy()
        )
        edges = np.column_stack([np.repeat(np.arange(len(x)), nearest.shape[1]), nearest.ravel()])
        graph = Graph.from_edges(edges, sp.csr_matrix((len(x), 1)), np.zeros(len(x)), 1)
        return SparseMatrix.from_scipy(self.model.aggregation(graph), self.device)

    def distance(self, outputs: Tensor, target: Tensor) -> Tensor:
        """D_c, shape (C,)."""
        if self.params.divergence == "l1":
            return self.by_class((outputs - target).abs().mean(dim=1))
        target = target.log_softmax(dim=1)
        return self.by_class(
            kl_div(outputs.log_softmax(dim=1), target, reduction="none", log_target=True).sum(dim=1)
        )

    def by_class(self, values: Tensor) -> Tensor:
        """Means over the nodes of each class, shape (C,); 0 where there are none."""
        return (values @ self.members) / self.members.sum(dim=0).clamp(min=1)


def diversity(z: Tensor, x: Tensor) -> Tensor:
    """exp(−mean_ij ‖z_i − z_j‖² |x_i − x_j|), norms as means over coordinates."""
    return torch.exp(
        -((torch.cdist(z, z) ** 2 / z.shape[1]) * (torch.cdist(x, x, p=1) / x.shape[1])).mean()
    )


def run(task: Task, parameters: FedTADParameters, steps: Any = None) -> RunResult:
    """FedAvg with distillation at the server."""
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(FedTADClient, task=task, params=parameters),
        partial(FedTADServer, task=task, params=parameters),
        extra={"reliability": (task.graph.num_classes,)},
    )
