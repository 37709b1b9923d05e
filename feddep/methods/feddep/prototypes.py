"""Prototypes: the few mean embeddings by which a client lets others know its nodes (FedDEP, Section
3.2).

Z'_i = { mean (z_v : v ∈ V_i, z_v in cluster c) : c ∈ [C] }
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from feddep.federation.boundary import Boundary
from feddep.methods.feddep import PrototypeParameters
from feddep.methods.feddep.clustering import Clustering, clusters
from feddep.methods.method import StepResult, by_client
from feddep.training.task import Task


def share_prototypes(
    task: Task, parameters: PrototypeParameters, results: Mapping[str, StepResult]
) -> StepResult:
    """Cluster each client's embeddings; send its prototypes up, once, and from there to every other
    client.

    Returns:
        ``client0.prototypes`` …, Z'_i, shape (C, d_z), as all have it now; and ``client0.targets``
        …, z'_v of each of the client's own nodes, shape (n_i, d_z), which stays with it.
    """
    embeddings = results["pretrain"].of_clients("embeddings")
    count = parameters.prototypes or task.graph.num_classes
    found = [
        find_prototypes(z, count, parameters.clustering, task.seed, f"client{i}")
        for i, z in enumerate(embeddings)
    ]
    boundary = Boundary(
        {"prototypes": {"embeddings": (count, embeddings[0].shape[1])}}, task.observers
    )
    sent = [
        boundary.send(i, "up", "prototypes", {"embeddings": own.embeddings})
        for i, own in enumerate(found)
    ]
    for i in range(len(sent)):
        for j, message in enumerate(sent):
            if j != i:
                boundary.send(i, "down", "prototypes", message)
    shared = by_client(
        prototypes=[message["embeddings"] for message in sent],
        targets=[own.of_nodes for own in found],
    )
    return StepResult(shared, boundary.communication.rows())


@dataclass(frozen=True, eq=False)
class Prototypes:
    """One client's prototypes Z'_i, shape (C, d_z), and the ``cluster`` of each of its nodes,
    int64, shape (n,).
    """

    embeddings: Tensor
    cluster: Tensor

    @property
    def of_nodes(self) -> Tensor:
        """z'_v, the prototype of each node's cluster, shape (n, d_z)."""
        return self.embeddings[self.cluster]


def find_prototypes(
    embeddings: Tensor, count: int, clustering: Clustering, seed: int, name: str
) -> Prototypes:
    """Group a client's embeddings, shape (n, d_z), and take the mean of each group.

    Where there are fewer groups than ``count``, because embeddings coincide or a cluster stays
    empty, prototypes are repeated until there are ``count``: what a client sends always has the
    same size, and a search for the nearest finds the same.  ``name``, such as ``client3``, names
    the random streams.
    """
    found = clusters(embeddings, count, clustering, seed, name)
    _, first, group = np.unique(found, return_index=True, return_inverse=True)
    # In the order of first members.
    cluster = torch.from_numpy(np.argsort(np.argsort(first))[group]).to(embeddings.device)
    sums = torch.zeros(
        len(first), embeddings.shape[1], dtype=torch.float64, device=embeddings.device
    )
    sums.index_add_(0, cluster, embeddings.double())
    means = (sums / torch.bincount(cluster).unsqueeze(1)).to(embeddings.dtype)
    return Prototypes(means[torch.arange(count, device=embeddings.device) % len(first)], cluster)
