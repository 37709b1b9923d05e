"""Models that fit each client: personal layers or models, and local steps that stay near to what
the clients have in common.

None of them knows of graphs.  FedAvg with rounds of tuning at its end is what they have to beat.
"""

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from feddep.methods.basic import NoParameters
from feddep.methods.method import ANY_ENCODER, BUILT_IN_ENCODERS, Method
from feddep.utils.parameters import (
    Natural,
    Parameters,
    Positive,
    Repetitions,
    Share,
    StepSize,
    Weight,
)
from feddep.utils.spaces import integers, linear, log

Temperature = Annotated[float, Field(ge=0.001, le=1000)]
"""A number that similarities are divided by."""


class FinetuningParameters(Parameters):
    """How FedAvg is tuned."""

    tuning_rounds: Natural = 10
    """rounds at the end in which each client trains alone"""


class DittoParameters(Parameters):
    """The pull of Ditto (Li et al., 2021)."""

    personal_weight: Weight = 1.0
    """weight λ of ½ ‖v − w‖² (code: 0.1, 1 and 2)"""


class FedProtoParameters(Parameters):
    """Prototypes of FedProto (Tan et al., 2022)."""

    prototype_weight: Weight = 1.0
    """weight λ of the distance from prototypes (code)"""
    mean: Literal["written", "openfgl"] = "written"
    """over clients that have the class, or as OpenFGL: over all, zeros included (paper)"""


class FedTGPParameters(Parameters):
    """Training of prototypes of FedTGP (Zhang et al., 2024)."""

    prototype_weight: Weight = 1.0
    """weight λ of the distance from prototypes (code)"""
    server_steps: Repetitions = 100
    """steps of the server in a round (paper)"""
    margin: Literal["written", "released"] = "written"
    """margin δ: the largest distance of two classes, or of a class from its nearest (paper; code:
    `released`)"""
    largest_margin: Weight = 100.0
    """largest margin τ (paper)"""
    prediction: Literal["prototypes", "classifier"] = "prototypes"
    """a node's class: that of its nearest prototype, or the classifier's (code)"""


class MoonParameters(Parameters):
    """The contrast of MOON (Li et al., 2021)."""

    mu: Weight = 1.0
    """weight μ of the contrast (paper: 0.1 to 10)"""
    temperature: Temperature = 0.5
    """temperature τ (paper)"""


class FedDCParameters(Parameters):
    """Drift of FedDC (Gao et al., 2022)."""

    alpha: Weight = 0.1
    """weight α of the distance from the server's weights less the drift (OpenFGL; code: 0.01)"""
    correction: Literal["written", "openfgl"] = "written"
    """as the paper writes it, or with the slips of OpenFGL's code (paper)"""


class FedALAParameters(Parameters):
    """Mixing of FedALA (Zhang et al., 2023)."""

    mixed_layers: Positive = 1
    """number p of upper layers that are mixed (code)"""
    mixing_share: Share = 0.8
    """share of training nodes that mixing weights are learned on (code)"""
    mixing_rate: StepSize = 1.0
    """step size η of mixing weights (code)"""


_FOLDER = "feddep.methods.personalised"
_Method = partial(Method, full_batch=True, absence=True, tested_apart=True)
_Personal = partial(_Method, evaluation="local_after")

GROUP = "Personalised"
METHODS = (
    _Personal(
        "fedavg_finetuned",
        "FedAvg, fine-tuned",
        FinetuningParameters,
        f"{_FOLDER}.finetuned:run",
        encoders=ANY_ENCODER,
        search={"tuning_rounds": integers(1, 50, log=True)},
        as_fedavg={"tuning_rounds": 0},
        look=("#000000", 3),
    ),
    _Personal(
        "fedper",
        "FedPer",
        NoParameters,
        f"{_FOLDER}.fedper:run",
        encoders=BUILT_IN_ENCODERS,
        look=("#332288", 1),
    ),
    _Personal(
        "ditto",
        "Ditto",
        DittoParameters,
        f"{_FOLDER}.ditto:run",
        encoders=ANY_ENCODER,
        search={"personal_weight": log(0.01, 10)},
        look=("#332288", 0),
    ),
    _Personal(
        "fedproto",
        "FedProto",
        FedProtoParameters,
        f"{_FOLDER}.fedproto:run",
        assumes=("prototypes shared",),
        encoders=BUILT_IN_ENCODERS,
        mini_batch=False,
        search={"prototype_weight": log(0.01, 10)},
        look=("#999933", 4),
    ),
    _Method(
        "fedtgp",
        "FedTGP",
        FedTGPParameters,
        f"{_FOLDER}.fedtgp:run",
        assumes=("prototypes shared",),
        encoders=BUILT_IN_ENCODERS,
        mini_batch=False,
        absence=False,
        evaluation="local_before",
        search={
            "prototype_weight": log(0.01, 100),
            "margin": ("written", "released"),
            "prediction": ("prototypes", "classifier"),
        },
        published=({"prototype_weight": 10.0},),
        look=("#999933", 6),
    ),
    _Method(
        "moon",
        "MOON",
        MoonParameters,
        f"{_FOLDER}.moon:run",
        encoders=BUILT_IN_ENCODERS,
        mini_batch=False,
        search={"mu": log(0.01, 10), "temperature": log(0.1, 2)},
        as_fedavg={"mu": 0.0},
        look=("#882255", 4),
    ),
    _Method(
        "feddc",
        "FedDC",
        FedDCParameters,
        f"{_FOLDER}.feddc:run",
        encoders=ANY_ENCODER,
        search={"alpha": log(0.001, 1)},
        published=({"alpha": 0.01},),
        look=("#882255", 5),
    ),
    _Personal(
        "fedala",
        "FedALA",
        FedALAParameters,
        f"{_FOLDER}.fedala:run",
        encoders=BUILT_IN_ENCODERS,
        search={
            "mixed_layers": (1, 2),
            "mixing_share": linear(0.2, 1),
            "mixing_rate": log(0.01, 10),
        },
        look=("#332288", 2),
    ),
    _Method(
        "fedstar",
        "FedStar",
        NoParameters,
        f"{_FOLDER}.fedstar:run",
        encoders=("gcn",),
        mini_batch=False,
        tested_apart=False,
        evaluation="local_before",
        look=("#332288", 6),
    ),
    _Personal(
        "fedstar_local",
        "FedStar, nothing shared",
        NoParameters,
        f"{_FOLDER}.fedstar:run_local",
        encoders=("gcn",),
        mini_batch=False,
        tested_apart=False,
        look=("#777777", 6),
    ),
)
