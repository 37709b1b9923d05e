"""Graphs, configurations and a hostile pickle to test with."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from feddep.graph.graph import Graph

DATASETS_TABLE = [
    [cell.strip(" `") for cell in line.split("|")[1:-1]]
    for line in Path(__file__)
    .parents[1]
    .joinpath("docs/guide/data.md")
    .read_text(encoding="utf-8")
    .splitlines()
    if line.startswith("|")
]
"""The cells of the tables of docs/guide/data.md."""

MINIMAL_CONFIG = {
    "datasets": {"tiny": {"synthetic": {}}},
    **{"clients": [2], "seeds": [0], "settings": {"quick": {}}},
    "tables": [{"setting": "quick", "methods": ["fedavg"]}],
}
"""The keys that a configuration must have."""


PLANNED_CONFIG: dict[str, Any] = {
    **{
        "datasets": {"cora": {}, "tiny": {"synthetic": {"signal": 0.4}}},
        "clients": [3, 5],
        "seeds": [0, 1],
    },
    "settings": {"quick": {}, "slow": {"rounds": 99}},
    "tables": [{"setting": "quick", "methods": ["global", "fedavg", "feddep"]}],
}
"""Two datasets, numbers of clients, seeds and settings."""


def changed(path: str | Sequence[Any], value: Any, base: Any = MINIMAL_CONFIG) -> Any:
    """A copy of a configuration with one key set; the path to it as parts, or as text with dots."""
    place = config = copy.deepcopy(base)
    if isinstance(path, str):
        path = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in path[:-1]:
        place = place[part] if isinstance(place, list) else place.setdefault(part, {})
    place[path[-1]] = value
    return config


class Payload:
    """Makes the file ``victim`` when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.victim,)


def star(leaves: int) -> Graph:
    """Node 0 joined to nodes 1 … leaves."""
    edges = np.array([(0, leaf) for leaf in range(1, leaves + 1)]).reshape(-1, 2)
    return Graph.from_edges(edges, np.eye(leaves + 1), np.zeros(leaves + 1), 1)


def pairs() -> Graph:
    """Three pairs of neighbours, and node 6 without any."""
    x = np.random.default_rng(0).random((7, 4), dtype=np.float32)
    return Graph.from_edges(np.array([(0, 1), (2, 3), (4, 5)]), x, np.zeros(7), 2)


def random_graph(
    nodes: int, edges: int, features: int = 6, classes: int = 3, seed: int = 0, density: float = 0.4
) -> Graph:
    """A random graph with random sparse features; some nodes may be isolated."""
    rng = np.random.default_rng(seed)
    x = sp.random(nodes, features, density, "csr", dtype=np.float32, random_state=rng)
    return Graph.from_edges(
        rng.integers(0, nodes, (edges, 2)), x, rng.integers(0, classes, nodes), classes
    )


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 9) -> Graph:
    """Any small graph: no edges, isolated nodes, self-loops given (and dropped), empty rows of
    features.
    """
    nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * nodes))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    features = sp.random(nodes, 4, 0.4, "csr", dtype=np.float32, random_state=rng)
    return Graph.from_edges(
        np.array(edges, dtype=np.int64).reshape(-1, 2), features, rng.integers(0, 3, nodes), 3
    )


def neighbours(graph: Graph, node: int) -> list[int]:
    """The neighbours of a node, in ascending order."""
    return graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()


def npz_arrays(graph: Graph) -> dict[str, np.ndarray]:
    """The arrays of an archive of gnn-benchmark."""
    parts = {"adj": graph.adjacency, "attr": graph.features}
    names = ("data", "indices", "indptr", "shape")
    arrays = {
        f"{part}_{name}": np.asarray(getattr(matrix, name))
        for part, matrix in parts.items()
        for name in names
    }
    return {**arrays, "labels": graph.labels}


def tree_width(fanout: int, hops: int) -> int:
    """Number of tree nodes of a sampled tree: (1 + d)^hops."""
    return (1 + fanout) ** hops
