"""FedDEP: deep efficient private neighbour generation (Zhang et al., 2024, Section 3), its
ablations and other interpretations.

The modules follow the paper: :mod:`pretraining`, :mod:`clustering` and :mod:`prototypes`,
:mod:`generation` and :mod:`mending`, :mod:`classifier`.  Every choice that the paper leaves open is
a parameter.  Its default is the paper's value, where the paper is silent that of the authors' code,
and for `fused`, `hidden_from`, `scale` and `prototypes` the interpretation that does best on
validation nodes (study interpretations).  Two differences from the code have no parameter: it
samples no generated neighbours (r = 1), and its generators are not trained by pseudo-FL but send
weights and encoded nodes to every other client at every step.

In full batches the classifier is trained on all of a client's nodes and their z̄ at once, and the
generators as ever: the local GNN, a GraphSAGE, in mini-batches of the setting's ``batch_size`` and
``fanout``, with the setting's width and dropout and an optimiser of its own
(``pretraining_optimizer``); DGen in steps on all nodes, beside a classifier of the setting's
encoder.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from feddep.methods.method import Method, Step
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import (
    Hops,
    Parameters,
    PerNode,
    Repetitions,
    Share,
    StepSize,
    Weight,
    Width,
)
from feddep.utils.spaces import By, integers, log


class LayerParameters(Parameters):
    """The layers of the embedding-fused classifier."""

    fused: Literal["paper", "authors", "chained"] = "authors"
    """`paper`: its equation with K + 1 matrices. `authors`: a map of z̄ added to each layer of the
    encoder. `chained`: the code, each map reading the one before; not for `feddep_wo_nfdp`"""
    initial: Literal["he", "uniform"] = "he"
    """initial weights of the paper's layers"""


class EmbeddingParameters(Parameters):
    """The width of embeddings."""

    embedding: Width = 128
    """width d_z of embeddings (paper: 64 to 256 by graph)"""


class PretrainingParameters(EmbeddingParameters):
    """How each client's local GNN is trained, whose embeddings the prototypes are of."""

    encoder: Literal["local", "federated"] = "local"
    """what embeds a client's nodes: its own GNN, or one trained by FedAvg (paper: `local`)"""
    depth: Hops = 2
    """hops L of context in an embedding (paper, code)"""
    pretraining_epochs: Repetitions = 50
    """epochs of the local GNN (code)"""
    pretraining_optimizer: Literal["adam", "sgd"] = "adam"
    """of the local GNN: `adam` with 0.01, or `sgd` with 0.1 (code; paper: `sgd`)"""


class PrototypeParameters(Parameters):
    """How embeddings are clustered."""

    prototypes: Annotated[int, Field(ge=1, le=1000)] | None = 15
    """number C of prototypes a client; `null`: one a class (paper: 3 to 20 by its reported
    accuracy, code: 5)"""
    clustering: Literal["kmeans", "dec"] = "kmeans"
    """`kmeans`, or deep embedded clustering (code: `dec`)"""


class FusedParameters(EmbeddingParameters, LayerParameters):
    """The embedding-fused classifier."""


class GeneratorParameters(FusedParameters):
    """How DGen is built and trained, beside a classifier of the client's own."""

    bernoulli_rate: Share = 1.0
    """probability r that a generated neighbour is kept; 1 for `feddep_wo_nfdp` (code: all)"""
    hidden_share: Share = 0.5
    """share h of nodes that impairing hides (paper)"""
    hidden_from: Literal["validation", "all"] = "all"
    """nodes that may be hidden; `validation` loses no training label (paper; code: `validation`)"""
    max_generated: PerNode = 5
    """most neighbours generated for a node (code)"""
    slots: Literal["generated", "all"] = "generated"
    """what generated embeddings are averaged over (paper: `generated`)"""
    scale: Literal["paper", "authors"] = "authors"
    """squared distances as in the `paper`, or averaged over slots and coordinates (code:
    `authors`)"""
    count_bias: Annotated[float, Field(ge=-1000, le=1000)] | None = None
    """first bias of DGen's number of neighbours; `null`: drawn, so that some clients predict 0
    everywhere and learn nothing"""
    generator_epochs: Repetitions = 4
    """full-batch steps of DGen; for `feddep_joint`, steps an epoch of the classifier (code: 1 alone
    and 3 with the others)"""
    generator_optimizer: Literal["sgd", "adam"] = "sgd"
    """optimiser of DGen (paper, code: `sgd`)"""
    generator_learning_rate: StepSize = 0.1
    """its step size (paper)"""
    count_weight: Weight = 1.0
    """β^d, of the number of missing neighbours (paper)"""
    intra_weight: Weight = 1.0
    """β^f, of reconstructing a client's own hidden nodes (paper)"""
    cross_weight: Weight = 1.0
    """β^n, of resemblance to other clients' prototypes (paper)"""
    task_weight: Weight = 1.0
    """weight of the classifier's cross-entropy L^c (paper)"""


class FedDEPParameters(
    GeneratorParameters, PretrainingParameters, PrototypeParameters, LayerParameters
):
    """All choices of FedDEP."""

    inference: Literal["zero", "generated"] = "zero"
    """z̄ of nodes of the global graph in the test: `zero`, or what owners have `generated`, but for
    `feddep_joint` (paper, code: `zero`)"""


class JointParameters(FedDEPParameters):
    """Those of FedDEP, with `inference` zero."""

    generator_epochs: Repetitions = 1
    """steps of DGen for each epoch of the classifier"""
    inference: Literal["zero"] = "zero"
    """z̄ of nodes of the global graph in the test"""


class WithoutDGenParameters(FedDEPParameters):
    """Those of FedDEP, with `depth` 0."""

    depth: Literal[0] = 0
    """hops of context: none"""


class WithoutNFDPParameters(FedDEPParameters):
    """Those of FedDEP, with `bernoulli_rate` 1, and the noise of DP-SGD."""

    fused: Literal["paper", "authors"] = "authors"
    """layers of the classifier; gradients of single examples through `chained` cannot be clipped"""
    bernoulli_rate: Annotated[float, Field(ge=1, le=1)] = 1.0
    """probability r that the Bernoulli sampler keeps a generated neighbour"""
    sigma: Weight = 2.0
    """noise multiplier σ of DP-SGD (paper)"""
    clip: Annotated[float, Field(gt=0, le=10**6)] = 2.0
    """norm C that an example's gradient is clipped to"""


PRETRAINING = Step(
    "feddep.pretraining",
    "pretrain",
    "feddep.methods.feddep.pretraining:embed",
    PretrainingParameters,
    setting=("batch_size", "fanout", "hidden_channels", "dropout"),
)
PROTOTYPES = Step(
    "feddep.prototypes",
    "prototypes",
    "feddep.methods.feddep.prototypes:share_prototypes",
    PrototypeParameters,
    needs=("pretrain",),
)


def _generator(name: str, function: str, needs: str) -> Step:
    return Step(
        name,
        "generator",
        f"feddep.methods.feddep.{function}",
        GeneratorParameters,
        setting=("encoder", "layers", "hidden_channels", "dropout"),
        needs=(needs,),
    )


GENERATOR = _generator("feddep.generator", "mending:generate", "prototypes")
GENERATOR_WITHOUT_PROTOTYPES = _generator(
    "feddep.generator_without_prototypes", "without_prototypes:generate", "pretrain"
)
_ALL = (PRETRAINING, PROTOTYPES, GENERATOR)


FUSED_ENCODERS = {
    encoder: f"feddep.methods.feddep.fused:{name}"
    for encoder, name in {
        "sage": "FusedSAGE",
        "sage_selfloop": "FusedGNN",
        "gcn": "FusedGCN",
        "gat": "FusedGAT",
        "mlp": "FusedMLP",
    }.items()
}
"""The setting's encoders that FedDEP can train: for each, its classifier with embeddings z̄."""


def check_layout(layout: str, encoder: str) -> None:
    """Make sure that the classifier's layers, ``fused``, are a layout of the encoder.

    Raises:
        ConfigError: if they are not.
    """
    allowed = {"sage": ("paper", "authors", "chained"), "sage_selfloop": ("paper", "authors")}
    if layout not in allowed.get(encoder, ("authors", "chained")):
        raise ConfigError(
            f"fused is {layout} and the setting's encoder is {encoder}; paper goes with sage or "
            "sage_selfloop, authors with any encoder, chained with any but sage_selfloop"
        )


def _method(
    name: str,
    title: str,
    parameters: type[FedDEPParameters],
    function: str,
    *steps: Step,
    assumes: tuple[str, ...] = ("prototypes shared",),
    encoders: tuple[str, ...] = tuple(FUSED_ENCODERS),
    full_batch: bool = True,
    **more: Any,
) -> Method:
    return Method(
        name,
        title,
        parameters,
        f"feddep.methods.feddep.{function}",
        steps=lambda parameters: steps,
        assumes=assumes,
        encoders=encoders,
        full_batch=full_batch,
        check=lambda parameters, encoder: check_layout(parameters.fused, encoder),
        **more,
    )


GROUP = "Generated neighbours"
METHODS = (
    _method(
        "feddep",
        "FedDEP",
        FedDEPParameters,
        "classifier:run",
        *_ALL,
        search={
            "prototypes": (None, 3, 5, 10, 15, 20),
            "embedding": (64, 128, 256),
            "count_bias": (None, 1.0),
            "generator_epochs": integers(1, 50, log=True),
            "generator_optimizer": ("sgd", "adam"),
            "generator_learning_rate": By(
                "generator_optimizer", {"sgd": log(0.001, 1), "adam": log(0.0003, 0.1)}
            ),
            "cross_weight": log(0.01, 10),
        },
        published=(
            {"scale": "paper"},
            # The code.
            {
                "prototypes": 5,
                "clustering": "dec",
                "hidden_from": "validation",
                "slots": "all",
                "fused": "chained",
            },
        ),
        as_fedavg={"bernoulli_rate": 0.0},
        look=("#D55E00", 0),
    ),
    _method(
        "feddep_joint",
        "FedDEP, joint",
        JointParameters,
        "joint:run",
        PRETRAINING,
        PROTOTYPES,
        full_batch=False,
        look=("#D55E00", 4),
    ),
    _method(
        "feddep_wo_dgen",
        "FedDEP w/o DGen",
        WithoutDGenParameters,
        "classifier:run",
        *_ALL,
        look=("#D55E00", 1),
    ),
    _method(
        "feddep_wo_proto",
        "FedDEP w/o Proto",
        FedDEPParameters,
        "classifier:run",
        *(PRETRAINING, GENERATOR_WITHOUT_PROTOTYPES),
        assumes=("gradients from others' nodes shared",),
        look=("#D55E00", 2),
    ),
    _method(
        "feddep_wo_nfdp",
        "FedDEP w/o NFDP",
        WithoutNFDPParameters,
        "classifier:run_without_nfdp",
        *_ALL,
        encoders=("sage",),
        full_batch=False,
        look=("#D55E00", 3),
    ),
)
