"""Graphs that other packages download: what their loaders give, as plain arrays.

The packages are imported when a graph is asked for.  They download without checksums, Reddit's without looking at the server's
certificate, so what they give is known by the size of the graph alone.
"""

import io
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np

from feddep.datasets.public_graphs import Loader

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

REVISION = 1
"""Raised when the same release gives another graph: no fingerprint would tell."""


def load(loader: Loader, folder: Path) -> Arrays:
    """Download a graph into an empty folder, with the package's own loader.

    An empty folder, as both loaders take what a broken download left for the file, and that of ogb 1.3.6 cannot read what it has
    stored itself with PyTorch 2.6 or newer.

    Returns:
        Edges, each once as (smaller, larger) node and without self-loops, int32, shape (|E|, 2); features, float32, shape (n, F);
        labels, int64, shape (n,).

    Raises:
        ImportError: if the package is not installed.
        Exception: whatever the package raises.
    """
    with _unattended():
        edge_index, features, labels = _LOADERS[loader.package](loader.dataset, folder)
    return _simple_edges(edge_index, len(features)), features.astype(np.float32, copy=False), labels.astype(np.int64, copy=False)


def _ogb(dataset: str, folder: Path) -> Arrays:
    from ogb.nodeproppred import NodePropPredDataset

    graph, labels = NodePropPredDataset(name=dataset, root=str(folder))[0]
    return graph["edge_index"], graph["node_feat"], labels[:, 0]


def _torch_geometric(dataset: str, folder: Path) -> Arrays:
    from torch_geometric import datasets

    kind, _, name = dataset.partition(":")
    data = getattr(datasets, kind)(str(folder), *([name] if name else []))[0]
    return data.edge_index.numpy(), data.x.numpy(), data.y.numpy()


_LOADERS = {"ogb": _ogb, "torch_geometric": _torch_geometric}


@contextmanager
def _unattended() -> Iterator[None]:
    """Says yes to ogb, which asks before it downloads a gigabyte, and gives up a server that is silent for half a minute."""
    timeout, stdin = socket.getdefaulttimeout(), sys.stdin
    socket.setdefaulttimeout(30)
    sys.stdin = io.StringIO("y\n" * 10)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        socket.setdefaulttimeout(timeout)
        sys.stdin = stdin


def _simple_edges(edge_index: np.ndarray, nodes: int) -> np.ndarray:
    """The undirected edges of node pairs in the columns of ``edge_index``, each once."""
    low, high = edge_index.min(axis=0).astype(np.int64), edge_index.max(axis=0)
    pairs = np.sort((low * nodes + high)[low != high])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # np.unique takes minutes for as many
    return np.column_stack(np.divmod(pairs, nodes)).astype(np.int32)
