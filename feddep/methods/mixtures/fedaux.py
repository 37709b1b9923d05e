"""FedAux: clients are mixed by the cosine of vectors that they learn to sort their nodes by (Zhuo
et al., arXiv 2505.23864).

From embeddings h_v of its nodes and an auxiliary vector a of the same width, which is trained with
the weights, a client computes

    s_v = cos(h_v, a),    K_uv = exp(−(s_u − s_v)² / σ²),    z_v = Σ_u K_vu h_u / Σ_u K_vu,

and classifies [h_v, z_v].  It sends its weights and a.  The server answers with w̄_k = Σ_l a_kl w_l
and the same mean of the vectors, where a_kl = softmax over l of τ cos(a_k, a_l).

Here h are what the last layer of the setting's GCN reads, after ReLU and dropout, and that layer
reads [h, z] instead; the authors put a linear layer behind all convolutions.  K is n_k × n_k.  For
σ ≥ ½ it is taken as a product of two factors of T columns, the Taylor series of exp(2 s_u s_v / σ²)
to rounding, and a step takes O(n_k T d), T = 16 for σ = 1; for smaller σ it takes O(n_k² d).  Whole
neighbourhoods alone have it: there are no mini-batches.  The classifier as committed by the authors
cannot run (an undefined variable in the kernel); what is here is the commented version, whose run
they have logged.  As there, a starts uniform in [0, 1), the same for all, and is not scaled to
length 1, as the paper's theory has it: cosines do not see its length.  With ``masks`` weights are
multiplied by masks of the client's own, as in FED-PUB without their terms of the loss, which have
no gradient in the code, and without its threshold.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from feddep.methods.basic import fedavg
from feddep.methods.mixtures import FedAuxParameters
from feddep.methods.mixtures.fedpub import is_mask, masked
from feddep.methods.mixtures.mixing_server import SimilarityServer
from feddep.nn.encoders import GCN
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import RunResult, Task


class AuxiliaryGCN(GCN):
    """A GCN whose last layer reads smoothed embeddings beside the plain ones."""

    def __init__(
        self, features: int, hidden: int, classes: int, layers: int, dropout: float, sigma: float
    ) -> None:
        """Set up the layers; all but the last argument are those of
        :class:`feddep.nn.sage.GraphSAGE`.
        """
        super().__init__(features, hidden, classes, layers, dropout)
        self.layers[-1] = self.new_layer(2 * hidden, classes, True)
        self.add_module(f"layer{layers - 1}", self.layers[-1])
        self.auxiliary = nn.Parameter(torch.empty(hidden))
        self.sigma = sigma

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        nn.init.uniform_(self.auxiliary, generator=generator)

    def head(self, hidden: Any, adjacency: SparseMatrix, z: Tensor | None = None) -> Tensor:
        return super().head(
            torch.cat([hidden, smoothed(hidden, self.auxiliary, self.sigma)], dim=1), adjacency
        )


def smoothed(hidden: Tensor, auxiliary: Tensor, sigma: float) -> Tensor:
    """z of n nodes, shape (n, d), from their embeddings h, shape (n, d), and the vector a, shape
    (d,).
    """
    scores = cosine_similarity(hidden, auxiliary, dim=1)
    if sigma >= 0.5:
        factor = kernel_factor(scores, sigma)
        return factor @ (factor.T @ hidden) / (factor @ factor.sum(dim=0)).unsqueeze(1)
    kernel = torch.exp(-(((scores.unsqueeze(1) - scores) / sigma) ** 2))
    return kernel @ hidden / kernel.sum(dim=1, keepdim=True)


def kernel_factor(scores: Tensor, sigma: float) -> Tensor:
    """F, shape (n, T), with F Fᵀ = K, from scores in [−1, 1]: F_vk = exp(−s_v² / σ²) (√2 s_v / σ)^k
    / √(k!).

    Terms are left out from where the largest, (2 / σ²)^k / k!, is below 10⁻⁷.
    """
    bound, columns = 2 / sigma**2, [torch.exp(-((scores / sigma) ** 2))]
    largest = 1.0
    while largest > 1e-7:
        k = len(columns)
        columns.append(columns[-1] * scores * math.sqrt(bound / k))
        largest *= bound / k
    return torch.stack(columns, dim=1)


def run(task: Task, parameters: FedAuxParameters, steps: Any = None) -> RunResult:
    """GCNs with auxiliary vectors, mixed by the similarity of these."""
    task.check_hidden()

    def new_model() -> Any:
        model = task.drawn(AuxiliaryGCN(*task.model_sizes, parameters.sigma))
        return masked(model, 0.0) if parameters.masks else model

    return fedavg.train_on(
        task,
        task.subgraphs(),
        server=partial(SimilarityServer, parameters=parameters, name="auxiliary"),
        new_model=new_model,
        shared=lambda name: not is_mask(name),
    )
