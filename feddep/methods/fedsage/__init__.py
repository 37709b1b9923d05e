"""FedSage+: missing neighbour generation along FedSage (Zhang et al., 2021, Section 4 and Algorithm
1).

FedSage itself is FedAvg of GraphSAGE, :mod:`feddep.methods.basic.fedavg`.  "Code" is the authors'
(github.com/zkhku/fedsage).

In full batches a generated neighbour is a node of the graph that the setting's encoder reads, such
as in a GCN's normalised adjacency, with a self-loop and one neighbour.  NeighGen is trained as
ever: steps of ``generator_batch`` nodes by Adam, beside a GraphSAGE, with the setting's ``layers``,
``hidden_channels`` and ``dropout``.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from feddep.methods.method import BUILT_IN_ENCODERS, Method, Step
from feddep.utils.parameters import (
    Parameters,
    PerNode,
    Positive,
    Repetitions,
    StepSize,
    Weight,
    Width,
)
from feddep.utils.spaces import Space, linear, log


class NeighGenParameters(Parameters):
    """How NeighGen is built and trained: every choice that FedSage+ leaves open."""

    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """share h of nodes that impairing hides (paper: 3.4 % to 27.8 %)"""
    hidden_from: Literal["validation", "all"] = "all"
    """nodes that may be hidden (paper; code: half of the `validation` nodes)"""
    max_generated: PerNode = 5
    """most neighbours S generated for a node (code)"""
    embedding: Width = 128
    """width d_z (code)"""
    generator_width: Width = 128
    """width of fGen's last hidden layer (code: 2048)"""
    generator_local_epochs: Repetitions = 20
    """epochs in which NeighGen is trained alone (code: 20; paper: none)"""
    generator_federated_epochs: Repetitions = 20
    """epochs e_g of Algorithm 1, with the others (code)"""
    generator_batch: Positive = 64
    """nodes V_i^t sampled for a step (paper: 64, not said of what; code: all)"""
    generator_learning_rate: StepSize = 0.001
    """step size of Adam (paper, code)"""
    generator_weight_decay: Weight = 0.0001
    """L2 regularizer of Adam (code)"""
    scale: Literal["paper", "authors"] = "paper"
    """squared distances as in the `paper`, or averaged over slots and coordinates (code:
    `authors`)"""
    count_weight: Weight = 1.0
    """λ^d, of the number of neighbours (paper)"""
    feature_weight: Weight = 1.0
    """λ^f, of their features (paper)"""
    cross_weight: Weight = 1.0
    """α, of other clients' terms in L^f (paper)"""
    task_weight: Weight = 1.0
    """λ^c, of the cross-entropy (paper)"""


class LocSagePlusParameters(NeighGenParameters):
    """Those of FedSage+; `generator_federated_epochs` must be 0, and `cross_weight` is not used."""

    generator_local_epochs: Repetitions = 40
    """epochs in which NeighGen is trained, as many as FedSage+ has of both kinds (code: 20)"""
    generator_federated_epochs: Literal[0] = 0
    """none"""


def _step(name: str, function: str) -> Step:
    return Step(
        name,
        "generator",
        f"feddep.methods.fedsage.cross_client:{function}",
        NeighGenParameters,
        setting=("layers", "hidden_channels", "dropout"),
    )


NEIGHGEN = _step("fedsage.neighgen", "generate")
SHARED_NEIGHGEN = _step("fedsage.shared_neighgen", "generate_shared")


def _method(
    name: str,
    title: str,
    parameters: type[NeighGenParameters],
    function: str,
    step: Step,
    *assumes: str,
    **more: Any,
) -> Method:
    return Method(
        name,
        title,
        parameters,
        f"feddep.methods.fedsage.fedsage_plus:{function}",
        lambda parameters: (step,),
        assumes=assumes,
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        **more,
    )


SEARCH: Space = {
    "hidden_share": linear(0.05, 0.5),
    "generator_learning_rate": log(0.0001, 0.1),
}
CODE = {"hidden_from": "validation", "scale": "authors"}
"""The authors' code, but for its width of 2048."""

GROUP = "Generated neighbours"
METHODS = (
    _method(
        "locsage_plus",
        "LocSage+",
        LocSagePlusParameters,
        "run_alone",
        NEIGHGEN,
        search=SEARCH,
        published=(CODE,),
        look=("#E69F00", 2),
    ),
    _method(
        "fedsage_plus",
        "FedSage+",
        NeighGenParameters,
        "run",
        NEIGHGEN,
        "gradients from others' nodes shared",
        search={**SEARCH, "cross_weight": log(0.01, 10)},
        published=(CODE,),
        look=("#E69F00", 0),
    ),
    _method(
        "fedsage_plus_shared",
        "FedSage+ with a shared NeighGen",
        NeighGenParameters,
        "run",
        SHARED_NEIGHGEN,
        look=("#E69F00", 1),
    ),
)
