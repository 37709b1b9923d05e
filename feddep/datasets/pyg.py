"""Graphs, splits and clients' subgraphs as PyTorch Geometric's ``Data``, and back."""

import operator
import pickle
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from feddep.graph.graph import Graph, class_numbers
from feddep.graph.partition import Partition
from feddep.graph.split import PARTS, Split
from feddep.utils.errors import DataError, Notice

if TYPE_CHECKING:
    from torch_geometric.data import Data


_INSTEAD = {
    "BaseStorage": "data.to_homogeneous() makes one of a HeteroData",
    "TemporalData": "Data(x=…, edge_index=torch.stack([data.src, data.dst]), y=…) makes one of "
    "its events",
    "batch": "each graph of a batch needs a file of its own",
    "tuple": "of the file of a processed dataset it is dataset[0]",
    "list": "each graph needs a file of its own",
    "networkx": "torch_geometric.utils.from_networkx makes one",
    "dgl": "torch_geometric.utils.from_dgl makes one",
    "torch_sparse": "data.edge_index = torch.stack(data.adj_t.t().coo()[:2]) takes its place, "
    "without data.adj_t",
}
"""How to make a ``Data`` of what files hold in its place."""


_NUMPY: list[Any] = [
    np.ndarray,
    np.dtype,
    *(getattr(np.dtypes, name) for name in np.dtypes.__all__),
    *(
        (made.__reduce__()[0], f"{module}.multiarray.{name}")
        for name, made in {"scalar": np.float64(0), "_reconstruct": np.empty(0)}.items()
        for module in ("numpy.core", "numpy._core")
    ),
]
"""What files name that hold scalars and arrays of NumPy 1 or 2."""


def to_data(graph: Graph, split: Split | None = None) -> "Data":
    """A graph as ``Data``.

    Returns:
        ``x``, dense float32, shape (n, F); ``edge_index``, both directions of every edge, int64,
        shape (2, 2 |E|); ``y``, int64, shape (n,); ``num_classes``; with a split, ``train_mask``,
        ``val_mask`` and ``test_mask``, bool, shape (n,).
    """
    from torch_geometric.data import Data

    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    data = Data(
        x=torch.from_numpy(graph.features.toarray()).float(),
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
    """A graph from ``Data`` with ``x``, ``edge_index`` and ``y``; direction, repeats and self-loops
    of edges are dropped, and their weights and other attributes are not read.

    Args:
        data: one class a node; ``x`` dense or sparse, shape (n, F); ``edge_index`` of shape (2, m);
            ``num_classes`` is read where there is one, else it is max(y) + 1.  A node whose ``y``
            is −1, or not a number, has no label.

    Raises:
        DataError: if something is missing or of another form.
    """
    if getattr(data, "edge_index", None) is None and getattr(data, "adj_t", None) is not None:
        raise DataError(
            "data.edge_index is missing; of data.adj_t it is "
            "torch_geometric.utils.to_edge_index(data.adj_t)[0]"
        )
    labels, edges = array(data, "y"), array(data, "edge_index")
    x = _tensor(data, "x").to_dense()
    features = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise DataError(
            f"data.edge_index of shape {edges.shape} and type {edges.dtype} must be two rows of "
            "integers"
        )
    if unread := [f"data.{name}" for name in data.edge_attrs() if name != "edge_index"]:
        warnings.warn(f"{', '.join(unread)} of edges: not read", Notice, stacklevel=2)
    labels = class_numbers(labels)
    known = data.get("num_classes")
    try:
        num_classes = labels.max(initial=-1) + 1 if known is None else operator.index(known)
    except TypeError:
        raise DataError(f"data.num_classes is {known!r}; an integer is needed") from None
    return Graph.from_edges(edges.T, features, labels, int(num_classes))


def load(path: Path) -> "Data":
    """The ``Data`` that ``torch.save`` wrote; no other object in the file is made.

    Raises:
        DataError: if the file holds something else.
        Exception: of a file that is none of PyTorch, whatever that raises.
    """
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    known = [DataEdgeAttr, DataTensorAttr, GlobalStorage, *_NUMPY]
    try:
        with torch.serialization.safe_globals(known):
            data = torch.load(path, map_location="cpu", weights_only=True)
    except (
        pickle.UnpicklingError
    ) as error:  # the message is one of many lines, about how to load it nevertheless
        found = re.search(r"GLOBAL (\S+)", str(error))
        data = found[1] if found else "something else"
    if not isinstance(data, Data):
        held = data if isinstance(data, str) else type(data).__name__
        hint = next((f"; {hint}" for kind, hint in _INSTEAD.items() if kind in held), "")
        raise DataError(
            f"it holds {held}; a torch_geometric.data.Data whose attributes are tensors, arrays, "
            f"numbers and text, written by torch.save, is allowed{hint}"
        )
    return data


def split_of(data: "Data", seed: int = 0) -> Split:
    """The split that ``train_mask``, ``val_mask`` and ``test_mask`` of ``Data`` say
    (:meth:`feddep.graph.split.Split.of_masks`).

    Raises:
        DataError: if a mask is missing or has not one truth value a node, or a node is in two of
            them.
    """
    return Split.of_masks(
        {part: array(data, f"{part}_mask") for part in PARTS}, seed, from_data(data)
    )


def client_data(graph: Graph, partition: Partition, split: Split | None = None) -> "list[Data]":
    """The subgraph of each client as ``Data`` (:func:`to_data`), with ``n_id``, the ids of its
    nodes in ``graph``.
    """
    parts = []
    for client in range(partition.num_clients):
        nodes = partition.nodes(client)
        data = to_data(graph.subgraph(nodes), None if split is None else split.restrict(nodes))
        data.n_id = torch.from_numpy(nodes)
        parts.append(data)
    return parts


def array(data: "Data", name: str) -> np.ndarray:
    """A tensor of ``Data`` as an array.

    Raises:
        DataError: if it is missing or no tensor.
    """
    value = _tensor(data, name)
    return (value.double() if value.is_floating_point() else value).numpy()


def _tensor(data: Any, name: str) -> torch.Tensor:
    value = getattr(data, name, None)
    if not isinstance(value, torch.Tensor):
        raise DataError(
            f"data.{name} is {'missing' if value is None else type(value).__name__}; a tensor "
            "is needed"
        )
    return value.detach().cpu()
