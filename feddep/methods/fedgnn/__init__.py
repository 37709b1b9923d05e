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
    """noise multiplier σ (FedDEP)"""
    clip: Annotated[float, Field(gt=0, le=10**6)] = 2.0
    """norm C of a training node's gradient, the best of 1 to 8 on Cora's validation nodes (source:
    0.1, of another loss)"""
    refresh: Positive = 1
    """rounds between two exchanges of embeddings (code; paper: once)"""


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
