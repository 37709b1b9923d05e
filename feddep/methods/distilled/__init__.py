"""Methods in which models teach each other by their predictions: AdaFGL and FedTAD."""

from typing import Literal

from feddep.methods.method import BUILT_IN_ENCODERS, Method
from feddep.utils.parameters import Hops, Parameters, Positive, Repetitions, Share, StepSize, Weight


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


class FedTADParameters(Parameters):
    """What the server of FedTAD (Zhu et al., 2024) generates, and how it distils; defaults are those of the authors' code."""

    embedding: Literal["return", "walk_ids"] = "return"
    """topology embedding of a node: probabilities that a random walk `return`s to it (paper), or `walk_ids`, the numbers of the
    nodes that walks visit (code)"""
    walk_length: Positive = 5
    """length of the longest walk"""
    divergence: Literal["l1", "kl"] = "l1"
    """distance of the global model's outputs from a client's: `l1` of logits (code), or `kl` of probabilities"""
    generated: Positive = 100
    """nodes of the generated graph"""
    neighbours: Positive = 5
    """most similar nodes that a generated node is joined to"""
    repetitions: Repetitions = 5
    """times in a round that noise is drawn, for one step of the generator and `global_steps` of the global model"""
    global_steps: Repetitions = 5
    """steps of the global model for each graph"""
    generator_learning_rate: StepSize = 0.001
    """step size of the generator's Adam"""
    global_learning_rate: StepSize = 0.001
    """step size of the global model's Adam"""
    semantic_weight: Weight = 1.0
    """weight λ₁ of the clients' cross-entropies on the generated nodes"""
    diversity_weight: Weight = 1.0
    """weight λ₂ of what keeps generated nodes apart"""


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
    Method("fedtad", "FedTAD", FedTADParameters, f"{_FOLDER}.fedtad:run", encoders=BUILT_IN_ENCODERS, full_batch=True),
)
