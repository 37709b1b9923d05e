"""Any model of PyTorch Geometric as a classifier: ``encoder: torch_geometric.nn.models.GAT``.

A model is made as ``Model(in_channels, hidden_channels, num_layers, out_channels, dropout=…)`` and
called with features and edges, as those of ``torch_geometric.nn.models`` are; a class of one's own
may be, too.  It is slower than the encoders of this package, which read sampled trees and sparse
features without making a graph or a dense matrix of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from feddep.graph.graph import Graph
from feddep.graph.sampling import PAD, SampledTrees
from feddep.nn.sparse import SparseMatrix
from feddep.utils.errors import ConfigError, one_line


class PyGClassifier(nn.Module):
    """A model of PyTorch Geometric that reads what the encoders of this package read.

    In a mini-batch it is applied to the sampled subgraph: the nodes of the batch's trees, and an
    edge from each drawn neighbour to the node that it was drawn for.  A neighbour that was drawn
    several times is one neighbour.
    """

    def __init__(self, model: Any) -> None:
        """Wrap a model."""
        super().__init__()
        self.model = model

    @staticmethod
    def aggregation(graph: Graph) -> sp.csr_matrix:
        """The adjacency matrix, whose entries are the edges that :meth:`full` reads; shape (n,
        n).
        """
        return graph.adjacency

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew, as the model does it."""
        with _drawing_from(generator):
            self.model.reset_parameters()

    def forward(
        self, trees: SampledTrees, table: Any, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of the roots of B sampled trees, shape (B, C); the arguments are those of
        GraphSAGE.
        """
        nodes, places = np.unique(trees.nodes, return_inverse=True)
        places = places.reshape(trees.nodes.shape)
        edges = sampled_edges(SampledTrees(places, trees.fanouts), nodes == PAD)
        x = table.own(nodes).dense()
        logits = self._logits(x, torch.from_numpy(edges).to(x.device), generator)
        return logits[torch.from_numpy(places[:, 0]).to(x.device)]

    def full(
        self, x: SparseMatrix, adjacency: SparseMatrix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Logits of all nodes from their full neighbourhoods, shape (n, C), from features, shape
        (n, F).

        Dropout is as the model does it, drawn from ``generator``; none means no dropout.
        """
        rows, columns = adjacency.entries()
        return self._logits(x.dense(), torch.stack([columns, rows]), generator)

    def _logits(self, x: Tensor, edges: Tensor, generator: torch.Generator | None) -> Tensor:
        self.model.train(generator is not None)
        if generator is None:
            return self.model(x, edges)
        with _drawing_from(generator):
            return self.model(x, edges)


def sampled_edges(trees: SampledTrees, absent: np.ndarray) -> np.ndarray:
    """The distinct edges of sampled trees, from drawn neighbours to the nodes that they were drawn
    for; int64, shape (2, E).

    Args:
        trees: the trees, whose nodes are positions in ``absent``.
        absent: which of them stand for nobody; they have no edges.
    """
    count, found = len(absent), []
    while trees.fanouts:
        own, drawn = trees.split(trees.nodes.astype(np.int64))
        found.append((drawn * count + own[..., None])[~absent[drawn]])
        trees = trees.inner
    return np.stack(np.divmod(np.unique(np.concatenate(found)), count))


@contextmanager
def _drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Let what draws from PyTorch's global stream be a function of ``generator``; the stream itself
    is left as it was.
    """
    device = generator.device
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def new_classifier(name: str, model: Callable[..., Any], *sizes: Any) -> PyGClassifier:
    """A classifier of a class that the setting calls ``name``; ``sizes`` are the arguments of
    GraphSAGE.

    Raises:
        ConfigError: if it is no such model.
    """
    features, hidden, classes, layers, dropout = sizes
    try:
        with torch.random.fork_rng([]):
            made = model(features, hidden, layers, classes, dropout=dropout)
            made.reset_parameters()
    except (TypeError, AttributeError) as error:
        raise ConfigError(
            f"encoder is {name} (key settings), which cannot be made as Model(in_channels, "
            "hidden_channels, num_layers, "
            f"out_channels, dropout=…) or has no reset_parameters: {one_line(str(error))}"
        ) from None
    return PyGClassifier(made)
