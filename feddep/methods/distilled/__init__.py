"""Methods in which models teach each other by their predictions: AdaFGL."""

from typing import Literal

from feddep.methods.method import BUILT_IN_ENCODERS, Method
from feddep.utils.parameters import Hops, Parameters, Share


class AdaFGLParameters(Parameters):
    """The two steps of AdaFGL (Li et al., 2024)."""

    federated_share: Share = 0.5
    """share of the rounds that step 1 takes (OpenFGL's port: 50 of 100; the authors' code has 100 rounds and then 200 epochs)"""
    combination: Literal["mixture", "switch"] = "mixture"
    """prediction: both branches, mixed by the homophily score (paper), or only one of them, chosen by `threshold` (code)"""
    threshold: Share = 0.9
    """least homophily score at which `switch` takes the homophilous branch (code)"""
    alpha: Share = 0.05
    """weight α of the edges, beside pairs that are predicted alike, where features are smoothed (code)"""
    beta: Share = 0.2
    """weight β of the predictions of step 1, beside the branch's own, in the signed relation (code)"""
    alike: Share = 0.999
    """similarity above which two nodes are joined (code); 0 weighs all pairs by their similarity (paper)"""
    hops: Hops = 3
    """times K that features are smoothed (code)"""
    knowledge: Literal["probabilities", "logits"] = "probabilities"
    """what of the homophilous branch is drawn to the predictions of step 1: `probabilities`, or `logits` (code)"""


_FOLDER = "feddep.methods.distilled"

METHODS = (
    Method(
        "adafgl",
        "AdaFGL",
        AdaFGLParameters,
        f"{_FOLDER}.adafgl:run",
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        evaluation="local_after",
    ),
)
