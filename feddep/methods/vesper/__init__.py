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
    """linear maps of the encoder at A, each followed by ReLU; the paper says "an MLP"; ours, the
    better of 1 and 2 for `vertical_mlp` on the validation nodes of Cora"""
    decoder_layers: Maps = 2
    """linear maps of the decoder's MLP at B"""


class MessagePassingParameters(VerticalParameters):
    """Inputs of the layers, and the decoder of B."""

    degree: Positive = 10
    """most neighbours D that a node hears; paper: 20 or 50 on dense graphs, 10 or 20 on its sparse
    one
    """
    bounding: Literal["sampled", "both", "receiver", "none"] = "sampled"
    """`sampled`: where a node has more than D neighbours, D are drawn in each step (Algorithm 1);
    `both`, `receiver`: degrees are bounded once, before training (ours: docs/results/vesper.md);
    `none`: every neighbour is heard"""
    decoder: Literal["concat", "gru"] = "concat"
    """`concat`: the embeddings of all layers side by side, then an MLP; `gru`: a GRU reads them in
    turn, then the same (Section 2.5)"""
    encodings: bool = False
    """whether the encodings, which hold no edges and need no noise, are sent before the embeddings
    of the layers, as the authors of GAP do; in the paper they are not"""


class PerturbedParameters(MessagePassingParameters):
    """Noise, and what it has to cover."""

    theta: Weight = 0.1
    """standard deviation θ of the Gaussian noise on each number, when rows have length 1; 0 for
    none
    """
    epsilon: StepSize | None = None
    """privacy budget ε of an edge: θ is the least noise that keeps it, in place of `theta`; null:
    `theta`; paper: 1 to 32
    """
    delta: OpenShare | None = None
    """δ of the budget, below 1/|E|; has to be given with `epsilon`: computed from the number of
    edges, as 1/|E| in the paper, it would tell that number, which is private (ours); null: goes
    with `theta` alone, tables then have ε at 1/n² for n nodes"""
    accountant: Literal["paper", "paper_fixed", "rdp", "no_amplification", "certified"] = (
        "certified"
    )
    """who counts (docs/results/vesper.md): `paper_fixed` and `rdp` as the paper does; only
    `certified` is a guarantee
    """
    release: Literal["per_step", "one_shot"] = "per_step"
    """`per_step`: A computes embeddings anew, with new noise, for each batch and each evaluation
    (Algorithm 3); `one_shot`: for all nodes at the beginning, as the authors of GAP do; `weights`
    are then `frozen`, or with one layer `detached`, and learn from the noised sums that were
    released (ours)"""
    encoder_epochs: Repetitions | None = None
    """epochs in which the encoder is first trained without the graph, by SplitNN with an MLP at B:
    GAP's first stage; null: as many as `rounds` where later no gradient reaches it, else 0"""

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
    """a linear map for each hop, all side by side scaled to length 1, batch normalisation, SELU,
    another linear map
    """
    decoder: Literal["concat"] = "concat"
    """likewise"""
    bounding: Literal["none"] = "none"
    """every neighbour is heard"""
    encodings: Literal[True] = True
    """encodings are sent before the sums"""
    release: Literal["one_shot"] = "one_shot"
    """sums are released once"""
    encoder_epochs: Repetitions = 100
    """epochs in which the encoder is trained first, with batch normalisation, SELU and a linear map
    at B
    """


class WeightParameters(PerturbedParameters):
    """How A's weights are kept from telling edges."""

    weights: Literal["trained", "detached", "frozen", "dpsgd"] = "trained"
    """`trained`: by gradients that pass the edges without noise (Algorithm 3); `detached`: noise
    comes before a layer's weights, and no gradient passes the sum over neighbours; `frozen`:
    encoder and layers are not trained with the graph; `dpsgd`: by the gradient of the step, clipped
    and noised"""
    clip: StepSize = 1.0
    """clipping norm of A's gradient of a step, for `dpsgd`"""
    gradient_ratio: StepSize = 1.0
    """standard deviation of the noise on A's gradient over `clip` and θ, for `dpsgd`"""

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
    """as for `vesper_gin`; there is no noise between layers that could come before weights"""
    aggregation: Literal["gin", "gcn"] = "gin"
    """the sum over neighbours, or GCN's weights; the paper does not say"""


class TruncatedParameters(WeightParameters):
    """Truncated message passing (Algorithm 2)."""

    min_degree: Natural = 3
    """D_min: nodes that hear fewer neighbours hear none; paper: 10 to 40 on dense graphs, 3 or 5 on
    its sparse one
    """
    degree_ratio: Weight = 0.0
    """standard deviation of noise on the degrees over θ, drawn once; weights are then
    1/√(max(degree, D_min) + 1) of noised degrees, which also decide who hears (ours:
    docs/results/vesper.md); 0: the degrees as they are, as in the paper"""

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
