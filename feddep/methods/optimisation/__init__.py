"""FedAvg optimised otherwise: FedProx, SCAFFOLD, FedNova, FedAdam and FedYogi, and FedAvg with
more local epochs or other layers.

No paper of this benchmark has them.  They tell what better optimisation wins from what knowing
missing neighbours wins.
"""

from typing import Annotated

from pydantic import Field

from feddep.methods.basic import NoParameters
from feddep.methods.method import ANY_ENCODER, Method
from feddep.utils.parameters import Parameters, StepSize, Weight
from feddep.utils.spaces import log


class FedProxParameters(Parameters):
    """The proximal term of FedProx (Li et al., 2020)."""

    mu: Weight = 0.01
    """weight μ of ½ ‖w − w_t‖² (paper: 0.001 to 1)"""


class ServerOptimizerParameters(Parameters):
    """The server's optimiser (Reddi et al., 2021, Algorithm 2)."""

    server_learning_rate: StepSize = 0.01
    """step size η of the server"""
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """decay β₁ of the mean of updates (paper)"""
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.99
    """decay β₂ of the mean of their squares (paper)"""
    tau: Annotated[float, Field(gt=0, le=1)] = 0.001
    """adaptivity τ (paper)"""


_FOLDER = "feddep.methods.optimisation"

GROUP = "Optimisation"
METHODS = (
    Method(
        "fedavg_selfloop",
        "FedAvg, self-loops",
        NoParameters,
        f"{_FOLDER}.fedavg_variants:run_closed",
        absence=True,
        tested_apart=True,
        look=("#000000", 1),
    ),
    Method(
        "fedavg_more_local",
        "FedAvg, M epochs",
        NoParameters,
        f"{_FOLDER}.fedavg_variants:run_longer",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        look=("#000000", 2),
    ),
    Method(
        "fedprox",
        "FedProx",
        FedProxParameters,
        f"{_FOLDER}.fedprox:run",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        search={"mu": log(0.001, 10)},
        as_fedavg={"mu": 0.0},
        look=("#882255", 2),
    ),
    Method(
        "scaffold",
        "SCAFFOLD",
        NoParameters,
        f"{_FOLDER}.scaffold:run",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        training={"optimizer": ("sgd",), "weight_decay": (0.0,)},
        look=("#882255", 3),
    ),
    Method(
        "fednova",
        "FedNova",
        NoParameters,
        f"{_FOLDER}.fednova:run",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        training={"optimizer": ("sgd",)},
        look=("#882255", 6),
    ),
    Method(
        "fedadam",
        "FedAdam",
        ServerOptimizerParameters,
        f"{_FOLDER}.fedopt:run_adam",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        search={"server_learning_rate": log(0.001, 1), "tau": log(0.00001, 0.1)},
        look=("#882255", 0),
    ),
    Method(
        "fedyogi",
        "FedYogi",
        ServerOptimizerParameters,
        f"{_FOLDER}.fedopt:run_yogi",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        search={"server_learning_rate": log(0.001, 1), "tau": log(0.00001, 0.1)},
        look=("#882255", 1),
    ),
)
