"""VESPER: private vertical federated training of a GNN (Wu et al., 2023), and the baselines of its
paper.

Party A holds the graph and the features, party B the labels; both know the names of the nodes.
They train by SplitNN (:mod:`split_training`): in each step A sends embeddings of a batch
(:mod:`graph_party`), and B answers with their gradient (:mod:`label_party`).  The paper's d, L, B
and number of epochs are ``hidden_channels``, ``layers``, ``batch_size`` and ``rounds`` of the
setting; its ``fanout`` is not read, as D is ``degree``.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from feddep.methods.method import Method
from feddep.utils.parameters import Natural, Parameters, Positive, Repetitions, StepSize, Weight

OpenShare = Annotated[float, Field(gt=0, lt=1)]
Maps = Annotated[int, Field(ge=1, le=16)]


class VerticalParameters(Parameters):
    """The networks at both ends."""

    encoder_layers: Maps = 1
    """linear maps of the encoder at party A, each followed by ReLU"""
    decoder_layers: Maps = 2
    """linear maps of the decoder at party B"""


class MessagePassingParameters(VerticalParameters):
    """Inputs of the layers, and the decoder of B."""

    degree: Positive = 10
    """most neighbours D that a node hears (paper: 10 to 50)"""
    bounding: Literal["sampled", "both", "receiver", "none"] = "sampled"
    """`sampled`: of more than D neighbours, D are drawn in each step; `both`, `receiver`: degrees
    are bounded once; `none`: every neighbour is heard (paper: `sampled`)"""
    decoder: Literal["concat", "gru"] = "concat"
    """`concat`: an MLP of all layers side by side; `gru`: a GRU reads them in turn first (paper)"""
    encodings: bool = False
    """whether encodings, which hold no edges, are sent before the embeddings of layers (paper)"""


class PerturbedParameters(MessagePassingParameters):
    """Noise, and what it has to cover."""

    theta: Weight = 0.1
    """standard deviation θ of the noise on each number of rows of length 1"""
    epsilon: StepSize | None = None
    """budget ε of an edge: replaces `theta` by the least noise that keeps it (paper: 1 to 32)"""
    delta: OpenShare | None = None
    """δ of the budget, below 1/|E|; required with `epsilon`: computed, it would tell the private
    |E|"""
    accountant: Literal["paper", "paper_fixed", "rdp", "no_amplification", "certified"] = (
        "certified"
    )
    """who counts; only `certified` is a [guarantee](../docs/results/vesper.md)"""
    release: Literal["per_step", "one_shot"] = "per_step"
    """`per_step`: embeddings anew, with new noise, for each batch and evaluation; `one_shot`: once,
    with `weights` that are `frozen` or, with one layer, `detached` (paper: `per_step`)"""
    encoder_epochs: Repetitions | None = None
    """epochs in which the encoder is first trained without the graph; `null`: `rounds` if no
    gradient reaches it later, else 0"""

    @model_validator(mode="after")
    def _check_delta(self) -> "PerturbedParameters":
        if self.epsilon is not None and self.delta is None:
            raise ValueError(
                f"delta is null, but epsilon is {self.epsilon:g}, which takes a number below "
                "1/|E|, such as 1e-6"
            )
        return self


class GAPAuthorsParameters(PerturbedParameters):
    """GAP by its authors' code (Sajadmanesh et al., 2023); their hops, width and epochs are the
    setting's.
    """

    encoder_layers: Maps = 2
    """linear maps of the encoder at A, batch normalisation and SELU between them"""
    decoder_layers: Literal[2] = 2
    """a linear map for each hop, side by side, batch normalisation, SELU, a linear map"""
    decoder: Literal["concat"] = "concat"
    """likewise"""
    bounding: Literal["none"] = "none"
    """every neighbour is heard"""
    encodings: Literal[True] = True
    """encodings are sent before the sums"""
    release: Literal["one_shot"] = "one_shot"
    """sums are released once"""
    encoder_epochs: Repetitions = 100
    """epochs in which the encoder is trained first"""


class WeightParameters(PerturbedParameters):
    """How A's weights are kept from telling edges."""

    weights: Literal["trained", "detached", "frozen", "dpsgd"] = "trained"
    """`trained`: by gradients that pass edges without noise. `detached`: noise before a layer's
    weights, no gradient through the sum. `frozen`: nothing is trained with the graph. `dpsgd`: by
    clipped, noised gradients (paper: `trained`)"""
    clip: StepSize = 1.0
    """clipping norm of A's gradient, for `dpsgd`"""
    gradient_ratio: StepSize = 1.0
    """standard deviation of that gradient's noise over `clip` and θ"""

    @model_validator(mode="after")
    def _check_release(self) -> "WeightParameters":
        if self.release == "one_shot" and self.weights not in ("frozen", "detached"):
            raise ValueError(
                "release is one_shot, which takes weights: frozen or detached, but weights is "
                f"{self.weights}"
            )
        return self


class VFGNNParameters(WeightParameters):
    """VFGNN's message passing."""

    weights: Literal["trained", "frozen", "dpsgd"] = "trained"
    """as for `vesper_gin`, without `detached`"""
    aggregation: Literal["gin", "gcn"] = "gin"
    """the sum over neighbours, or GCN's weights"""


class TruncatedParameters(WeightParameters):
    """Truncated message passing (Algorithm 2)."""

    min_degree: Natural = 3
    """D_min: nodes that hear fewer neighbours hear none (paper: 3 to 40)"""
    degree_ratio: Weight = 0.0
    """standard deviation of noise on degrees over θ (paper: 0)"""

    @model_validator(mode="after")
    def _check_degrees(self) -> "TruncatedParameters":
        if self.min_degree > self.degree:
            raise ValueError(
                f"min_degree is {self.min_degree}; it must be at most degree, which is "
                f"{self.degree}"
            )
        return self


def _method(
    name: str, title: str, parameters: type[VerticalParameters], shared: str, **more: Any
) -> Method:
    return Method(
        name,
        title,
        parameters,
        f"feddep.methods.vesper.split_training:run_{name}",
        partitioned=False,
        assumes=("labels at another party", shared),
        **more,
    )


_EXACT, _NOISED = "node embeddings shared", "noised node embeddings shared"

GROUP = "Vertical"
METHODS = (
    _method("vertical_mlp", "MLP", VerticalParameters, _EXACT, look=("#000000", 4)),
    _method("vertical_gin", "GIN", MessagePassingParameters, _EXACT, look=("#777777", 5)),
    _method("vertical_gcn", "GCN", MessagePassingParameters, _EXACT, look=("#777777", 4)),
    _method("vfgnn", "VFGNN", VFGNNParameters, _NOISED, revision=2, look=("#AA4499", 0)),
    _method("gap", "GAP", PerturbedParameters, _NOISED, look=("#56B4E9", 0)),
    _method("gap_authors", "GAP (authors)", GAPAuthorsParameters, _NOISED, look=("#56B4E9", 1)),
    _method("vesper_gin", "VESPER (GIN)", WeightParameters, _NOISED, look=("#0072B2", 0)),
    _method("vesper_gcn", "VESPER (GCN)", TruncatedParameters, _NOISED, look=("#44AA99", 0)),
)
