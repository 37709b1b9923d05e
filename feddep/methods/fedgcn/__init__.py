"""FedGCN: one exchange of neighbours' summed features before training (Yao et al., 2023)."""

from typing import Annotated

from pydantic import Field

from feddep.methods.method import CROSS_CLIENT_EDGES, Method
from feddep.utils.parameters import Parameters, StepSize


class FedGCNParameters(Parameters):
    """How much is exchanged."""

    hops: Annotated[int, Field(ge=1, le=2)] = 2
    """sums that a client is told: of its nodes' neighbours, or also of theirs, as two layers need
    (paper: both)"""


class NoisedParameters(FedGCNParameters):
    """How private the sums are; ours."""

    epsilon: Annotated[float, Field(gt=0, le=1000)] | None = 4.0
    """ε of all sums that a client sends, for the features of one node; `null`: bounded features
    without noise"""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    """δ of the same"""
    clip: StepSize = 1.0
    """Euclidean length C that longer rows of features are scaled down to"""


GROUP = "Exchange between clients"
METHODS = (
    Method(
        "fedgcn",
        "FedGCN",
        FedGCNParameters,
        "feddep.methods.fedgcn.fedgcn:run",
        assumes=(CROSS_CLIENT_EDGES, "sums of neighbours' features shared"),
        encoders=("sage", "gcn"),
        full_batch=True,
        search={"hops": (1, 2)},
        revision=2,
        look=("#009E73", 3),
    ),
    Method(
        "fedgcn_noised",
        "FedGCN, noise",
        NoisedParameters,
        "feddep.methods.fedgcn.noised:run",
        assumes=(CROSS_CLIENT_EDGES, "noised sums of neighbours' features shared"),
        encoders=("sage", "gcn"),
        full_batch=True,
        revision=2,
        look=("#009E73", 4),
    ),
)
