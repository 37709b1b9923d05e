"""Methods whose server gives each client its own mean of all clients' weights: FedGTA, FED-PUB,
FedAux, GCFL+ and FedIIH.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from feddep.methods.method import ANY_ENCODER, BUILT_IN_ENCODERS, CLASS_SHARES, Method
from feddep.utils.parameters import InKey, Parameters, Repetitions, Share, Weight
from feddep.utils.spaces import integers, linear, log

Temperature = Annotated[float, Field(ge=0, le=1000)]
"""A factor of cosines in a softmax."""


class FedGTAParameters(Parameters):
    """Message of a client about its predictions, and choice of those it is mixed with.

    The defaults are the authors' for Cora.  They take 20 moments and a threshold of 0.6 for
    CiteSeer, and 13 moments `origin` and a threshold of 0.65 for PubMed (comments in their
    config.py).
    """

    moments: Literal["origin", "mean", "hybrid"] = "hybrid"
    """of propagated predictions: about 0 (`origin`), about their `mean`, or both (code)"""
    orders: Annotated[int, Field(ge=1, le=100)] = 6
    """number of moments a class (code)"""
    threshold: Annotated[float, Field(ge=-1, le=1)] = 0.5
    """cosine of two clients' moments above which they are mixed; 1: each keeps its weights
    (code)"""
    propagation_steps: Repetitions = 5
    """steps of label propagation (code)"""
    propagation: Share = 0.5
    """what a node takes from its neighbours in a step (code)"""
    temperature: Annotated[float, Field(ge=0.01, le=1000)] = 20.0
    """divides what is propagated before the softmax of the confidence (code)"""


class FedPubParameters(Parameters):
    """The mixture, the masks and what holds them."""

    tau: Temperature = 10.0
    """how much more a client of similar outputs counts; 0: all the same (code)"""
    regularizers: Literal["written", "released"] = "written"
    """λ₁ and λ₂ as the loss has them, or as `released`, where they have no gradient (paper)"""
    lambda1: Weight = 0.001
    """weight of the L1 norm of masks; an applied mask below it is 0 (code)"""
    lambda2: Weight = 0.001
    """weight of the distance to the weights received (code)"""
    compared: Annotated[Literal["logits", "embeddings"], InKey(default=False)] = "logits"
    """what f_k is the mean of: `logits`, or inputs of the last layer before ReLU (code:
    `embeddings`)"""


class FedAuxParameters(Parameters):
    """The kernel and the mixture."""

    tau: Temperature = 10.0
    """how much more a client with a similar auxiliary vector counts; 0: all the same (paper)"""
    sigma: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """width σ of the kernel (paper; code: 10)"""
    masks: Annotated[bool, InKey(default=False)] = False
    """whether each client masks weights, as in FED-PUB (paper, code: true)"""


class GCFLPlusParameters(Parameters):
    """When a cluster is split, and what its members share."""

    epsilon1: Weight = 0.05
    """ε₁: a cluster is split only if the norm of its mean update is below (code)"""
    epsilon2: Weight = 0.1
    """ε₂: and the largest norm of an update above (code)"""
    sequence: Annotated[int, Field(ge=1, le=1000)] = 5
    """latest gradient norms that are compared (code)"""
    after: Repetitions = 20
    """rounds before the first split (code)"""
    shared: Literal["all", "hidden"] = "all"
    """layers that are exchanged: `all`, or all but the last (code: `hidden`)"""


class FedIIHParameters(Parameters):
    """Factors of FedIIH (Yu et al., 2025)."""

    factors: Annotated[int, Field(ge=1, le=32)] = 2
    """number P of latent factors, each `hidden_channels` wide (code)"""
    routings: Annotated[int, Field(ge=1, le=100)] = 6
    """times that a layer routes (code)"""
    scale: Temperature = 10.0
    """factor s of similarities in the softmax; 0: all clients count the same (code)"""


def _method(
    name: str, title: str, parameters: type[Parameters], evaluation: Any, **more: Any
) -> Method:
    return Method(
        name,
        title,
        parameters,
        f"feddep.methods.mixtures.{name}:run",
        full_batch=True,
        absence=name in ("fedgta", "fedpub", "fedaux"),
        new_clients=False,
        tested_apart=True,
        evaluation=evaluation,
        **more,
    )


GROUP = "Mixing of clients"
METHODS = (
    _method(
        "fedgta",
        "FedGTA",
        FedGTAParameters,
        "local_before",
        assumes=(CLASS_SHARES,),
        encoders=ANY_ENCODER,
        search={
            "moments": ("origin", "mean", "hybrid"),
            "orders": integers(2, 20),
            "threshold": linear(0, 1),
        },
        published=(
            {"orders": 20, "threshold": 0.6},
            {"moments": "origin", "orders": 13, "threshold": 0.65},
        ),
        look=("#999933", 1),
    ),
    _method(
        "fedpub",
        "FED-PUB",
        FedPubParameters,
        "local_after",
        encoders=BUILT_IN_ENCODERS,
        search={
            "tau": log(1, 30),
            "lambda1": log(1e-5, 0.1),
            "lambda2": log(1e-5, 0.1),
            "compared": ("logits", "embeddings"),
        },
        published=(
            {"tau": 5.0},
            {"tau": 3.0, "lambda1": 0.0, "lambda2": 0.0},
            {"tau": 3.0, "regularizers": "released", "compared": "embeddings"},
        ),
        look=("#332288", 4),
    ),
    _method(
        "fedaux",
        "FedAux",
        FedAuxParameters,
        "local_after",
        encoders=("gcn",),
        mini_batch=False,
        revision=2,
        search={"tau": log(1, 30), "sigma": log(0.1, 10), "masks": (False, True)},
        published=({"masks": True}, {"masks": True, "sigma": 10.0}),
        look=("#332288", 3),
    ),
    _method(
        "gcfl_plus",
        "GCFL+",
        GCFLPlusParameters,
        "local_before",
        encoders=BUILT_IN_ENCODERS,
        search={
            "epsilon1": log(0.01, 0.5),
            "epsilon2": log(0.01, 1),
            "shared": ("all", "hidden"),
        },
        published=({"shared": "hidden"},),
        as_fedavg={"epsilon1": 0.0},
        look=("#332288", 5),
    ),
    _method(
        "fediih",
        "FedIIH",
        FedIIHParameters,
        "local_after",
        encoders=("gcn",),
        mini_batch=False,
        search={
            "factors": (1, 2, 4, 6, 8, 10),
            "routings": integers(2, 8),
            "scale": log(0.1, 100),
        },
        published=({"factors": 4}, {"factors": 6}, {"factors": 10}),
        look=("#332288", 7),
    ),
)
