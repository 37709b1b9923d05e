"""FedGCN: one exchange of neighbours' summed features before training (Yao et al., 2023)."""

from typing import Annotated

from pydantic import Field

from feddep.methods.method import Method
from feddep.utils.parameters import Parameters


class FedGCNParameters(Parameters):
    """How much is exchanged."""

    hops: Annotated[int, Field(ge=1, le=2)] = 2
    """sums that a client is told: of its own nodes' neighbours (1), or also of the neighbours of its nodes' neighbours (2), with
    which a GCN of two layers is what it is on the global graph (paper: both)"""


METHODS = (
    Method(
        "fedgcn",
        "FedGCN",
        FedGCNParameters,
        "feddep.methods.fedgcn.fedgcn:run",
        assumes=("cross-client edges known", "sums of neighbours' features shared"),
        encoders=("sage", "gcn"),
    ),
)
