"""FedSpray: soft targets for a client's own GNN, from features and proxies of neighbourhoods (Fu et
al., KDD 2024, with code).

Clients share an encoder f of features, a classifier g of f(x_i) + p_i, another g' of f(x_i), and
for each class a proxy s_c.  A training node has a learned proxy p_i, any other gets p_i = Σ_c
softmax(g'(f(x_i)))_c s_c.  In each round a client takes, for its local epochs each, steps of

    its GNN, which is not sent:  CE + λ₁ mean over reliable nodes of KL(softmax g(f(x_i) + p_i) ‖
        softmax GNN_i)
    f, g, g' and p:              mean over training nodes of CE(g'(f(x_i))) + KL(softmax GNN_i ‖
        softmax g(f(x_i) + p_i))

Reliable are training nodes, and those with a largest probability of g' above a threshold.  The
client sends f, g, g', and for each class the mean p_i of its training nodes; the server averages
the former by training nodes, the latter by those of the class, for which the shares of classes are
sent once.

Slips of the authors' code: proxies are averaged by these shares (``proxy_weights``), g' starts each
round from g (``plain_start``), and all weights of the GNN start between 0 and 1.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, one_hot

from feddep.federation.boundary import Payload
from feddep.federation.client import Client, Update
from feddep.federation.server import Server
from feddep.methods.basic import fedavg
from feddep.methods.distilled import FedSprayParameters
from feddep.nn.linear import Linear
from feddep.training.divergence import check_finite
from feddep.training.learner import Adam, new_optimizer
from feddep.training.task import RunResult, Task


def divergence(outputs: Tensor, target: Tensor) -> Tensor:
    """Mean over nodes of KL(softmax target ‖ softmax outputs); no gradient flows to the target."""
    target = target.detach().log_softmax(dim=1)
    return kl_div(outputs.log_softmax(dim=1), target, reduction="batchmean", log_target=True)


class FedSprayModel(nn.Module):
    """A GNN, and what is shared to teach it.

    Attributes:
        gnn: the client's own classifier.
        shared: ``encoder`` f, ``fused`` g and ``plain`` g'.
        proxies: s_c, shape (C, d); at first 0.01 c (code).
    """

    def __init__(self, task: Task, width: int) -> None:
        super().__init__()
        inputs, _, classes, _, _ = task.model_sizes
        self.gnn = task.new_model()
        self.aggregation = self.gnn.aggregation
        parts = {
            "encoder": Linear(inputs, width),
            "fused": Linear(width, classes),
            "plain": Linear(width, classes),
        }
        generator = task.torch_generator("fedspray", "weights")
        for part in parts.values():
            part.reset_parameters(generator)
        self.shared = nn.ModuleDict(parts)
        self.register_buffer("proxies", 0.01 * torch.arange(classes)[:, None] * torch.ones(width))
        self.to(task.device)

    def full(self, x: Any, adjacency: Any, **options: Any) -> Tensor:
        """Logits of the GNN, shape (n, C)."""
        return self.gnn.full(x, adjacency, **options)

    def encoded(self, x: Any) -> Tensor:
        """f(x) of all nodes, shape (n, d)."""
        encoder: Any = self.shared["encoder"]
        return torch.relu(x @ encoder.weight.T + encoder.bias)


class FedSprayClient(Client):
    """A client with a GNN and node proxies of its own."""

    def __init__(self, *arguments: Any, task: Task, params: FedSprayParameters) -> None:
        """Set up a client; the first arguments are those of
        :class:`feddep.federation.client.Client`.
        """
        super().__init__(*arguments)
        labels = self.evaluator.labels
        self.params = params
        self.nodes = torch.from_numpy(self.split.train).to(labels.device)
        self.trained = torch.zeros(len(labels), dtype=torch.bool, device=labels.device).index_fill(
            0, self.nodes, value=True
        )
        self.members = one_hot(labels[self.nodes], task.graph.num_classes).float()
        self.node_proxies = torch.full(
            (len(labels), params.proxy_width), 0.1, device=labels.device, requires_grad=True
        )
        self.optimizers: list[torch.optim.Optimizer] = []
        self.unsent = {"shares": self.members.sum(dim=0) / max(len(self.nodes), 1)}

    def load(self, weights: Payload) -> None:
        """Take over what is shared."""
        super().load(weights)
        if self.params.plain_start == "fused":
            self.model.shared["plain"].load_state_dict(self.model.shared["fused"].state_dict())

    def extra(self) -> Payload:
        """The share of each class in the training nodes, once."""
        unsent, self.unsent = self.unsent, {}
        return unsent

    def train(self) -> float:
        """The local steps of the GNN, and then those of what is shared; returns the GNN's last
        loss.
        """
        if not self.learner.size:  # it keeps what it was sent, and its GNN
            self.model.proxies.zero_()
            return 0.0
        if not self.optimizers or self.setting.optimizer_state == "fresh":
            self.optimizers = [
                new_optimizer(self.model.gnn, self.setting),
                new_optimizer(self.model.shared, self.setting),
                Adam([self.node_proxies], lr=self.params.proxy_learning_rate),
            ]
        loss = self.train_gnn(*self.soft_targets())
        self.train_shared()
        with torch.no_grad():
            sums = self.members.T @ self.node_proxies[self.nodes]
            self.model.proxies.copy_(sums / self.members.sum(dim=0).clamp(min=1)[:, None])
        check_finite(f"the model of client{self.number}", loss, self.model.parameters())
        return loss

    @torch.no_grad()
    def soft_targets(self) -> tuple[Tensor, Tensor]:
        """Give proxies to nodes that are not trained on; returns logits of g, (n, C), and who is
        reliable, (n,).
        """
        encoded, shared = self.model.encoded(self.evaluator.features), self.model.shared
        q = shared["plain"](encoded).softmax(dim=1)
        self.node_proxies.copy_(
            torch.where(self.trained[:, None], self.node_proxies, q @ self.model.proxies)
        )
        return shared["fused"](encoded + self.node_proxies), self.trained | (
            q.amax(dim=1) > self.params.confidence
        )

    def train_gnn(self, target: Tensor, reliable: Tensor) -> float:
        """Steps of the GNN; returns the cross-entropy before the last."""
        source, value = self.evaluator, 0.0
        labels, dropout = source.labels[self.nodes], self.learner.dropout  # type: ignore[union-attr]
        for _ in range(self.setting.local_epochs):
            self.optimizers[0].zero_grad()
            logits = self.model.gnn.full(source.features, source.adjacency, generator=dropout)
            loss = cross_entropy(logits[self.nodes], labels)
            (
                loss + self.params.soft_weight * divergence(logits[reliable], target[reliable])
            ).backward()
            self.optimizers[0].step()
            value = float(loss.detach())
        return value

    def train_shared(self) -> None:
        """Steps of f, g, g' and the node proxies."""
        target = self.evaluator.logits(self.model)[self.nodes]
        labels, shared = self.evaluator.labels[self.nodes], self.model.shared
        for _ in range(self.setting.local_epochs):
            for optimizer in self.optimizers[1:]:
                optimizer.zero_grad()
            encoded = self.model.encoded(self.evaluator.features)[self.nodes]
            fused = shared["fused"](encoded + self.node_proxies[self.nodes])
            (cross_entropy(shared["plain"](encoded), labels) + divergence(fused, target)).backward()
            for optimizer in self.optimizers[1:]:
                optimizer.step()


class FedSprayServer(Server):
    """A server that averages proxies of a class over those who have it."""

    def __init__(self, *arguments: Any, by_nodes: bool) -> None:
        """Start from initial weights; ``by_nodes`` counts training nodes of a class, not shares."""
        super().__init__(*arguments)
        self.by_nodes = by_nodes
        self.counts = torch.zeros(0)

    def aggregate(self, updates: Sequence[Update]) -> None:
        """The mean of what is shared; a class that nobody has keeps its proxy."""
        if not len(self.counts):
            counts = [
                update.extra["shares"] * (update.nodes if self.by_nodes else 1.0)
                for update in updates
            ]
            self.counts = torch.stack(counts)[..., None]
        old = self.weights["proxies"]
        super().aggregate(updates)
        total = self.counts.sum(dim=0)
        sums = (self.counts * torch.stack([update.weights["proxies"] for update in updates])).sum(
            dim=0
        )
        self.weights["proxies"] = torch.where(total > 0, sums / total.clamp(min=1e-9), old)


def run(task: Task, parameters: FedSprayParameters, steps: Any = None) -> RunResult:
    """Train a GNN a client."""
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(FedSprayClient, task=task, params=parameters),
        partial(FedSprayServer, by_nodes=parameters.proxy_weights == "nodes"),
        new_model=lambda: FedSprayModel(task, parameters.proxy_width),
        extra={"shares": (task.graph.num_classes,)},
        shared=lambda name: not name.startswith("gnn."),
    )
