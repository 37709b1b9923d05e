"""The yardstick: GraphSAGE as one writes it with PyTorch Geometric, for comparison with ours and
for nothing else.

Features are one dense tensor.  A mini-batch is a list of bipartite blocks, one a layer, as PyG's
``NeighborLoader`` gives them with ``trim_to_layer``: nodes that occur twice are kept once, and
``SAGEConv`` runs on each block. (The loader itself needs compiled extensions that do not exist for
every PyTorch; the blocks are therefore built here, with NumPy, from the same draws that our own
implementation gets, so that both compute the same numbers.)
"""

import itertools

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from feddep.graph.sampling import PAD, SampledTrees
from feddep.nn.sage import GraphSAGE


class PlainSAGE(nn.Module):
    """L PyG ``SAGEConv`` layers with mean aggregation, ReLU and dropout between."""

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        widths = [features, *[hidden] * (layers - 1), classes]
        self.convolutions = nn.ModuleList(
            SAGEConv(a, b, aggr="mean") for a, b in itertools.pairwise(widths)
        )
        self.dropout = dropout

    def forward(self, x: Tensor, blocks: list[tuple[Tensor, int]]) -> Tensor:
        """Logits of the roots.

        Args:
            x: features of the first block's sources.
            blocks: for each layer, its edges (source place, target place) and its number of
                targets; the targets are the first of the sources.
        """
        for k, (convolution, (edges, targets)) in enumerate(
            zip(self.convolutions, blocks, strict=True)
        ):
            if k:
                x = nn.functional.dropout(x.relu(), self.dropout, self.training)
            x = convolution((x, x[:targets]), edges)
        return x

    @torch.no_grad()
    def copy_weights(self, ours: GraphSAGE) -> None:
        """Take over the weights of our model."""
        for plain, our in zip(self.convolutions, ours.convolutions, strict=True):
            own, neighbours = our.weight.split(our.inputs)
            plain.lin_r.weight.copy_(own.T)
            plain.lin_l.weight.copy_(neighbours.T)
            plain.lin_l.bias.copy_(our.bias)


def blocks_of(trees: SampledTrees) -> tuple[np.ndarray, list[tuple[Tensor, int]]]:
    """The blocks that hold the draws of ``trees``, and the node ids of the first block's sources.

    A node that two trees share has drawn other neighbours in each, so targets are told apart by
    their place in the trees; the sources of the first layer, whose wide features are gathered, are
    merged where they are the same node.
    """
    # Place by place, so that the targets of a block are its first sources.
    ids = np.ascontiguousarray(trees.nodes.T)
    blocks: list[tuple[Tensor, int]] = []
    first_sources = np.empty(0, dtype=np.int64)
    for fanout in reversed(trees.fanouts):
        places, batch = ids.shape
        inner = places // (1 + fanout)
        targets = inner * batch
        drawn = ids[inner:].reshape(inner, fanout, batch)
        target = np.broadcast_to(np.arange(targets).reshape(inner, 1, batch), drawn.shape)[
            drawn != PAD
        ]
        source = np.arange(targets, places * batch).reshape(drawn.shape)[drawn != PAD]
        if not blocks:
            unique, inverse = np.unique(drawn[drawn != PAD], return_inverse=True)
            source = targets + inverse
            first_sources = np.concatenate([np.maximum(ids[:inner].ravel(), 0), unique])
        blocks.append((torch.from_numpy(np.stack([source, target])), targets))
        ids = ids[:inner]
    return first_sources, blocks
