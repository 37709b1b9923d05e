"""GCFL+: the server splits clients into clusters whose gradients shrink alike (Xie et al., NeurIPS
2021).

All clients are one cluster at first, and each gets the mean of its cluster's weights.  A client
sends, beside its weights, the norm of its last gradient.  With the updates Δw_k = w_k − what k had
received, a cluster of three or more is split in two after round ``after`` if

    ‖mean of Δw_k‖ < ε₁    and    max ‖Δw_k‖ > ε₂,

and if the last gradient norms of all clients are known since the last split, ``sequence`` of them.
Between clients are their distances by dynamic time warping (DTW), the root of the least sum of
squared differences; the parts are those of the minimum cut of max(distances) − distances (Stoer and
Wagner, 1997).

The method is one for graph classification, where ε₁ and ε₂ are set by hand to the size of updates.
Until a cluster is split it is FedAvg of the shared layers.  The authors take the best over all
cluster models by test accuracy; here a client has its cluster's.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from feddep.federation.boundary import Payload, numbers
from feddep.federation.client import Client, Update
from feddep.methods.basic import fedavg
from feddep.methods.mixtures import GCFLPlusParameters
from feddep.methods.mixtures.mixing_server import MixingServer
from feddep.training.task import RunResult, Task


class GCFLClient(Client):
    """A client that sends the norm of the gradient of what it shares, of its last step."""

    def extra(self) -> Payload:
        """The norm."""
        named = dict(self.model.named_parameters())
        gradients = [named[name].grad for name in self.weights()]
        return numbers(
            gradient_norm=float(sum(g.square().sum() for g in gradients if g is not None)) ** 0.5
        )


class ClusteringServer(MixingServer):
    """Gives each client the mean of its cluster.

    Attributes:
        clusters: the clients of each, by their numbers; none before the first round.
    """

    def __init__(self, *arguments: Any, parameters: GCFLPlusParameters) -> None:
        super().__init__(*arguments, parameters=parameters)
        self.clusters: list[list[int]] = []
        self._round = 0
        self._norms: list[list[float]] = []

    def mixture(self, updates: Sequence[Update]) -> Tensor:
        """The clients' shares within their clusters, after a split where it is due."""
        self._round += 1
        self.clusters = self.clusters or [list(range(len(updates)))]
        self._norms.append([float(update.extra["gradient_norm"]) for update in updates])
        changes = torch.stack([self._change(k, update.weights) for k, update in enumerate(updates)])
        self.clusters = [
            part for cluster in self.clusters for part in self._parts(cluster, changes[cluster])
        ]
        shares = torch.tensor(self.shares(updates), dtype=torch.float64)
        rows = torch.zeros(len(updates), len(updates)).double()
        for cluster in self.clusters:
            rows[np.ix_(cluster, cluster)] = shares[cluster]
        return rows

    def _change(self, client: int, weights: Payload) -> Tensor:
        received = self.weights_for(client)
        return torch.cat([(tensor - received[name]).flatten() for name, tensor in weights.items()])

    def _parts(self, cluster: list[int], changes: Tensor) -> list[list[int]]:
        given = self.parameters
        stationary = (
            float(changes.mean(dim=0).norm()) < given.epsilon1
            and float(changes.norm(dim=1).max()) > given.epsilon2
        )
        late = self._round > given.after and len(self._norms) >= given.sequence
        if not (stationary and late and len(cluster) > 2):
            return [cluster]
        sequences = np.array(self._norms[-given.sequence :]).T[cluster]
        self._norms = []
        distances = time_warping(sequences)
        return [
            sorted(cluster[k] for k in part) for part in minimum_cut(distances.max() - distances)
        ]


def time_warping(sequences: np.ndarray) -> np.ndarray:
    """DTW distance of each two of K sequences of L numbers, shape (K, K), from shape (K, L)."""
    count, length = sequences.shape
    least = np.full((length + 1, length + 1, count, count), np.inf)
    least[0, 0] = 0
    for i in range(length):
        for j in range(length):
            before = np.minimum(np.minimum(least[i, j], least[i, j + 1]), least[i + 1, j])
            least[i + 1, j + 1] = (sequences[:, None, i] - sequences[None, :, j]) ** 2 + before
    return np.sqrt(least[length, length])


def minimum_cut(weights: np.ndarray) -> tuple[list[int], list[int]]:
    """The two sets of vertices between which the weights, symmetric and of shape (K, K), add up to
    the least.
    """
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (i, j, weights[i, j]) for i, j in itertools.combinations(range(len(weights)), 2)
    )
    return nx.stoer_wagner(graph)[1]


def run(task: Task, parameters: GCFLPlusParameters, steps: Any = None) -> RunResult:
    """FedAvg within clusters."""
    *_, (last, _) = task.new_model().named_children()
    return fedavg.train_on(
        task,
        task.subgraphs(),
        GCFLClient,
        partial(ClusteringServer, parameters=parameters),
        extra={"gradient_norm": ()},
        shared=lambda name: parameters.shared == "all" or not name.startswith(f"{last}."),
    )
