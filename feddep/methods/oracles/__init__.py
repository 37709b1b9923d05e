"""Oracles: what knowing the missing neighbours is worth.  They are given what no client could know,
and are no protocols.
"""

from feddep.methods.feddep import FUSED_ENCODERS, PRETRAINING, FedDEPParameters
from feddep.methods.method import ANY_ENCODER, ORACLE, Method
from feddep.utils.parameters import Hops, Parameters


class HaloParameters(Parameters):
    """How much of the global graph a client sees.  No paper has this oracle; the choices are
    ours.
    """

    hops: Hops | None = None
    """how far beyond its own nodes a client sees; 0: FedAvg; `null`: as many hops as the classifier
    has layers"""


_CODE = "feddep.methods.oracles.true_neighbours"

GROUP = "Oracles"
METHODS = (
    Method(
        "fedavg_oracle",
        "FedAvg, oracle",
        HaloParameters,
        f"{_CODE}:run_fedavg",
        assumes=(ORACLE,),
        encoders=ANY_ENCODER,
        full_batch=True,
        look=("#777777", 1),
    ),
    Method(
        "feddep_oracle",
        "FedDEP, oracle",
        FedDEPParameters,
        f"{_CODE}:run_feddep",
        steps=lambda parameters: (PRETRAINING,),
        assumes=(ORACLE,),
        encoders=tuple(FUSED_ENCODERS),
        full_batch=True,
        look=("#777777", 2),
    ),
)
