"""NeighGen, the missing neighbour generator (FedSage, Section 4.1; widths and last activation from
the authors' code).

z_v = H^e(G_i(v); θ^e),    ñ_v = σ(θ^d · z_v),    x̃_v = R(σ(θ^f(z_v + N(0, 1))), ñ_v)

(Equation 3).  H^e is a GraphSAGE encoder, dGen (θ^d) and fGen (θ^f) together are the generator H^g.
fGen has S slots, each with a last layer of its own, and R takes the first ñ_v of them, so only
those are computed.

The paper does not say what σ is.  Here it is ReLU in the encoder and in dGen and tanh for features,
as in the code.  With ReLU, features die: a coordinate that is negative for all nodes has no
gradient, and in a trial on MSAcademic and on PubMed less than one coordinate in a thousand was not
zero after 40 steps.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from feddep.nn.dropout import drop
from feddep.nn.linear import Linear
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix


@dataclass(frozen=True, eq=False)
class Generated:
    """Generated neighbours of n nodes, g in all.

    Attributes:
        count: predicted number ñ_v of missing neighbours, not rounded, at least 0, shape (n,).
        owner: whose neighbour each one is: a position in ``count``, int64, shape (g,).
        features: x̃ of each, in (−1, 1), shape (g, F).
    """

    count: Tensor
    owner: Tensor
    features: Tensor


class NeighbourGenerator(nn.Module):
    """H^g: dGen, a linear map and ReLU, and fGen, a fully connected network from noisy embeddings
    to S feature vectors.
    """

    def __init__(
        self, features: int, embedding: int, slots: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.features = features
        self.slots = slots
        self.dropout = dropout
        self.number = Linear(embedding, 1)
        self.widen = nn.ModuleList([Linear(embedding, 256), Linear(256, width)])
        self.heads = nn.ModuleList(Linear(width, features) for _ in range(slots))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew, each layer's uniformly from ±1/√inputs, as the code does, but for
        two layers.

        dGen's bias is 1, so that it starts by predicting about one neighbour for each node.  Drawn
        from around 0, ReLU may be 0 for every node: then nothing is generated, no term of the loss
        has a gradient, and nothing is ever learned.

        fGen's last layer is a tenth of that.  At full size its first features are noise, on
        MSAcademic with a squared norm of 130 where a node's own is 5, and the encoder learns to
        lessen it before it learns anything else: after 40 epochs (M = 3) dGen's numbers correlated
        with the true ones by 0.03, with a tenth by 0.24.
        """
        for layer in (self.number, *self.widen, *self.heads):
            layer.reset_parameters(generator)
        nn.init.ones_(self.number.bias)
        with torch.no_grad():
            for weights in self.heads.parameters():
                weights.mul_(0.1)

    def forward(self, z: Tensor, draws: torch.Generator) -> Generated:
        """Generate missing neighbours of n nodes from their embeddings z, (n, d_z): ⌊ñ_v⌉, at most
        S (rounded: Appendix D.1).

        ``draws`` is the source of the noise and, in training mode, of the dropout masks.
        """
        count = self.number(z).relu().squeeze(1)
        hidden = z + torch.randn(z.shape, generator=draws, device=z.device)
        for layer in self.widen:
            hidden = layer(hidden).relu_()
        hidden = drop(hidden, self.dropout, draws if self.training else None)
        wanted = count.detach().round()
        owners = [(wanted > slot).nonzero().squeeze(1) for slot in range(self.slots)]
        features = [
            head(hidden[owner]).tanh_()
            for head, owner in zip(self.heads, owners, strict=True)
            if len(owner)
        ]
        return Generated(
            count,
            torch.cat(owners),
            torch.cat(features) if features else z.new_zeros(0, self.features),
        )


class NeighGen(nn.Module):
    """H^e, K GraphSAGE convolutions each followed by ReLU (Equation 1), with dropout between them;
    and H^g.
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        embedding: int,
        layers: int,
        slots: int,
        width: int,
        dropout: float,
    ) -> None:
        """Set up both, for embeddings of width d_z, K = ``layers`` convolutions and at most S =
        ``slots`` neighbours of a node.

        ``hidden`` is the encoder's width between convolutions, ``width`` that of fGen's last hidden
        layer.
        """
        super().__init__()
        self.encoder = GraphSAGE(features, hidden, embedding, layers, dropout)
        self.generator = NeighbourGenerator(features, embedding, slots, width, dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.encoder.reset_parameters(generator)
        self.generator.reset_parameters(generator)

    def encode(
        self, x: Tensor | SparseMatrix, mean: SparseMatrix, draws: torch.Generator
    ) -> Tensor:
        """z of all nodes from their full neighbourhoods, shape (n, d_z).

        The arguments are those of :meth:`feddep.nn.sage.GraphSAGE.full`; dropout is for training
        mode.
        """
        return self.encoder.full(x, mean, generator=draws if self.training else None).relu()
