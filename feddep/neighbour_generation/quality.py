"""How good generated neighbours are, seen by the experimenter, who knows the whole graph (FedSage, Appendix D.1)."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from feddep.evaluation import mean_adjacency
from feddep.graph import Graph
from feddep.partition import Partition
from feddep.steps import Made

_ROWS = 512
"""Neighbourhoods of so many nodes are compared at once."""


def predicted_neighbours(graph: Graph, partition: Partition, generated: Made) -> np.ndarray:
    """ñ_v of each node of the global graph, as the client that holds it predicts it (Figure 1); float32, shape (n,).

    Args:
        graph: the global graph.
        partition: which client holds which node.
        generated: what the stage ``generator`` has made.
    """
    predicted = np.zeros(graph.num_nodes, dtype=np.float32)
    for client, counts in enumerate(generated.of_clients("count")):
        predicted[partition.nodes(client)] = counts.cpu().numpy()
    return predicted


@dataclass(frozen=True, eq=False)
class Distances:
    """Of each node of the global graph, ‖mean x over some neighbours − mean x over N(v)‖₂, float32, shape (n,) (Table 1).

    The paper says "the L2 distance between the averaged feature distributions"; a mean over no neighbours is 0.

    Attributes:
        local: over N_i(v), the neighbours in the client's own subgraph.
        mended: over N'_i(v), these and the generated ones.
        empty: over N'_i(v), but with zeros for the features of the generated ones: what a generator gains that knows only
            how many neighbours are missing.
    """

    local: np.ndarray
    mended: np.ndarray
    empty: np.ndarray


def neighbourhood_distances(graph: Graph, partition: Partition, generated: Made) -> Distances:
    """How far neighbourhoods are from the true ones, as a client has them and as NeighGen mends them.

    Args:
        graph: the global graph.
        partition: which client holds which node.
        generated: what the stage ``generator`` has made.
    """
    distances = Distances(*(np.zeros(graph.num_nodes, dtype=np.float32) for _ in range(3)))
    true = mean_adjacency(graph)
    made = zip(generated.of_clients("owner"), generated.of_clients("features"), strict=True)
    for client, (owners, features) in enumerate(made):
        nodes, owner, dense = partition.nodes(client), owners.cpu().numpy(), features.cpu().numpy()
        x, adjacency = graph.features[nodes], graph.adjacency[nodes][:, nodes]
        degrees, new = np.diff(adjacency.indptr), np.bincount(owner, minlength=len(nodes))
        ends = np.cumsum(np.concatenate([[0], new]))  # generated neighbours are ordered by the node that they are for
        for start in range(0, len(nodes), _ROWS):
            rows = slice(start, start + _ROWS)
            chosen, counts = nodes[rows], new[rows]
            of_rows = dense[ends[start] : ends[min(start + _ROWS, len(nodes))]].astype(np.float32)
            which = np.repeat(np.arange(len(chosen)), counts), np.arange(len(of_rows))
            links = sp.csr_matrix((np.ones(len(of_rows), dtype=np.float32), which), shape=(len(chosen), len(of_rows)))
            goal = (true[chosen] @ graph.features).toarray()
            local = (adjacency[rows] @ x).toarray()
            means = {
                "local": local / np.maximum(degrees[rows], 1)[:, None],
                "mended": (local + links @ of_rows) / np.maximum(degrees[rows] + counts, 1)[:, None],
                "empty": local / np.maximum(degrees[rows] + counts, 1)[:, None],
            }
            for name, mean in means.items():
                getattr(distances, name)[chosen] = np.linalg.norm(mean - goal, axis=1)
    return distances
