"""FedGNN: subgraphs expanded by a third party, noise on what clients learn (Wu et al., 2021 and
2022).
"""

from typing import Annotated

from pydantic import Field

from feddep.methods.method import CROSS_CLIENT_EDGES, Method
from feddep.utils.parameters import Parameters, Positive, Weight


class FedGNNParameters(Parameters):
    """Noise and the exchange of embeddings."""

    sigma: Weight = 2.0
    """noise multiplier σ (FedDEP, Section 4.1); the source's strength of noise is twice its
    clipping threshold
    """
    clip: Annotated[float, Field(gt=0, le=10**6)] = 2.0
    """norm C that the gradient of a training node is clipped to; the source's 0.1 is for another
    loss; ours, the best of 1, 2, 3, 4 and 8 on the validation nodes of Cora with 5 clients and seed
    0"""
    refresh: Positive = 1
    """rounds between two exchanges of embeddings; authors' code: 1 epoch, paper: exchanged once"""


GROUP = "Exchange between clients"
METHODS = (
    Method(
        "fedgnn",
        "FedGNN",
        FedGNNParameters,
        "feddep.methods.fedgnn.fedgnn:run",
        assumes=("trusted third party", CROSS_CLIENT_EDGES, "node embeddings shared"),
        look=("#009E73", 2),
    ),
)
