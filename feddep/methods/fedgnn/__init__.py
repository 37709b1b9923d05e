"""FedGNN: subgraphs expanded by a third party, noise on what clients learn (Wu et al., 2021 and 2022)."""

from typing import Annotated, Literal

from pydantic import Field

from feddep.methods.method import Method
from feddep.utils.parameters import Parameters, Positive, Weight


class FedGNNParameters(Parameters):
    """Noise and the exchange of embeddings."""

    noised: Literal["step", "update", "share"] = "step"
    """what is clipped to length C, and gets Gaussian noise of standard deviation σC: `step`, the gradient of every training
    node in every step, by DP-SGD, which FedDEP names; `update`, what a client has changed in a round, as the source protects
    what is sent; `share`, the same with noise of σC/n for n training nodes (NbAFL, Wei et al., 2020: assumed, no bound)"""
    sigma: Weight = 2.0
    """noise multiplier σ (FedDEP, Section 4.1); the source's strength of noise is twice its clipping threshold"""
    clip: Annotated[float, Field(gt=0, le=10**6)] = 2.0
    """clipping norm C; the source's 0.1 is for another loss; ours, the best of 1, 2, 3, 4 and 8 on the validation nodes of Cora
    with 5 clients and seed 0 for `step`"""
    refresh: Positive = 1
    """rounds between two exchanges of embeddings; authors' code: 1 epoch, paper: exchanged once"""


METHODS = (
    Method(
        "fedgnn",
        "FedGNN",
        FedGNNParameters,
        "feddep.methods.fedgnn.fedgnn:run",
        assumes=("trusted third party", "cross-client edges known", "node embeddings shared"),
    ),
)
