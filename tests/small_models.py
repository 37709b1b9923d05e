"""Models with the weights of a seed, applied to whole graphs."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.nn.sparse import SparseMatrix


def drawn(model: Any, seed: int = 0) -> Any:
    """The model with the initial weights of a seed."""
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model


def flat(tensors: Any) -> Tensor:
    """All numbers of tensors in a row, without a gradient."""
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def full(model: Any, graph: Graph, *more: Any) -> Tensor:
    """Outputs of all nodes from their full neighbourhoods."""
    return model.full(
        SparseMatrix.from_scipy(graph.features),
        SparseMatrix.from_scipy(model.aggregation(graph)),
        *more,
    )


def edge_index(graph: Graph) -> Tensor:
    """The edges, both ways, as PyTorch Geometric takes them."""
    ends = torch.from_numpy(graph.edges().T.astype(np.int64))
    return torch.cat([ends, ends.flip(0)], dim=1)
