"""DGen, the deep neighbour generator (FedDEP, Section 3.1; widths from the authors' code).

ñ_v = σ(θ^d · Enc(G^K_i(v); θ^e)),    z̃_v = Ber_r(tanh(θ^f(Enc(G^K_i(v); θ^e) + N(0, 1))), ñ_v)
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from feddep.nn.dropout import rectify_and_drop_
from feddep.nn.linear import Linear
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix

Slots = Literal["generated", "all"]
"""Slots that a node's embeddings are averaged over: those generated (paper), or all slots, empty
ones as zeros (authors' code).
"""

# Nodes; where there are many, so many are worked on at once, which a processor's cache holds.
_MANY = 2**14
_BLOCK = 2**11


@dataclass(frozen=True, eq=False)
class Generated:
    """Generated embeddings of n nodes.

    Attributes:
        count: predicted number ñ_v of missing neighbours, not rounded, at least 0, shape (n,).
        embeddings: the embedding in each of the g filled slots, node by node, shape (g, d_z).
        chosen: which of each node's S slots are filled: the first ⌊ñ_v⌉, each kept with probability
            r; bool, shape (n, S).
    """

    count: Tensor
    embeddings: Tensor
    chosen: Tensor

    def mean(self, over: Slots) -> Tensor:
        """z̄_v, the mean of each node's generated embeddings, shape (n, d_z); zero where there are
        none.
        """
        chosen = self.chosen[:, : _slots_in_use(self.chosen)].unsqueeze(2)
        empty = self.embeddings.new_zeros(*chosen.shape[:2], self.embeddings.shape[1])
        total = empty.masked_scatter(chosen, self.embeddings).sum(dim=1)
        filled = self.chosen.sum(dim=1, keepdim=True).clamp(min=1)
        return total / (filled if over == "generated" else self.chosen.shape[1])


def _slots_in_use(chosen: Tensor) -> int:
    """How many slots there are up to the last that some node fills."""
    return int((chosen * torch.arange(1, chosen.shape[1] + 1, device=chosen.device)).max())


class DGen(nn.Module):
    """Encoder of two GraphSAGE convolutions, one head for the number and one for the embeddings of
    missing neighbours.
    """

    def __init__(
        self, features: int, embedding: int, slots: int, hidden: int, dropout: float
    ) -> None:
        """Set up the layers, with an encoder of width ``hidden``, to generate at most S = ``slots``
        neighbours of a node.
        """
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

    def forward(
        self, x: Tensor | SparseMatrix, mean: SparseMatrix, rate: float, generator: torch.Generator
    ) -> Generated:
        """Generate missing neighbours of all nodes, with full neighbourhoods.

        The Bernoulli sampler keeps a generated embedding with probability r = ``rate``.
        ``generator`` is the source of noise, of the selection and, in training mode, of dropout;
        ``x`` and ``mean`` are those of :meth:`feddep.nn.sage.GraphSAGE.full`.
        """
        dropout = generator if self.training else None
        encoded = self.encoder.full(x, mean, generator=dropout)
        count = self.count(encoded).relu().squeeze(1)
        noisy = encoded + torch.randn(encoded.shape, generator=generator, device=encoded.device)
        wanted = count.detach().round()
        kept = torch.rand(len(count), self.slots, generator=generator, device=encoded.device) < rate
        chosen = (torch.arange(self.slots, device=encoded.device) < wanted.unsqueeze(1)) & kept
        # The widest layers take most of the time: nodes without neighbours are left out.  Of many
        # nodes, slots that none of them fills are left out, too; of few all are kept, as a product
        # of another shape may be rounded otherwise.
        nodes = chosen.any(dim=1).nonzero().squeeze(1)
        many = len(nodes) > _MANY
        slots = _slots_in_use(chosen) if many else self.slots
        blocks = nodes.tensor_split(len(nodes) // _BLOCK) if many else [nodes]
        embeddings = [self._embed(noisy[some], chosen[some, :slots], dropout) for some in blocks]
        return Generated(count, torch.cat(embeddings), chosen)

    def _embed(self, noisy: Tensor, chosen: Tensor, dropout: torch.Generator | None) -> Tensor:
        """tanh(θ^f(·)) in the ``chosen`` ones of the first slots; shape (g, d_z)."""
        first, second = self.widen
        hidden = rectify_and_drop_(second(first(noisy).relu_()), self.dropout, dropout)
        width, slots = self.embedding.out_features // self.slots, chosen.shape[1]
        weight, bias = (
            each[: slots * width] for each in (self.embedding.weight, self.embedding.bias)
        )
        return linear(hidden, weight, bias).tanh_().view(len(hidden), slots, width)[chosen]
