"""Graphs, splits and clients' subgraphs as PyTorch Geometric's ``Data``, and back."""

import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import PARTS, Split
from feddep.utils.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_data(graph: Graph, split: Split | None = None) -> "Data":
    """A graph as ``Data``.

    Returns:
        ``x``, dense float32, shape (n, F); ``edge_index``, both directions of every edge, int64, shape (2, 2 |E|); ``y``, int64,
        shape (n,); ``num_classes``; with a split, ``train_mask``, ``val_mask`` and ``test_mask``, bool, shape (n,).
    """
    from torch_geometric.data import Data

    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    data = Data(
        x=torch.from_numpy(graph.features.toarray()),
        edge_index=torch.from_numpy(np.stack([sources, graph.indices.astype(np.int64)])),
        y=torch.from_numpy(graph.labels.copy()),
        num_classes=graph.num_classes,
    )
    for part in PARTS if split is not None else ():
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[torch.from_numpy(getattr(split, part))] = True
        data[f"{part}_mask"] = mask
    return data


def from_data(data: "Data") -> Graph:
    """A graph from ``Data`` with ``x``, ``edge_index`` and ``y``; direction, repeats and self-loops of edges are dropped.

    Args:
        data: one class a node; ``x`` dense or sparse, shape (n, F); ``edge_index`` of shape (2, m); ``num_classes`` is read where
            there is one, else it is max(y) + 1.

    Raises:
        DataError: if something is missing or of another form.
    """
    found = {name: _tensor(data, name) for name in ("x", "edge_index", "y")}
    labels = found["y"].numpy()
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    edges, x = found["edge_index"].numpy(), found["x"].to_dense()
    for name, right, allowed in (
        ("y", labels.ndim == 1 and labels.dtype.kind in "iu", "one integer a node"),
        ("edge_index", edges.ndim == 2 and len(edges) == 2 and edges.dtype.kind in "iu", "two rows of integers"),
        ("x", x.ndim == 2 and not x.is_complex() and bool(x.float().isfinite().all()), "finite numbers, a row a node"),
    ):
        if not right:
            raise DataError(f"data.{name} of shape {tuple(found[name].shape)} and type {found[name].dtype} must be {allowed}")
    num_classes = data["num_classes"] if "num_classes" in data else int(labels.max(initial=-1)) + 1
    return Graph.from_edges(edges.T, sp.csr_matrix(x.float().numpy()), labels, int(num_classes))


def load(path: Path) -> Graph:
    """The graph of a ``Data`` that ``torch.save`` wrote (:func:`from_data`); no other object in the file is made.

    Raises:
        DataError: if the file holds something else.
        Exception: of a file that is none of PyTorch, whatever that raises.
    """
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        with torch.serialization.safe_globals([DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            data = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # the message is one of many lines, about how to load it nevertheless
        found = re.search(r"GLOBAL (\S+)", str(error))
        data = found[1] if found else "something else"
    if not isinstance(data, Data):
        held = data if isinstance(data, str) else type(data).__name__
        raise DataError(f"it holds {held}; a torch_geometric.data.Data of tensors, written by torch.save, is allowed")
    return from_data(data)


def split_of(data: "Data") -> Split:
    """The split that ``train_mask``, ``val_mask`` and ``test_mask`` of ``Data`` say.

    Raises:
        DataError: if a mask is missing or has not one truth value a node, or a node is in two of them.
    """
    masks = {part: _tensor(data, f"{part}_mask") for part in PARTS}
    for part, mask in masks.items():
        if mask.dtype != torch.bool or mask.shape != (data.num_nodes,):
            raise DataError(f"data.{part}_mask has shape {tuple(mask.shape)} and type {mask.dtype}; one bool a node is needed")
    if bool((torch.stack(list(masks.values())).sum(dim=0) > 1).any()):
        raise DataError("train_mask, val_mask and test_mask of the data overlap; a node may be in one of them")
    return Split(**{part: np.flatnonzero(mask.numpy()) for part, mask in masks.items()})


def client_data(graph: Graph, partition: Partition, split: Split | None = None) -> "list[Data]":
    """The subgraph of each client as ``Data`` (:func:`to_data`), with ``n_id``, the ids of its nodes in ``graph``."""
    parts = []
    for client in range(partition.num_clients):
        nodes = partition.nodes(client)
        data = to_data(graph.subgraph(nodes), None if split is None else split.restrict(nodes))
        data.n_id = torch.from_numpy(nodes)
        parts.append(data)
    return parts


def _tensor(data: Any, name: str) -> torch.Tensor:
    value = getattr(data, name, None)
    if not isinstance(value, torch.Tensor):
        raise DataError(f"data.{name} is {'missing' if value is None else type(value).__name__}; a tensor is needed")
    return value.detach().cpu()
