"""FedGSL: subgraphs augmented by learned edges to noised embeddings of other clients' nodes (Zhao,
Huang and Tsai, 2022).

Source: "FedGSL: Federated graph structure learning for local subgraph augmentation" (IEEE Big Data
2022).  Its text was not at
hand: this is a reconstruction from its title, from what FedDEP says of it (it augments subgraphs by
what it retrieves across clients, and injects noise to protect what is shared, without a further
authority), and from metric-based graph structure learning (IDGL: Chen, Wu and Zaki, 2020), the kind
of structure learning that needs nothing but embeddings.

1. Each client embeds its nodes with the shared classifier, scales every embedding to length 1, adds
   noise and sends it.  The server passes it on to all other clients.
2. Each node retrieves the k embeddings most similar to its own among those of other clients: its
    learned edges.
3. The classifier's last convolution aggregates over real and learned edges.  The weights of learned
   edges come from a metric that clients train with the classifier, and the server averages with it.

1 and 2 are repeated every few rounds.  The global graph is classified with its own edges alone, as
for every method. No client needs to know that an edge to another client exists.

A learned edge from node v to node u has the weight

    s_vu = max(0, cos(m ⊙ h_v, m ⊙ z_u)),

where h_v is the node's own embedding, z_u the one that another client has sent, and m a metric that
is trained with the classifier (the weighted cosine of IDGL: Chen, Wu and Zaki, 2020).  Each node
keeps the k heaviest edges, and s is scaled to sum to 1 over them.  The last convolution reads, for
the mean neighbour of v,

    (1 − λ) · mean of x_u over v's neighbours + λ · Σ_u s_vu z_u.

A node whose edges all have weight 0 reads its neighbours alone.  For a GCN the normalised sum over
a node and its neighbours stands for the mean, as in IDGL.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, ByClient, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.sampling import SampledTrees
from feddep.methods.fedgsl import FedGSLParameters
from feddep.nn.encoders import GCN
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.training.learner import new_learner
from feddep.training.task import RunResult, Task
from feddep.utils import seeding

EMBEDDINGS = "embeddings"
"""The kind of message that carries a client's embeddings, up and to the others."""
_ROWS = 512  # nodes whose similarities to all candidates are computed at once


def edge_weights(metric: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """s_vu of the edges that are kept, summing to 1 for each node, or all 0 where no embedding
    points its way; shape (…, k).

    Takes the metric m, shape (H,), h_v of the nodes, (…, H), and z_u of each node's candidates, (…,
    k, H).
    """
    cosines = (
        (normalize(metric * others, dim=-1) @ normalize(metric * own, dim=-1).unsqueeze(-1))
        .squeeze(-1)
        .relu()
    )
    return cosines / cosines.sum(dim=-1, keepdim=True).clamp_min(1e-12)


@torch.no_grad()
def nearest(metric: Tensor, own: Tensor, others: Tensor, count: int) -> Tensor:
    """The candidates of the heaviest edges of each node: row numbers of ``others``, shape (n,
    min(count, N)).

    Takes the metric m, shape (H,), h_v of the nodes, (n, H), and z_u of all candidates, (N, H).
    """
    keys = normalize(metric * others).T.contiguous()
    count = min(count, keys.shape[1])
    return torch.cat(
        [(normalize(metric * rows) @ keys).topk(count, dim=1).indices for rows in own.split(_ROWS)]
    )


class Structured:
    """Lets the last convolution of an encoder aggregate over learned edges, too."""

    output_widths: Any
    layers: Any

    def __init__(self, *sizes: Any, share: float) -> None:
        """Set up the layers, as :class:`GraphSAGE` with at least 2; λ is the ``share`` of learned
        edges in the mean neighbour.
        """
        encoder: Any = super()
        encoder.__init__(*sizes)
        self.share = share
        self.metric = nn.Parameter(torch.empty(self.output_widths[-2]))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew; the metric starts as the plain cosine."""
        encoder: Any = super()
        encoder.reset_parameters(generator)
        nn.init.ones_(self.metric)

    def mixed(self, neighbours: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """The mean neighbour that the last convolution reads, shape (…, H), from that of real
        ``neighbours``, (…, H).
        """
        weights = edge_weights(self.metric, own, others)
        share = self.share * weights.sum(dim=-1, keepdim=True)
        return (1 - share) * neighbours + self.share * (weights.unsqueeze(-2) @ others).squeeze(-2)

    def structured_head(
        self, hidden: Tensor, adjacency: SparseMatrix, own: Tensor, others: Tensor
    ) -> Tensor:
        """Logits of all nodes, shape (n, C), from the inputs of the last convolution, (n, H)."""
        last, mixed = self.layers[-1], self.mixed(adjacency @ hidden, own, others)
        first, *rest = (
            (mixed if aggregated else hidden) @ weight
            for weight, (_, aggregated) in zip(last.maps, last.terms, strict=True)
        )
        return sum(rest, first) + last.bias  # type: ignore[no-any-return]


class StructureGCN(Structured, GCN):  # type: ignore[misc]
    """A GCN with learned edges."""


class StructureSAGE(Structured, GraphSAGE):
    """A GraphSAGE with learned edges; in a mini-batch it reads a :class:`StructureTable`."""

    def _complete_neighbours(
        self, k: int, neighbours: Tensor, trees: SampledTrees, table: "StructureTable"
    ) -> Tensor:
        if k < len(self.convolutions) - 1:
            return neighbours
        return self.mixed(neighbours, *table.candidates(trees.inner.nodes))


class StructureTable(FeatureTable):
    """Looks up the inputs of a client's sampled nodes: features, embeddings, and those of the
    candidates of their learned edges.

    Attributes:
        embedded: h_v of all the client's nodes, shape (n, H).
        others: z_u that other clients have sent, shape (N, H).
        kept: the candidates of each node: row numbers of ``others``, shape (n, k).
    """

    embedded = others = kept = torch.empty(0)

    def candidates(self, nodes: np.ndarray) -> tuple[Tensor, Tensor]:
        """h_v of the given nodes and z_u of their candidates; shapes (…, H) and (…, k, H) for nodes
        of shape (…).
        """
        chosen = torch.from_numpy(nodes).to(self.embedded.device, torch.int64)
        return self.embedded[chosen], self.others[self.kept[chosen]]


class LearnedStructure(Evaluator):
    """A client's subgraph and its learned edges: inputs to train on, and evaluation with all
    neighbours and learned edges.

    :meth:`embed` and :meth:`retrieve` come before everything else.  ``table`` has the inputs of the
    nodes.
    """

    def __init__(
        self,
        graph: Graph,
        device: str,
        aggregation: Callable[[Graph], sp.csr_matrix] = mean_adjacency,
    ) -> None:
        super().__init__(graph, device, aggregation)
        self.table = StructureTable(graph.features, device)

    @torch.no_grad()
    def embed(self, model: Any) -> Tensor:
        """Compute h_v of all the client's nodes, the inputs of the last convolution, shape (n, H),
        and keep them.
        """
        self.table.embedded = model.body(self.features, self.adjacency)
        return self.table.embedded

    def retrieve(self, model: Structured, received: Sequence[Tensor], count: int) -> None:
        """Find each node's ``count`` candidates among the embeddings that other clients have sent,
        shape (·, H) each.

        Their rows have a length of about 1; they are taken for as long as the client's own are in
        the mean.
        """
        own = self.table.embedded
        others = torch.cat([own[:0], *received])
        self.table.kept = nearest(model.metric, own, others, count)
        self.table.others = others * own.norm(dim=1).mean()

    def apply(self, model: Any, generator: torch.Generator | None = None) -> Tensor:
        hidden = model.body(self.features, self.adjacency, generator=generator)
        candidates = self.table.candidates(np.arange(len(hidden)))
        return model.structured_head(hidden, self.adjacency, *candidates)


def run(task: Task, parameters: FedGSLParameters, steps: Any = None) -> RunResult:
    """FedGSL from top to bottom.

    Raises:
        ConfigError: if the classifier has a single layer, so that there is nothing to send but
            features.
    """
    setting, seed, device = task.setting, task.seed, task.device
    task.check_hidden()
    parts, model = task.subgraphs(), new_model(task, parameters)
    sizes = [{"embeddings": (graph.num_nodes, setting.hidden_channels)} for graph, _ in parts]
    boundary = Boundary(
        {"model": schema_of(model), **REPORTS, EMBEDDINGS: ByClient(sizes, sizes)}, task.observers
    )
    structures = [LearnedStructure(graph, device, model.aggregation) for graph, _ in parts]
    learners = [
        new_learner(
            graph, split.train, setting, seed, f"client{i}", device, structure, structure.table
        )
        for i, ((graph, split), structure) in enumerate(zip(parts, structures, strict=True))
    ]
    clients = [
        Client(i, new_model(task, parameters), learner, structure, split, setting, boundary)
        for i, (learner, structure, (_, split)) in enumerate(
            zip(learners, structures, parts, strict=True)
        )
    ]
    noises = [
        seeding.torch_generator(seed, f"client{i}", "noise", device=device)
        for i in range(len(parts))
    ]

    def retrieve(done: int) -> None:
        if done % parameters.refresh:
            return
        embedded = [
            noised(structure.embed(model), parameters.noise, noise)
            for structure, noise in zip(structures, noises, strict=True)
        ]
        sent = [
            boundary.send(i, "up", EMBEDDINGS, {"embeddings": rows})
            for i, rows in enumerate(embedded)
        ]
        for i, structure in enumerate(structures):
            received = [
                boundary.send(i, "down", EMBEDDINGS, message, about=j)["embeddings"]
                for j, message in enumerate(sent)
                if j != i
            ]
            structure.retrieve(model, received, parameters.edges)

    return train_federated(task, model, boundary, clients, exchange=retrieve)


def new_model(task: Task, parameters: FedGSLParameters) -> Any:
    """The classifier with the run's initial weights, and the plain cosine for a metric."""
    encoder = StructureSAGE if task.setting.encoder == "sage" else StructureGCN
    return task.drawn(encoder(*task.model_sizes, share=parameters.share))


def noised(embeddings: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Rows of length 1 plus Gaussian noise whose length is ``noise`` as root mean square, shape (n,
    H).
    """
    rows = normalize(embeddings)
    return rows + noise / rows.shape[1] ** 0.5 * torch.empty_like(rows).normal_(generator=generator)
