"""FedSage+: missing neighbour generation along FedSage (Zhang et al., 2021, Section 4 and Algorithm 1).

FedSage itself is FedAvg of GraphSAGE, :mod:`feddep.methods.basic.fedavg`.  "Code" is the authors' (github.com/zkhku/fedsage).
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from feddep.methods.method import BUILT_IN_ENCODERS, Method, Step
from feddep.utils.parameters import Parameters, PerNode, Positive, Repetitions, StepSize, Weight, Width


class NeighGenParameters(Parameters):
    """How NeighGen is built and trained: every choice that FedSage+ leaves open."""

    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """share h of nodes that impairing hides; paper: from 3.4 % to 27.8 %, and 15 % where it studies α"""
    hidden_from: Literal["validation", "all"] = "all"
    """nodes that may be hidden: `all` (paper), or `validation` (code: half of the validation nodes)"""
    max_generated: PerNode = 5
    """most neighbours S generated for a node (code)"""
    embedding: Width = 128
    """width d_z (code)"""
    generator_width: Width = 128
    """width of fGen's last hidden layer, ours; code: 2048, which for the 6,805 features of MSAcademic makes a layer of 70 million
    weights, sent 2 M² times an epoch. Paper: very few layers suffice (Appendix D.1)"""
    generator_local_epochs: Repetitions = 20
    """epochs in which NeighGen is trained alone, before the others take part; code: 20, Algorithm 1: none"""
    generator_federated_epochs: Repetitions = 20
    """epochs e_g of Algorithm 1 (code)"""
    generator_batch: Positive = 64
    """nodes V_i^t sampled in an epoch, which is one step; paper: batch size 64, not said of what; code: all training nodes"""
    generator_learning_rate: StepSize = 0.001
    """step size of Adam (paper and code)"""
    generator_weight_decay: Weight = 0.0001
    """L2 regularizer of Adam (code)"""
    scale: Literal["paper", "authors"] = "paper"
    """squared distances as the `paper` writes them, or their mean over slots and coordinates (`authors`)"""
    count_weight: Weight = 1.0
    """λ^d; paper: all weights are 1"""
    feature_weight: Weight = 1.0
    """λ^f"""
    cross_weight: Weight = 1.0
    """α, of the terms of other clients in L^f (paper: 1)"""
    task_weight: Weight = 1.0
    """λ^c, of the cross-entropy"""


class LocSagePlusParameters(NeighGenParameters):
    """Those of FedSage+; `generator_federated_epochs` must be 0, and `cross_weight` is not used."""

    generator_local_epochs: Repetitions = 40
    """epochs in which NeighGen is trained; code: 20; here as many as FedSage+ has of both kinds"""
    generator_federated_epochs: Repetitions = 0
    """none"""

    @model_validator(mode="after")
    def _check(self) -> "LocSagePlusParameters":
        if self.generator_federated_epochs:
            raise ValueError("generator_federated_epochs must be 0 where nothing is federated")
        return self


_SETTING = ("layers", "hidden_channels", "dropout")
NEIGHGEN = Step(
    "fedsage.neighgen", "generator", "feddep.methods.fedsage.cross_client:generate", NeighGenParameters, setting=_SETTING
)
SHARED_NEIGHGEN = Step(
    "fedsage.shared_neighgen",
    "generator",
    "feddep.methods.fedsage.cross_client:generate_shared",
    NeighGenParameters,
    setting=_SETTING,
)

METHODS = (
    Method(
        "locsage_plus",
        "LocSage+",
        LocSagePlusParameters,
        "feddep.methods.fedsage.fedsage_plus:run_alone",
        steps=lambda parameters: (NEIGHGEN,),
        encoders=BUILT_IN_ENCODERS,
    ),
    Method(
        "fedsage_plus",
        "FedSage+",
        NeighGenParameters,
        "feddep.methods.fedsage.fedsage_plus:run",
        steps=lambda parameters: (NEIGHGEN,),
        assumes=("gradients from others' nodes shared",),
        encoders=BUILT_IN_ENCODERS,
    ),
    Method(
        "fedsage_plus_shared",
        "FedSage+ with a shared NeighGen",
        NeighGenParameters,
        "feddep.methods.fedsage.fedsage_plus:run",
        steps=lambda parameters: (SHARED_NEIGHGEN,),
        encoders=BUILT_IN_ENCODERS,
    ),
)
