"""The graph that every stage works on: undirected, simple, with sparse node features and one label
a node.
"""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from feddep.utils.errors import DataError, Notice
from feddep.utils.files import read_arrays, write_arrays


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected simple graph with n nodes in compressed sparse row form.

    Attributes:
        indptr: where the neighbours of node v start and end in ``indices``; int64, shape (n + 1,).
        indices: neighbours of each node in ascending order, both directions of every edge; int32,
            shape (2 |E|,).
        features: node features; CSR matrix with sorted indices and no stored zeros, shape (n, F);
            float32, or float64 where that is too coarse (:func:`feature_matrix`), until they are
            scaled (:func:`feddep.graph.scaling.scale`).
        labels: class of each node, in 0 … num_classes − 1, or −1 for a node without a label; int64,
            shape (n,).
        num_classes: number of classes, also of those that no node of this (sub)graph has.
        client: owner of each node where the data say it, from 0; int64, shape (n,).
        tested: the same nodes as models are tested on them, where they are trained on others: where
            features or edges are noisy, or test nodes unseen (:mod:`feddep.graph.noise`).
    """

    indptr: np.ndarray
    indices: np.ndarray
    features: sp.csr_matrix
    labels: np.ndarray
    num_classes: int
    client: np.ndarray | None = None
    tested: "Graph | None" = None

    @classmethod
    def from_edges(
        cls,
        edges: np.ndarray,
        features: sp.spmatrix | np.ndarray,
        labels: np.ndarray,
        num_classes: int,
        names: Sequence[str] = (),
    ) -> "Graph":
        """Build a graph from node pairs, shape (m, 2): direction, repeats and self-loops are
        dropped.

        Args:
            edges: node pairs; integers of any type.
            features: real numbers of any type, a row a node.
            labels: as :func:`class_numbers` takes them.
            num_classes: number of classes.
            names: of the columns of features, for sentences.

        Raises:
            DataError: if an edge or a label is out of range, there is not one label for each row of
                features, or a feature is not finite.
        """
        features, labels = feature_matrix(features, names), class_numbers(labels)
        n = features.shape[0]
        edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        if labels.shape != (n,):
            raise DataError(
                f"the graph has {n} rows of features but labels of shape {labels.shape}"
            )
        if edges.size and not (edges.min() >= 0 and edges.max() < n):
            raise DataError(
                f"the graph has {n} nodes but edges name nodes {edges.min()} to {edges.max()}"
            )
        if n and not labels.max() < num_classes:
            raise DataError(
                f"labels run from {labels.min()} to {labels.max()} but there are {num_classes} "
                "classes"
            )
        edges = edges[edges[:, 0] != edges[:, 1]]
        ones = np.ones(2 * len(edges), dtype=np.int8)
        both = np.concatenate([edges, edges[:, ::-1]])
        adjacency = sp.coo_matrix((ones, (both[:, 0], both[:, 1])), shape=(n, n)).tocsr()
        return cls._from_parts(adjacency, features, labels, num_classes)

    @classmethod
    def _from_parts(
        cls, adjacency: sp.csr_matrix, features: sp.csr_matrix, labels: np.ndarray, num_classes: int
    ) -> "Graph":
        adjacency.sort_indices()
        features.sum_duplicates()
        features.eliminate_zeros()
        return cls(
            adjacency.indptr.astype(np.int64),
            adjacency.indices.astype(np.int32),
            features,
            labels,
            num_classes,
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes n."""
        return len(self.labels)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges |E|."""
        return len(self.indices) // 2

    @property
    def num_features(self) -> int:
        """Number of feature columns F."""
        return int(self.features.shape[1])

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbours of each node; int64, shape (n,)."""
        return np.diff(self.indptr)

    @cached_property
    def adjacency(self) -> sp.csr_matrix:
        """The symmetric 0/1 adjacency matrix; float32 CSR, shape (n, n)."""
        ones = np.ones(len(self.indices), dtype=np.float32)
        return sp.csr_matrix(
            (ones, self.indices, self.indptr), shape=(self.num_nodes, self.num_nodes)
        )

    def edges(self) -> np.ndarray:
        """Each undirected edge once, as (smaller, larger) node, in ascending order; int64, shape
        (|E|, 2).
        """
        sources = np.repeat(np.arange(self.num_nodes), self.degrees)
        once = sources < self.indices
        return np.column_stack([sources[once], self.indices[once].astype(np.int64)])

    def subgraph(self, nodes: np.ndarray) -> "Graph":
        """The subgraph induced by ``nodes``; node k of the result is ``nodes[k]`` of this graph."""
        nodes = np.asarray(nodes, dtype=np.int64)
        graph = self._from_parts(
            self.adjacency[nodes][:, nodes],
            self.features[nodes],
            self.labels[nodes],
            self.num_classes,
        )
        return replace(
            graph,
            client=None if self.client is None else self.client[nodes],
            tested=None if self.tested is None else self.tested.subgraph(nodes),
        )

    def extended(self, adjacency: sp.csr_matrix) -> "Graph":
        """A graph of more nodes: the old ones come first, the new ones have no features, and the
        label 0, which means nothing.

        Args:
            adjacency: who is joined to whom, old and new, float32, shape (n + g, n + g).  Need not
                be symmetric: where a new node has an empty row, it is drawn as a neighbour but has
                none itself.
        """
        size, x = adjacency.shape[0], self.features
        ends = np.concatenate(
            [x.indptr, np.full(size - self.num_nodes, x.indptr[-1], dtype=x.indptr.dtype)]
        )
        features = sp.csr_matrix((x.data, x.indices, ends), shape=(size, x.shape[1]))
        labels = np.concatenate([self.labels, np.zeros(size - self.num_nodes, dtype=np.int64)])
        adjacency.sort_indices()
        indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32)
        return Graph(indptr, indices, features, labels, self.num_classes)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: same graph, same digest, whatever file it came from."""
        digest = hashlib.sha256()
        for name, array in self._arrays().items():
            digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "indptr": self.indptr.astype("<i8"),
            "indices": self.indices.astype("<i4"),
            "feature_indptr": self.features.indptr.astype("<i8"),
            "feature_indices": self.features.indices.astype("<i4"),
            "feature_data": self.features.data.astype(self.features.dtype.newbyteorder("<")),
            "labels": self.labels.astype("<i8"),
            "shape": np.array([self.num_features, self.num_classes], dtype="<i8"),
            **({} if self.client is None else {"client": self.client.astype("<i8")}),
        }

    def save(self, path: str | Path, key: str = "") -> None:
        """Write the graph as safetensors, with its content key if it has one."""
        write_arrays(path, self._arrays(), key)

    @classmethod
    def load(cls, path: str | Path, key: str | None = None) -> "Graph":
        """Read a graph that :meth:`save` wrote.

        Raises:
            DataError: if the file is missing, damaged, or has another key than is asked for.
        """
        arrays = read_arrays(path, key)
        num_features, num_classes = (int(value) for value in arrays["shape"])
        parts = arrays["feature_data"], arrays["feature_indices"], arrays["feature_indptr"]
        features = sp.csr_matrix(parts, shape=(len(arrays["labels"]), num_features))
        return cls(
            arrays["indptr"],
            arrays["indices"],
            features,
            arrays["labels"],
            num_classes,
            arrays.get("client"),
        )


def disjoint_union(graphs: Sequence[Graph]) -> Graph:
    """Several graphs in one, of which client i owns the i-th; a column of features and a class mean
    the same in each.
    """
    adjacency = sp.block_diag([graph.adjacency for graph in graphs], format="csr")
    width = max(graph.num_features for graph in graphs)
    rows = [
        (graph.features.data, graph.features.indices, graph.features.indptr) for graph in graphs
    ]
    features = sp.vstack(
        [sp.csr_matrix(parts, shape=(len(parts[2]) - 1, width)) for parts in rows], format="csr"
    )
    labels = np.concatenate([graph.labels for graph in graphs])
    owner = np.repeat(np.arange(len(graphs)), [graph.num_nodes for graph in graphs])
    edges = np.column_stack(adjacency.nonzero())
    return replace(
        Graph.from_edges(edges, features, labels, max(graph.num_classes for graph in graphs)),
        client=owner,
    )


def feature_matrix(values: sp.spmatrix | np.ndarray, names: Sequence[str] = ()) -> sp.csr_matrix:
    """Real numbers of any type, dense or sparse, as a CSR matrix, shape (n, F): float32, or float64
    with a notice where single precision is too coarse for a column (:func:`_coarse`).

    Args:
        values: a row a node.
        names: of the columns, for sentences; by default their numbers.

    Raises:
        DataError: if they are no real numbers, or one is not finite in single precision.
    """
    values = sp.csr_matrix(values) if sp.issparse(values) else np.asarray(values)
    if values.dtype.kind not in "biuf" or values.ndim != 2:
        raise DataError(
            f"features have type {values.dtype} and shape {values.shape}; a row of real numbers "
            "for each node is needed"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        single = sp.csr_matrix(values.astype(np.float32))
    name = dict(enumerate(names))
    if not np.isfinite(single.data).all():
        found = single.tocoo()
        first = np.argmin(np.isfinite(found.data))
        row, column = found.row[first], found.col[first]
        raise DataError(
            f"the feature {name.get(column, column)} of node {row} is {values[row, column]}, which "
            "is not a finite number of single precision"
        )
    coarse = _coarse(values)
    for column, exact, left in coarse:
        warnings.warn(
            f"the feature {name.get(column, column)} has {exact} values, of which single precision "
            f"tells {left} apart; features: minmax scales it before it is rounded",
            Notice,
            stacklevel=2,
        )
    return sp.csr_matrix(values.astype(np.float64)) if coarse else single


def _coarse(values: Any) -> list[tuple[int, int, int]]:
    """The columns in which rounding to single precision moves a value by more than a thousandth of
    the range that the column has, each with its number of values before and after.

    A range below 10⁻¹³ of the values is taken for rounding in double precision.
    """
    if np.can_cast(values.dtype, np.float32) or not min(values.shape):
        return []
    low, high = (
        sp.csr_matrix(end, dtype=np.float64).toarray()[0]
        for end in (values.min(axis=0), values.max(axis=0))
    )
    size, span = np.maximum(abs(low), abs(high)), high - low
    found = []
    for column in np.flatnonzero((span > 1e-13 * size) & (span < 1e-4 * size)):
        exact = np.unique(sp.csr_matrix(values[:, [column]], dtype=np.float64).toarray())
        rounded = exact.astype(np.float32)
        if 1000 * abs(rounded - exact).max() > span[column]:
            found.append((int(column), len(exact), len(np.unique(rounded))))
    return found


def class_numbers(labels: Any) -> np.ndarray:
    """Labels of any type of number as int64: whole numbers from 0; −1, and what is not a number, is
    a node without a label.

    Raises:
        DataError: if they are no list of such numbers.
    """
    found = np.asarray(labels)
    if found.ndim != 1 or found.dtype.kind not in "biuf":
        raise DataError(
            f"labels have type {found.dtype} and shape {found.shape}; one whole number for each "
            "node is needed"
        )
    if found.dtype.kind == "f":
        found = np.where(np.isnan(found), -1, found)
    wrong = ~((found == np.floor(found)) & (found >= -1) & (found < 2**31))
    if wrong.any():
        raise DataError(
            f"a label is {found[wrong][0]}; a class is a whole number from 0 to 2^31 − 1, and "
            "−1 stands for none"
        )
    return found.astype(np.int64)


def mean_adjacency(graph: Graph) -> sp.csr_matrix:
    """The adjacency matrix with each row divided by its degree; rows of isolated nodes are empty;
    float32, shape (n, n).
    """
    values = np.repeat(1 / np.maximum(graph.degrees, 1), graph.degrees).astype(np.float32)
    return sp.csr_matrix(
        (values, graph.indices, graph.indptr), shape=(graph.num_nodes, graph.num_nodes)
    )


def mean_adjacency_with_self_loops(graph: Graph) -> sp.csr_matrix:
    """Row v averages over v and all its neighbours: (D + I)⁻¹ (A + I); float32, shape (n, n)."""
    return sp.csr_matrix(
        sp.diags_array((1 / (graph.degrees + 1)).astype(np.float32)) @ with_self_loops(graph)
    )


def normalised_adjacency(graph: Graph) -> sp.csr_matrix:
    """D̂^(−1/2) (A + I) D̂^(−1/2) with D̂ = D + I (Kipf and Welling, 2017); float32, shape (n, n)."""
    return normalised(with_self_loops(graph), graph.degrees)


def normalised(rows: sp.csr_matrix, degrees: np.ndarray) -> sp.csr_matrix:
    """Rows of D̂^(−1/2) (A + I) D̂^(−1/2) from rows of A + I.

    Args:
        rows: the rows, shape (n, m); the first n columns are of the same nodes.
        degrees: degree of each column's node in A, shape (m,).

    Returns:
        float32, shape (n, m).
    """
    scale = ((degrees + 1.0) ** -0.5).astype(np.float32)
    values = np.repeat(scale[: rows.shape[0]], np.diff(rows.indptr)) * scale[rows.indices]
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)


def with_self_loops(graph: Graph) -> sp.csr_matrix:
    """A + I; float32, shape (n, n)."""
    loops = sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
    return sp.csr_matrix(graph.adjacency + loops)
