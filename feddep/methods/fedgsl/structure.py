"""Edges learned between a client's nodes and others' nodes, from embeddings of both (graph structure learning).

A learned edge from node v to node u has the weight

    s_vu = max(0, cos(m ⊙ h_v, m ⊙ z_u)),

where h_v is the node's own embedding, z_u the one that another client has sent, and m a metric that is trained with the
classifier (the weighted cosine of IDGL: Chen, Wu and Zaki, 2020).  Each node keeps the k heaviest edges, and s is scaled to
sum to 1 over them.  The last convolution reads, for the mean neighbour of v,

    (1 − λ) · mean of x_u over v's neighbours + λ · Σ_u s_vu z_u.

A node whose edges all have weight 0 reads its neighbours alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from feddep.graph.graph import Graph
from feddep.graph.sampling import SampledTrees
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.training.evaluator import Evaluator

_ROWS = 512
"""Nodes whose similarities to all candidates are computed at once."""


def unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1; rows of zeros stay."""
    return rows / rows.norm(dim=-1, keepdim=True).clamp_min(1e-12)


def edge_weights(metric: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """s_vu of the edges that are kept, summing to 1 for each node, or all 0 where no embedding points its way; shape (…, k).

    Takes the metric m, shape (H,), h_v of the nodes, (…, H), and z_u of each node's candidates, (…, k, H).
    """
    cosines = (unit(metric * others) @ unit(metric * own).unsqueeze(-1)).squeeze(-1).relu()
    return cosines / cosines.sum(dim=-1, keepdim=True).clamp_min(1e-12)


@torch.no_grad()
def nearest(metric: Tensor, own: Tensor, others: Tensor, count: int) -> Tensor:
    """The candidates of the heaviest edges of each node: row numbers of ``others``, shape (n, min(count, N)).

    Takes the metric m, shape (H,), h_v of the nodes, (n, H), and z_u of all candidates, (N, H).
    """
    keys = unit(metric * others).T.contiguous()
    count = min(count, keys.shape[1])
    return torch.cat([(unit(metric * rows) @ keys).topk(count, dim=1).indices for rows in own.split(_ROWS)])


class StructureSAGE(GraphSAGE):
    """A GraphSAGE whose last convolution also aggregates over learned edges; it reads a :class:`StructureTable`."""

    def __init__(self, *sizes: Any, share: float) -> None:
        """Set up the layers, as :class:`GraphSAGE` with at least 2; λ is the ``share`` of learned edges in the mean neighbour."""
        super().__init__(*sizes)
        self.share = share
        self.metric = nn.Parameter(torch.empty(self.convolutions[-1].inputs))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew; the metric starts with 1 everywhere, the plain cosine."""
        super().reset_parameters(generator)
        nn.init.ones_(self.metric)

    def mixed(self, neighbours: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """The mean neighbour that the last convolution reads, shape (…, H), from that of real ``neighbours``, (…, H)."""
        weights = edge_weights(self.metric, own, others)
        share = self.share * weights.sum(dim=-1, keepdim=True)
        return (1 - share) * neighbours + self.share * (weights.unsqueeze(-2) @ others).squeeze(-2)

    def _complete_neighbours(self, k: int, neighbours: Tensor, trees: SampledTrees, table: "StructureTable") -> Tensor:
        if k < len(self.convolutions) - 1:
            return neighbours
        return self.mixed(neighbours, *table.candidates(trees.inner.nodes))


class StructureTable(FeatureTable):
    """Looks up the inputs of a client's sampled nodes: features, embeddings, and those of the candidates of their learned edges.

    Attributes:
        embedded: h_v of all the client's nodes, shape (n, H).
        others: z_u that other clients have sent, shape (N, H).
        kept: the candidates of each node: row numbers of ``others``, shape (n, k).
    """

    embedded = others = kept = torch.empty(0)

    def candidates(self, nodes: np.ndarray) -> tuple[Tensor, Tensor]:
        """h_v of the given nodes and z_u of their candidates; shapes (…, H) and (…, k, H) for nodes of shape (…)."""
        chosen = torch.from_numpy(nodes).to(self.embedded.device, torch.int64)
        return self.embedded[chosen], self.others[self.kept[chosen]]


class LearnedStructure(Evaluator):
    """A client's subgraph and its learned edges: inputs to train on, and evaluation with all neighbours and learned edges.

    :meth:`embed` and :meth:`retrieve` come before everything else.

    Attributes:
        table: inputs of the nodes.
    """

    def __init__(self, graph: Graph, device: str) -> None:
        """Prepare a client, whose subgraph has n nodes."""
        super().__init__(graph, device)
        self.table = StructureTable(graph.features, device)

    @torch.no_grad()
    def embed(self, model: StructureSAGE) -> Tensor:
        """Compute h_v of all the client's nodes, the inputs of the last convolution, shape (n, H), and keep them."""
        self.table.embedded = self._inputs_of_last(model)
        return self.table.embedded

    def retrieve(self, model: StructureSAGE, received: Sequence[Tensor], count: int) -> None:
        """Find each node's ``count`` candidates among the embeddings that other clients have sent, with the metric of ``model``.

        Each of the received is of shape (·, H), and its rows of length about 1; they are taken for as long as the client's own
        are in the mean.
        """
        own = self.table.embedded
        others = torch.cat([own[:0], *received])
        self.table.kept = nearest(model.metric, own, others, count)
        self.table.others = others * own.norm(dim=1).mean()

    @torch.no_grad()
    def logits(self, model: StructureSAGE) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        last = model.convolutions[-1]
        own, weight = last.weight.split(last.inputs)
        x = self._inputs_of_last(model)
        neighbours = model.mixed(self._mean @ x, *self.table.candidates(np.arange(len(x))))
        return x @ own + neighbours @ weight + last.bias

    def _inputs_of_last(self, model: StructureSAGE) -> Tensor:
        x: Any = self._features
        for convolution in model.convolutions[:-1]:
            x = convolution.full(x, self._mean).relu()
        return x
