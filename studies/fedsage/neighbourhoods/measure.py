"""What NeighGen gives nodes at the border of their client, beside what they lack (FedSage, Appendix
D.1).

Seen by the experimenter, who knows the whole graph.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from feddep.graph.graph import Graph
from feddep.graph.halo import missing_neighbours
from feddep.graph.partition import Partition
from feddep.methods.method import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.evaluator import mean_adjacency
from feddep.training.task import Task
from studies.measuring import Case, Tables

ALL, MISSING = "all", "missing"
"""Which nodes are averaged over: all, or those that miss a neighbour, which alone mending can help.
"""
NEIGHBOURHOODS = ("local", "mended", "empty", "counted")
"""Which neighbourhoods are compared with the true ones, see :func:`neighbourhood_distances`."""
NORMS = {"local_l1": "l1", "local_l2": "l2"}
"""The neighbourhoods at the client once more, with each node's features divided by this norm of
them.
"""
_ROWS = 512
"""Neighbourhoods of so many nodes are compared at once."""


def measure(case: Case) -> Tables:
    """Distances and counts of a run whose generators generate features."""
    task, generated = case.task, case.step("generator")
    assert task.partition is not None  # or there would have been nobody to train a generator
    found = distances(task.graph, task.partition, generated)
    return {"distances": found, "counts": counts(task, task.partition, case.parameters, generated)}


def distances(graph: Graph, partition: Partition, generated: StepResult) -> list[dict[str, Any]]:
    """How far neighbourhoods are from the true ones, before and after mending (Table 1).

    Returns:
        A row for each of :data:`ALL` and :data:`MISSING` and each of :data:`NEIGHBOURHOODS` and
        :data:`NORMS`: nodes, neighbourhood, count (of nodes), mean and sample standard deviation of
        the distance over these nodes.
    """
    found = neighbourhood_distances(graph, partition, generated)
    found |= {
        name: local_distances(graph, partition, normalize(graph.features, norm))
        for name, norm in NORMS.items()
    }
    chosen = {ALL: np.full(graph.num_nodes, True), MISSING: _missing(graph, partition) > 0}
    rows = []
    for nodes, which in chosen.items():
        for neighbourhood, of_all in found.items():
            of_nodes = of_all[which].astype(np.float64)
            mean = float(of_nodes.mean()) if len(of_nodes) else np.nan
            std = float(of_nodes.std(ddof=1)) if len(of_nodes) > 1 else np.nan
            rows.append(
                {
                    "nodes": nodes,
                    "neighbourhood": neighbourhood,
                    "count": len(of_nodes),
                    "mean": mean,
                    "std": std,
                }
            )
    return rows


def counts(
    task: Task, partition: Partition, parameters: Any, generated: StepResult
) -> list[dict[str, Any]]:
    """How many neighbours nodes miss, and how many dGen predicts, rounded as the paper does (Figure
    1).

    Returns:
        A row for each triple that occurs: missing, predicted, degree, the number of neighbours at
        the node's client, and nodes, the number of nodes with this triple; expected, what impairing
        lets expect of such a degree, not rounded.
    """
    graph, missing = task.graph, _missing(task.graph, partition)
    # Of each node, by the client that holds it.
    predicted = np.zeros(graph.num_nodes, dtype=np.int64)
    for client, numbers in enumerate(generated.of_clients("count")):
        predicted[partition.nodes(client)] = np.rint(numbers.cpu().numpy())
    triples, nodes = np.unique(
        np.stack([missing, predicted, graph.degrees - missing]), axis=1, return_counts=True
    )
    hidden = [
        len(impair_client(task, parameters, i, client).hidden)
        for i, client in enumerate(task.subgraphs())
    ]
    odds = sum(hidden) / (graph.num_nodes - sum(hidden))
    return [
        {
            "missing": lost,
            "predicted": number,
            "degree": degree,
            "expected": odds * degree,
            "nodes": size,
        }
        for (lost, number, degree), size in zip(triples.T.tolist(), nodes.tolist(), strict=True)
    ]


def _missing(graph: Graph, partition: Partition) -> np.ndarray:
    """n_v, the number of neighbours of each node that other clients hold; int64, shape (n,)."""
    return np.diff(missing_neighbours(graph, partition).indptr).astype(np.int64)


def neighbourhood_distances(
    graph: Graph, partition: Partition, generated: StepResult
) -> dict[str, np.ndarray]:
    """Of each node of the global graph ‖mean x over some neighbours − mean x over N(v)‖₂ (Table 1).

    The paper says "the L2 distance between the averaged feature distributions"; a mean over no
    neighbours is 0.

    Returns:
        For each of :data:`NEIGHBOURHOODS` float32, shape (n,).  ``local``: over N_i(v), the
        neighbours at the client; ``mended``:
        over N'_i(v), these and the generated ones; ``empty``: with zeros for the features of the
        generated ones, what a generator gains that only predicts a number; ``counted``: with as
        many zeros as v misses neighbours, the gain of the true number.
    """
    distances = {name: np.zeros(graph.num_nodes, dtype=np.float32) for name in NEIGHBOURHOODS}
    true, missing = mean_adjacency(graph), _missing(graph, partition)
    made = zip(generated.of_clients("owner"), generated.of_clients("features"), strict=True)
    for client, (owners, features) in enumerate(made):
        nodes, owner, dense = partition.nodes(client), owners.cpu().numpy(), features.cpu().numpy()
        x, adjacency = graph.features[nodes], graph.adjacency[nodes][:, nodes]
        degrees, new = np.diff(adjacency.indptr), np.bincount(owner, minlength=len(nodes))
        # Generated neighbours are ordered by the node that they are for.
        ends = np.cumsum(np.concatenate([[0], new]))
        for start in range(0, len(nodes), _ROWS):
            rows = slice(start, start + _ROWS)
            chosen, counts = nodes[rows], new[rows]
            of_rows = dense[ends[start] : ends[start + len(chosen)]].astype(np.float32)
            starts = ends[start : start + len(chosen) + 1] - ends[start]
            ones, shape = np.ones(len(of_rows), dtype=np.float32), (len(chosen), len(of_rows))
            links = sp.csr_matrix((ones, np.arange(len(of_rows)), starts), shape=shape)
            goal = (true[chosen] @ graph.features).toarray()
            local = (adjacency[rows] @ x).toarray()
            means = {
                "local": local / np.maximum(degrees[rows], 1)[:, None],
                "mended": (local + links @ of_rows)
                / np.maximum(degrees[rows] + counts, 1)[:, None],
                "empty": local / np.maximum(degrees[rows] + counts, 1)[:, None],
                "counted": local / np.maximum(degrees[rows] + missing[chosen], 1)[:, None],
            }
            for name, mean in means.items():
                distances[name][chosen] = np.linalg.norm(mean - goal, axis=1)
    return distances


def local_distances(graph: Graph, partition: Partition, features: sp.csr_matrix) -> np.ndarray:
    """The distance ``local`` of :func:`neighbourhood_distances` for other features of the nodes;
    float32, shape (n,).
    """
    true = mean_adjacency(graph)
    inside = true - true.multiply(missing_neighbours(graph, partition).sign())
    return sp.linalg.norm((normalize(inside, "l1") - true) @ features, axis=1)
