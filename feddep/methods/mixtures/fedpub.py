"""FED-PUB: clients are mixed whose models answer alike on a random graph, and mask what they
receive (Baek et al., ICML 2023).

A client's layers apply θ ∘ μ in place of their weights.  The masks μ, at first 1, stay with the
client; the server sends it θ̄.  Its loss is CE + λ₁ ‖μ‖₁ + λ₂ Σ ‖θ − θ̄‖₂, a norm a tensor, the
latter from the second round on.  Where nothing is trained, entries of μ below λ₁ in size are taken
as 0.  After its local steps a client sends θ and f_k, the mean over the nodes of a random graph of
what its model gives for them, shape (C,).  The server answers with

    θ̄_k = Σ_l a_kl θ_l,    a_kl = softmax over l of τ cos(f_k, f_l).

The random graph, 5 blocks of 100 nodes with normal features, is drawn by everyone from the same
seed: it holds nothing of any client and is not sent.  Beyond FedAvg, the server learns of each
client what its masked model gives for noise.

In the released code both regularisers are taken from ``state_dict()``, whose tensors are detached:
they add constants to the loss, and masks are trained by the cross-entropy alone (``regularizers:
released``).  Its masks are sent and averaged too, and no client reads the average.  Its network
ends in a linear layer, masked too, and f_k is the mean of that layer's inputs before ReLU
(``compared: embeddings``); here masks are laid over the weight matrices of the setting's encoder,
and f_k is what its last layer gives.  The paper's text was not at hand; the norms are those of the
code.
"""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.graph.graph import Graph
from feddep.methods.basic import fedavg
from feddep.methods.mixtures import FedPubParameters
from feddep.methods.mixtures.mixing_server import SimilarityServer
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import RunResult, Task
from feddep.utils import seeding

BLOCKS, BLOCK_NODES, EDGE_PROBABILITY = 5, 100, 0.1
"""Blocks of the random graph, nodes of each, and the probability of an edge within one; there is
none between two (code).
"""


class Mask(nn.Module):
    """θ ∘ μ; when the module is not in training, without the entries of μ below a threshold in
    size.
    """

    def __init__(self, weight: Tensor, threshold: float) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.ones_like(weight))
        self.threshold = threshold

    def forward(self, weight: Tensor) -> Tensor:
        return weight * (
            self.mask if self.training else self.mask * (self.mask.abs() >= self.threshold)
        )


def masked(model: Any, threshold: float) -> Any:
    """The model with a mask on the weight matrix of each layer."""
    for layer in model.children():
        parametrize.register_parametrization(layer, "weight", Mask(layer.weight, threshold))
    return model


def random_graph(task: Task, model: Any) -> tuple[Tensor, SparseMatrix]:
    """The graph that models are compared on, drawn from the run's seed: features, shape (500, F),
    and what a model aggregates neighbours with.
    """
    n = BLOCKS * BLOCK_NODES
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    within = pairs[:, 0] // BLOCK_NODES == pairs[:, 1] // BLOCK_NODES
    drawn = seeding.generator(task.seed, "fedpub", "edges").random(len(pairs)) < EDGE_PROBABILITY
    graph = Graph.from_edges(
        pairs[within & drawn], sp.csr_matrix((n, 1)), np.zeros(n, dtype=np.int64), 1
    )
    generator = task.torch_generator("fedpub", "features")
    features = torch.randn(n, task.graph.num_features, generator=generator)
    adjacency = SparseMatrix.from_scipy(model.aggregation(graph), task.device)
    return features.to(task.device), adjacency


class FedPubClient(Client):
    """A client that masks the weights that it receives."""

    def __init__(
        self, *arguments: Any, graph: tuple[Tensor, SparseMatrix], parameters: FedPubParameters
    ) -> None:
        """Set up a client, whose model has masks; the first arguments are those of
        :class:`Client`.
        """
        super().__init__(*arguments)
        self.graph, self.parameters = graph, parameters
        self.received: Payload | None = None
        self.model.eval()
        if parameters.regularizers == "written":
            self.learner.regularizer = self.penalty

    def load(self, weights: Payload) -> None:
        """Take over θ̄; those of the first round are nobody's, and nothing is held near them."""
        super().load(weights)
        state = self.model.state_dict()
        self.received = (
            {} if self.received is None else {name: state[name].clone() for name in weights}
        )

    def train(self) -> float:
        """The local steps, with all of the masks."""
        self.model.train()
        loss = super().train()
        self.model.eval()
        return loss

    def penalty(self, model: Any) -> Tensor:
        """λ₁ ‖μ‖₁ + λ₂ Σ ‖θ − θ̄‖₂."""
        named = dict(model.named_parameters())
        sizes = [tensor.abs().sum() for name, tensor in named.items() if is_mask(name)]
        distances = [(named[name] - given).norm() for name, given in (self.received or {}).items()]
        return self.parameters.lambda1 * sum(sizes[1:], sizes[0]) + self.parameters.lambda2 * sum(
            distances, torch.tensor(0.0)
        )

    @torch.no_grad()
    def extra(self) -> Payload:
        """f_k, the mean on the random graph of logits, shape (C,), or of embeddings, (H,)."""
        hidden, adjacency = self.graph
        layers = self.model.layers
        if self.parameters.compared == "embeddings":
            layers = layers[:-1]
        for k, layer in enumerate(layers):
            hidden = layer.full(hidden.relu() if k else hidden, adjacency)
        return {"function": hidden.mean(dim=0)}


def is_mask(name: str) -> bool:
    """Whether a weight of this name is a mask."""
    return name.endswith(".mask")


def run(task: Task, parameters: FedPubParameters, steps: Any = None) -> RunResult:
    """Masked clients, mixed by the similarity of their outputs."""
    model: Any = task.new_model()
    compared = -1
    if parameters.compared == "embeddings":
        task.check_hidden()
        compared = -2
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(FedPubClient, graph=random_graph(task, model), parameters=parameters),
        partial(SimilarityServer, parameters=parameters, name="function"),
        new_model=lambda: masked(task.new_model(), parameters.lambda1),
        extra={"function": (model.output_widths[compared],)},
        shared=lambda name: not is_mask(name),
    )
