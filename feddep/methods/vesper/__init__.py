"""VESPER: private vertical federated training of a GNN (Wu et al., 2023), and the baselines of its paper.

Party A holds the graph and the features, party B the labels; both know the names of the nodes.  They train by SplitNN
(:mod:`split_training`): in each step A sends embeddings of a batch (:mod:`graph_party`), and B answers with their gradient
(:mod:`label_party`).  The paper's d, L, B and number of epochs are ``hidden_channels``, ``layers``, ``batch_size`` and ``rounds``
of the setting; its ``fanout`` is not read, as D is ``degree``.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from feddep.methods.method import Method
from feddep.utils.parameters import Natural, Parameters, Positive, Repetitions, StepSize, Weight

OpenShare = Annotated[float, Field(gt=0, lt=1)]
Maps = Annotated[int, Field(ge=1, le=16)]


class VerticalParameters(Parameters):
    """The networks at both ends, and the batches."""

    encoder_layers: Maps = 1
    """linear maps of the encoder at A, each followed by ReLU; the paper says "an MLP"; ours, the better of 1 and 2 for
    `vertical_mlp` on the validation nodes of Cora"""
    decoder_layers: Maps = 2
    """linear maps of the decoder's MLP at B"""
    batches: Literal["fresh", "shuffled"] = "fresh"
    """`fresh`: each batch is drawn anew from the training nodes, without replacement (Algorithm 1, line 1, and Theorem 2.1), so
    many as fit in an epoch, rounded up; `shuffled`: the batches of an epoch divide them. Both parties know the batches"""


class MessagePassingParameters(VerticalParameters):
    """What the layers read, and how B reads their outputs."""

    degree: Positive = 10
    """most neighbours D that a node hears; paper: 20 or 50 on dense graphs, 10 or 20 on its sparse one"""
    bounding: Literal["sampled", "both", "receiver", "none"] = "sampled"
    """`sampled`: where a node has more than D neighbours, D are drawn in each step (Algorithm 1); `both`, `receiver`: degrees are
    bounded once, before training (ours: docs/vesper.md); `none`: every neighbour is heard"""
    decoder: Literal["concat", "gru"] = "concat"
    """`concat`: the embeddings of all layers side by side, then an MLP; `gru`: a GRU reads them in turn, then the same (Section
    2.5)"""
    encodings: bool = False
    """whether the encodings, which hold no edges and need no noise, are sent before the embeddings of the layers, as the authors
    of GAP do; in the paper they are not"""


class PerturbedParameters(MessagePassingParameters):
    """Noise, and what it has to cover."""

    theta: Weight = 0.1
    """standard deviation θ of the Gaussian noise on each number, when rows have length 1; 0 for none"""
    epsilon: StepSize | None = None
    """privacy budget ε of an edge: θ is the least noise that keeps it, in place of `theta`; null: `theta`; paper: 1 to 32"""
    delta: OpenShare | None = None
    """δ of the budget, below 1/|E|; null: 1/(|E| + 1); paper: 1/|E|"""
    accountant: Literal["printed", "intended", "library", "holds", "corrected"] = "corrected"
    """who counts (docs/vesper.md): `intended` and `library` as the paper does; only `corrected` is a guarantee"""
    release: Literal["steps", "once"] = "steps"
    """`steps`: A computes embeddings anew, with new noise, for each batch and each evaluation (Algorithm 3); `once`: for all
    nodes at the beginning, as the authors of GAP do, which takes weights that are not trained"""
    encoder_epochs: Repetitions | None = None
    """epochs in which the encoder is first trained without the graph, by SplitNN with an MLP at B: GAP's first stage; null: as
    many as `rounds` where later no gradient reaches it, else 0"""


class GAPParameters(PerturbedParameters):
    """GAP's stages."""


class WeightParameters(PerturbedParameters):
    """How A's weights are kept from telling edges."""

    weights: Literal["trained", "stopped", "frozen", "dpsgd"] = "trained"
    """`trained`: by gradients that pass the edges without noise (Algorithm 3); `stopped`: noise comes before a layer's weights,
    and no gradient passes the sum over neighbours; `frozen`: encoder and layers are not trained with the graph; `dpsgd`: by the
    gradient of the step, clipped and noised"""
    clip: StepSize = 1.0
    """clipping norm of A's gradient of a step, for `dpsgd`"""
    gradient_ratio: StepSize = 1.0
    """standard deviation of the noise on A's gradient over `clip` and θ, for `dpsgd`"""

    @model_validator(mode="after")
    def _check_release(self) -> "WeightParameters":
        if self.release == "once" and self.weights != "frozen":
            raise ValueError(f"release is once, which takes weights: frozen, but weights is {self.weights}")
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
    """D_min: nodes that hear fewer neighbours hear none; paper: 10 to 40 on dense graphs, 3 or 5 on its sparse one"""
    degree_ratio: Weight = 0.0
    """standard deviation of noise on the degrees over θ, drawn once; weights are then 1/√(max(degree, D_min) + 1) of noised
    degrees, which also decide who hears (ours: docs/vesper.md); 0: the degrees as they are, as in the paper"""

    @model_validator(mode="after")
    def _check_degrees(self) -> "TruncatedParameters":
        if self.min_degree > self.degree:
            raise ValueError(f"min_degree is {self.min_degree}; it must be at most degree, which is {self.degree}")
        return self


_RUN = "feddep.methods.vesper.split_training"
_APART = "labels at another party"
_NOISED = (_APART, "noised node embeddings shared")
_EXACT = (_APART, "node embeddings shared")

METHODS = (
    Method("vertical_mlp", "MLP", VerticalParameters, f"{_RUN}:run_mlp", partitioned=False, assumes=_EXACT),
    Method("vertical_gin", "GIN", MessagePassingParameters, f"{_RUN}:run_gin", partitioned=False, assumes=_EXACT),
    Method("vertical_gcn", "GCN", MessagePassingParameters, f"{_RUN}:run_gcn", partitioned=False, assumes=_EXACT),
    Method("vfgnn", "VFGNN", VFGNNParameters, f"{_RUN}:run_vfgnn", partitioned=False, assumes=_NOISED),
    Method("gap", "GAP", GAPParameters, f"{_RUN}:run_gap", partitioned=False, assumes=_NOISED),
    Method("vesper_gin", "VESPER (GIN)", WeightParameters, f"{_RUN}:run_vesper_gin", partitioned=False, assumes=_NOISED),
    Method("vesper_gcn", "VESPER (GCN)", TruncatedParameters, f"{_RUN}:run_vesper_gcn", partitioned=False, assumes=_NOISED),
)
