"""DGen, the deep neighbour generator (FedDEP, Section 3.1; widths from the authors' code).

ñ_v = σ(θ^d · Enc(G^K_i(v); θ^e)),    z̃_v = Ber_r(tanh(θ^f(Enc(G^K_i(v); θ^e) + N(0, 1))), ñ_v)
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from feddep.nn.dropout import drop
from feddep.nn.linear import Linear
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix

Slots = Literal["generated", "all"]
"""What a node's embeddings are averaged over: those generated (paper), or all slots, empty ones as zeros (authors' code)."""


@dataclass(frozen=True, eq=False)
class Generated:
    """What DGen generates for n nodes.

    Attributes:
        count: predicted number ñ_v of missing neighbours, not rounded, at least 0, shape (n,).
        embeddings: an embedding for each of S slots, shape (n, S, d_z); zero for a node without any filled slot.
        chosen: which slots are filled: the first ⌊ñ_v⌉, at most S, each kept with probability r; bool, shape (n, S).
    """

    count: Tensor
    embeddings: Tensor
    chosen: Tensor

    def mean(self, over: Slots) -> Tensor:
        """z̄_v, the mean of each node's generated embeddings, shape (n, d_z); zero where there are none."""
        total = (self.embeddings * self.chosen.unsqueeze(2)).sum(dim=1)
        filled = self.chosen.sum(dim=1, keepdim=True).clamp(min=1)
        return total / (filled if over == "generated" else self.chosen.shape[1])


class DGen(nn.Module):
    """Encoder of two GraphSAGE convolutions, one head for the number and one for the embeddings of missing neighbours."""

    def __init__(self, features: int, embedding: int, slots: int, hidden: int, dropout: float) -> None:
        """Set up the layers, with an encoder of width ``hidden``, to generate at most S = ``slots`` neighbours of a node."""
        super().__init__()
        self.slots = slots
        self.dropout = dropout
        self.encoder = GraphSAGE(features, hidden, hidden, 2, dropout)
        self.count = Linear(hidden, 1)
        self.widen = nn.ModuleList([Linear(hidden, 256), Linear(256, 2048)])
        self.embedding = Linear(2048, slots * embedding)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for part in (self.encoder, self.count, *self.widen, self.embedding):
            part.reset_parameters(generator)

    def forward(self, x: Tensor | SparseMatrix, mean: SparseMatrix, rate: float, generator: torch.Generator) -> Generated:
        """Generate missing neighbours of all nodes, with full neighbourhoods.

        The Bernoulli sampler keeps a generated embedding with probability r = ``rate``.  ``generator`` is the source of noise, of
        the selection and, in training mode, of dropout; ``x`` and ``mean`` are those of :meth:`feddep.nn.sage.GraphSAGE.full`.
        """
        dropout = generator if self.training else None
        encoded = self.encoder.full(x, mean, dropout)
        count = self.count(encoded).relu().squeeze(1)
        noisy = encoded + torch.randn(encoded.shape, generator=generator, device=encoded.device)
        wanted = count.detach().round().clamp(0, self.slots)
        kept = torch.rand(len(count), self.slots, generator=generator, device=encoded.device) < rate
        chosen = (torch.arange(self.slots, device=encoded.device) < wanted.unsqueeze(1)) & kept
        # The widest layers take most of the time, and nobody reads what they would make of a node without neighbours; activations
        # are in place, since theirs are the largest tensors of all.
        nodes = chosen.any(dim=1).nonzero().squeeze(1)
        hidden = noisy[nodes]
        for layer in self.widen:
            hidden = layer(hidden).relu_()
        filled = self.embedding(drop(hidden, self.dropout, dropout)).tanh_()
        embeddings = filled.new_zeros(len(count), filled.shape[1]).index_copy(0, nodes, filled)
        return Generated(count, embeddings.view(len(count), self.slots, -1), chosen)
