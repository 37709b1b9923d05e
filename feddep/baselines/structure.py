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

from feddep.baselines.open_sage import OpenSAGE
from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.nn.features import FeatureTable
from feddep.nn.sparse import SparseMatrix

_ROWS = 512
"""Nodes whose similarities to all candidates are computed at once."""


def unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1; rows of zeros stay."""
    return rows / rows.norm(dim=-1, keepdim=True).clamp_min(1e-12)


def edge_weights(metric: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """s_vu of the edges that are kept, summing to 1 for each node, or all 0 where no embedding points its way.

    Args:
        metric: m, shape (H,).
        own: h_v, shape (…, H).
        others: z_u of each node's candidates, shape (…, k, H).

    Returns:
        Shape (…, k).
    """
    cosines = (unit(metric * others) @ unit(metric * own).unsqueeze(-1)).squeeze(-1).relu()
    return cosines / cosines.sum(dim=-1, keepdim=True).clamp_min(1e-12)


@torch.no_grad()
def nearest(metric: Tensor, own: Tensor, others: Tensor, count: int) -> Tensor:
    """The candidates of the heaviest edges of each node: row numbers of ``others``, shape (n, min(count, N)).

    Args:
        metric: m, shape (H,).
        own: h_v, shape (n, H).
        others: z_u of all candidates, shape (N, H).
        count: edges k that a node keeps.
    """
    keys = unit(metric * others).T.contiguous()
    count = min(count, keys.shape[1])
    return torch.cat([(unit(metric * rows) @ keys).topk(count, dim=1).indices for rows in own.split(_ROWS)])


class StructureSAGE(OpenSAGE):
    """A GraphSAGE whose last convolution also aggregates over learned edges; trained on a :class:`LearnedStructure`."""

    def __init__(self, *sizes: Any, share: float) -> None:
        """Set up the layers.

        Args:
            sizes: the arguments of :class:`feddep.nn.sage.GraphSAGE`, with at least 2 layers.
            share: share λ of learned edges in the mean neighbour.
        """
        super().__init__(*sizes)
        self.share = share
        self.metric = nn.Parameter(torch.empty(self.convolutions[-1].inputs))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew; the metric starts with 1 everywhere, the plain cosine."""
        super().reset_parameters(generator)
        nn.init.ones_(self.metric)

    def mixed(self, neighbours: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """The mean neighbour that the last convolution reads, shape (…, H).

        Args:
            neighbours: mean of the real neighbours, shape (…, H).
            own: as for :func:`edge_weights`.
            others: as for :func:`edge_weights`.
        """
        weights = edge_weights(self.metric, own, others)
        share = self.share * weights.sum(dim=-1, keepdim=True)
        return (1 - share) * neighbours + self.share * (weights.unsqueeze(-2) @ others).squeeze(-2)

    def _complete_neighbours(self, k: int, neighbours: Tensor, nodes: np.ndarray, table: "LearnedStructure") -> Tensor:
        if k < len(self.convolutions) - 1:
            return neighbours
        return self.mixed(neighbours, *table.candidates(nodes))


class LearnedStructure:
    """A client's subgraph and the candidates of its learned edges: inputs to train on, and convolution with all neighbours."""

    def __init__(self, graph: Graph, fanout: int, device: str) -> None:
        """Prepare a client; :meth:`embed` and :meth:`retrieve` come before everything else.

        Args:
            graph: the client's subgraph, n nodes.
            fanout: neighbours drawn for a node in a mini-batch.
            device: where tensors live.
        """
        self._table = FeatureTable(graph.features, fanout, device)
        self._features = SparseMatrix.from_scipy(graph.features, device)
        self._mean = SparseMatrix.from_scipy(mean_adjacency(graph), device)
        self._labels = torch.from_numpy(graph.labels).to(device)
        self._own = torch.empty(0)
        self._others = torch.empty(0)
        self._kept = torch.empty(0)

    def joined(self, own: np.ndarray, neighbours: np.ndarray) -> SparseMatrix:
        """[x_v ‖ mean x_u], as :meth:`feddep.nn.features.FeatureTable.joined`."""
        return self._table.joined(own, neighbours)

    def candidates(self, nodes: np.ndarray) -> tuple[Tensor, Tensor]:
        """h_v of the given nodes and z_u of their candidates; shapes (…, H) and (…, k, H) for nodes of shape (…)."""
        chosen = torch.from_numpy(nodes).to(self._own.device, torch.int64)
        return self._own[chosen], self._others[self._kept[chosen]]

    @torch.no_grad()
    def embed(self, model: StructureSAGE) -> Tensor:
        """Compute h_v of all the client's nodes, the inputs of the last convolution, shape (n, H), and keep them."""
        self._own = self._inputs_of_last(model)
        return self._own

    def retrieve(self, model: StructureSAGE, received: Sequence[Tensor], count: int) -> None:
        """Find each node's candidates among the embeddings that other clients have sent.

        Args:
            model: gives the metric m.
            received: embeddings of length about 1 of each other client, each of shape (·, H).  They are taken for as long as
                the client's own are in the mean.
            count: edges k that a node keeps.
        """
        others = torch.cat([self._own[:0], *received])
        self._kept = nearest(model.metric, self._own, others, count)
        self._others = others * self._own.norm(dim=1).mean()

    @torch.no_grad()
    def correct(self, model: StructureSAGE, nodes: np.ndarray) -> int:
        """How many of ``nodes`` get their true class, with all their neighbours and learned edges."""
        last = model.convolutions[-1]
        own, weight = last.weight.split(last.inputs)
        x = self._inputs_of_last(model)
        neighbours = model.mixed(self._mean @ x, *self.candidates(np.arange(len(x))))
        chosen = torch.from_numpy(nodes).to(self._labels.device)
        logits = (x @ own + neighbours @ weight + last.bias)[chosen]
        return int((logits.argmax(dim=1) == self._labels[chosen]).sum())

    def _inputs_of_last(self, model: StructureSAGE) -> Tensor:
        x: Any = self._features
        for convolution in model.convolutions[:-1]:
            x = convolution.full(x, self._mean).relu()
        return x
