"""A GraphSAGE whose convolutions are open to what a client learns of nodes outside of its subgraph."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.nn.dropout import drop
from feddep.nn.sage import GraphSAGE
from feddep.sampling import NOBODY


class OpenSAGE(GraphSAGE):
    """GraphSAGE on sampled trees, in which subclasses change what the convolutions read; here they change nothing.

    The weights are those of :class:`feddep.nn.sage.GraphSAGE`, and :meth:`full` is its own: a model that was trained here is
    applied to the global graph like any other.

    Attributes:
        fanouts: neighbours drawn for a node in each hop from the roots, so in the last layer first; one number for all from
            the start.
    """

    def __init__(self, features: int, hidden: int, classes: int, layers: int, fanout: int, dropout: float) -> None:
        """Set up the layers; the arguments are those of :class:`feddep.nn.sage.GraphSAGE`."""
        super().__init__(features, hidden, classes, layers, fanout, dropout)
        self.fanouts: tuple[int, ...] = (fanout,) * layers

    def forward(self, trees: np.ndarray, table: Any, generator: torch.Generator | None = None) -> Tensor:
        """Logits of the roots of sampled trees, shape (B, C).

        Args:
            trees: sampled neighbourhoods, shape (B, (1 + f_1) … (1 + f_L)).  After hop i, with s places before it, place
                ``s + p·f_i + j`` is the j-th neighbour drawn for place p, as :func:`feddep.sampling.sample_trees` has it.
            table: inputs of the nodes, with the method ``joined`` of :class:`feddep.nn.features.FeatureTable`.
            generator: source of the dropout masks; none means no dropout.
        """
        *outer, fanout = self.fanouts
        batch, places = len(trees), trees.shape[1] // (1 + fanout)
        drawn = trees[:, places:].reshape(-1, fanout)
        hidden = self.convolutions[0](table.joined(trees[:, :places].ravel(), drawn))
        hidden = self._complete_first(hidden, drawn, table)
        for k, (convolution, fanout) in enumerate(zip(self.convolutions[1:], reversed(outer), strict=True), start=1):
            hidden = self._complete_inputs(k, hidden.relu().view(batch, places, -1), trees[:, :places], table)
            hidden = drop(hidden, self.dropout, generator)
            inner = places // (1 + fanout)
            neighbours = hidden[:, inner:].view(batch, inner, fanout, -1).mean(dim=2)
            present = trees[:, inner:places:fanout] != NOBODY  # a node has either all its draws or none
            neighbours = neighbours * torch.from_numpy(present).to(neighbours.device).unsqueeze(2)
            neighbours = self._complete_neighbours(k, neighbours, trees[:, :inner], table)
            hidden = convolution(torch.cat([hidden[:, :inner], neighbours], dim=2).flatten(0, 1))
            places = inner
        return hidden

    def _complete_first(self, hidden: Tensor, drawn: np.ndarray, table: Any) -> Tensor:
        """The first convolution's outputs, shape (R, H), of nodes for which the given neighbours were drawn, shape (R, f)."""
        return hidden

    def _complete_inputs(self, k: int, hidden: Tensor, nodes: np.ndarray, table: Any) -> Tensor:
        """The inputs of convolution k ≥ 1, counted from 0, of the given nodes; shape (B, P, H), nodes of shape (B, P)."""
        return hidden

    def _complete_neighbours(self, k: int, neighbours: Tensor, nodes: np.ndarray, table: Any) -> Tensor:
        """The mean neighbours that convolution k ≥ 1 reads for the given nodes; shape (B, P, H), nodes of shape (B, P)."""
        return neighbours
