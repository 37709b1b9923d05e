"""Methods in which models teach each other by their predictions or embeddings: AdaFGL, FedTAD,
FGSSL, FedSpray and S2FGL.
"""

from typing import Annotated, Literal

from feddep.methods.method import BUILT_IN_ENCODERS, CLASS_SHARES, Method
from feddep.utils.parameters import (
    Hops,
    InKey,
    Parameters,
    Positive,
    Repetitions,
    Share,
    StepSize,
    Weight,
    Width,
)
from feddep.utils.spaces import linear, log


class AdaFGLParameters(Parameters):
    """The two steps of AdaFGL (Li et al., 2024)."""

    federated_share: Share = 0.5
    """share of the rounds that step 1 takes (OpenFGL)"""
    combination: Literal["mixture", "switch"] = "mixture"
    """prediction: both branches mixed by the homophily score, or one of them by `threshold` (paper;
    code: `switch`)"""
    threshold: Share = 0.9
    """least homophily score at which `switch` takes the homophilous branch (code)"""
    alpha: Share = 0.05
    """weight α of edges, beside pairs predicted alike, in smoothing features (code)"""
    beta: Share = 0.2
    """weight β of step 1's predictions beside the branch's own, in the signed relation (code)"""
    alike: Share = 0.999
    """similarity above which two nodes are joined; 0: all pairs, weighed by it (code; paper: 0)"""
    hops: Hops = 3
    """times K that features are smoothed (code)"""
    knowledge: Literal["probabilities", "logits"] = "probabilities"
    """what of the homophilous branch is drawn to the predictions of step 1 (code: `logits`)"""


class FedTADParameters(Parameters):
    """Generation and distillation at the server of FedTAD (Zhu et al., 2024); defaults are
    those of the authors' code.
    """

    topology: Literal["return", "walk_ids"] = "return"
    """return probabilities of random walks, or numbers of visited nodes (paper; code:
    `walk_ids`)"""
    walk_length: Positive = 5
    """longest walk"""
    divergence: Literal["l1", "kl"] = "l1"
    """distance of outputs: `l1` of logits, `kl` of probabilities (code)"""
    generated: Positive = 100
    """nodes of the generated graph"""
    neighbours: Positive = 5
    """most similar nodes that a generated node is joined to"""
    repetitions: Repetitions = 5
    """draws of noise in a round"""
    global_steps: Repetitions = 5
    """steps of the global model for each graph"""
    generator_learning_rate: StepSize = 0.001
    """step size of the generator's Adam"""
    global_learning_rate: StepSize = 0.001
    """step size of the global model's Adam"""
    semantic_weight: Weight = 1.0
    """weight λ₁ of clients' cross-entropies on generated nodes"""
    diversity_weight: Weight = 1.0
    """weight λ₂ of what keeps generated nodes apart"""


class FGSSLParameters(Parameters):
    """The views, contrast and distillation of FGSSL (Huang et al., 2023); defaults are those of the
    authors' code.
    """

    teacher: Literal["global", "local"] = "global"
    """who teaches: the `global` model that a client received, or its `local` one, by contrast alone
    (paper; code: `local`)"""
    contrast_weight: Weight = 3.0
    """weight of the contrast"""
    distillation_weight: Weight = 1.0
    """weight of the distillation, which the code leaves out"""
    tau: StepSize = 0.1
    """temperature τ of the contrast"""
    denominator: Annotated[Literal["pair", "all"], InKey(default=False)] = "pair"
    """positives in a term's denominator: its own `pair`, or `all` of the class (code: `all`)"""
    omega: StepSize = 4.0
    """temperature ω of the distillation"""
    weak_edges: Share = 0.3
    """share of edges that the weak view lacks"""
    weak_columns: Share = 0.3
    """share of feature columns that it lacks"""
    strong_edges: Share = 0.8
    """share of edges that the strong view lacks"""
    strong_columns: Share = 0.5
    """share of feature columns that it lacks"""


class FedSprayParameters(Parameters):
    """Proxies and soft targets of FedSpray (Fu et al., 2024); defaults are those of the authors'
    code.
    """

    proxy_width: Width = 64
    """width of proxies and of the features' encoder"""
    proxy_learning_rate: StepSize = 0.02
    """step size of the Adam of node proxies"""
    soft_weight: Weight = 1.0
    """weight λ₁ of soft targets in the GNN's loss"""
    confidence: Share = 0.7
    """least probability at which a node outside the training set has a soft target"""
    proxy_weights: Literal["nodes", "shares"] = "nodes"
    """what a client's proxy of a class counts: its training `nodes` of the class, or their `shares`
    (code: `shares`)"""
    plain_start: Literal["own", "fused"] = "own"
    """what the classifier without proxies starts from: its `own` mean, or the `fused` one's (code:
    `fused`)"""


class S2FGLParameters(Parameters):
    """What the received model teaches in S2FGL (Tan et al., 2025); defaults are those of the
    authors' code.
    """

    repository_weight: Weight = 5.0
    """weight λ₁ of similarities to the repository's class means"""
    alignment_weight: Weight = 1.0
    """weight λ₂ of projections on eigenvectors"""
    tau: StepSize = 1.0
    """temperature τ of the similarities"""


_FOLDER = "feddep.methods.distilled"

GROUP = "Distillation"
METHODS = (
    Method(
        "adafgl",
        "AdaFGL",
        AdaFGLParameters,
        f"{_FOLDER}.adafgl:run",
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        evaluation="local_after",
        search={
            "federated_share": linear(0.1, 1),
            "alpha": linear(0, 1),
            "beta": linear(0, 1),
        },
        published=({"federated_share": 0.6, "combination": "switch", "knowledge": "logits"},),
        look=("#999933", 3),
    ),
    Method(
        "fedtad",
        "FedTAD",
        FedTADParameters,
        f"{_FOLDER}.fedtad:run",
        assumes=(CLASS_SHARES,),
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        tested_apart=True,
        revision=2,
        search={
            "global_learning_rate": log(0.0001, 0.1),
            "semantic_weight": log(0.1, 10),
            "diversity_weight": log(0.1, 10),
        },
        as_fedavg={"repetitions": 0},
        look=("#999933", 2),
    ),
    Method(
        "fgssl",
        "FGSSL",
        FGSSLParameters,
        f"{_FOLDER}.fgssl:run",
        encoders=("gcn", "gat"),
        full_batch=True,
        absence=True,
        tested_apart=True,
        mini_batch=False,
        search={
            "contrast_weight": log(0.01, 10),
            "distillation_weight": log(0.01, 10),
            "tau": log(0.05, 1),
            "denominator": ("pair", "all"),
        },
        published=({"teacher": "local", "denominator": "all"},),
        as_fedavg={"contrast_weight": 0.0, "distillation_weight": 0.0},
        look=("#999933", 0),
    ),
    Method(
        "fedspray",
        "FedSpray",
        FedSprayParameters,
        f"{_FOLDER}.fedspray:run",
        assumes=("prototypes shared", CLASS_SHARES),
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        mini_batch=False,
        evaluation="local_after",
        search={
            "soft_weight": log(0.01, 10),
            "confidence": linear(0.5, 1),
            "proxy_learning_rate": log(0.001, 0.1),
        },
        published=({"proxy_weights": "shares", "plain_start": "fused"},),
        look=("#999933", 5),
    ),
    Method(
        "s2fgl",
        "S2FGL",
        S2FGLParameters,
        f"{_FOLDER}.s2fgl:run",
        assumes=("prototypes shared", CLASS_SHARES),
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        mini_batch=False,
        tested_apart=True,
        search={
            "repository_weight": log(0.05, 50),
            "alignment_weight": log(0.01, 10),
            "tau": log(0.05, 2),
        },
        as_fedavg={"repository_weight": 0.0, "alignment_weight": 0.0},
        look=("#999933", 7),
    ),
)
