"""Effect of one edge on the releases of VESPER: squared L2 sensitivities, and how many training
nodes read an edge.

Party A sends party B rows of node embeddings with Gaussian noise of deviation θ, in every step
anew.  Neighbouring graphs differ in one edge.  Two accounts of what that changes are kept apart:

* *as published* (:func:`published_sensitivities`, :func:`published_roots`): Propositions 1 to 3 and
  the proof of Theorem 2.1, in which an edge disappears and nothing takes its place;
* *of the corrected mechanism* (:data:`BOUNDINGS`, :func:`layer_squares`, :func:`reading_roots`):
  degrees are bounded once by :func:`feddep.graph.degree_bounding.bounded_adjacency`, where an edge
  may be replaced.

docs/appendix/vesper_proofs.md has the proofs, and where the published account fails.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from feddep.privacy.accountant import PrivacyError, require_count

AGGREGATIONS = ("gin", "gcn", "gap", "vfgnn", "vfgnn_gcn")
"""PMP with the sum (GIN), or with GCN's weights and truncation; GAP's sum without weights; noise
after the last layer (VFGNN) of sums, or of GCN's weights by degrees without noise (``vfgnn_gcn``).
"""

NOISE_LAST = ("vfgnn", "vfgnn_gcn")
"""Those of :data:`AGGREGATIONS` with noise after the last layer alone."""

WEIGHTS = ("frozen", "detached", "dpsgd", "trained")
"""How A's weights depend on edges.

* ``frozen``: not at all, they keep their first values.
* ``detached``: noise comes before the weights, and the gradient stops at each aggregation: they
    learn from noised rows alone.
* ``dpsgd``: by the whole gradient of each step, clipped and noised.
* ``trained``: from gradients that pass the adjacency without noise, as in the paper; noise on the
rows does not make up for it.
"""


@dataclass(frozen=True)
class Change:
    """The most that a bounded graph's sums over neighbours change when the original loses or gains
    one edge.

    Attributes:
        rows: number of rows that change.
        squared: squared norms of the changes of all rows together, for input rows of norm at most
            1.
        nonnegative: the same if no entry of an input row is negative, as after ReLU.
    """

    rows: int
    squared: int
    nonnegative: int


BOUNDINGS = {"none": Change(2, 2, 2), "receiver": Change(2, 8, 4), "both": Change(4, 12, 8)}
"""The worst change for each way to bound degrees.

``none`` leaves the graph as it is.  ``receiver`` and ``both`` are those of
:data:`feddep.graph.degree_bounding.KEEPING`: an end that loses a neighbour may take up another, and
with ``both`` that one hears the end, too.
"""


@dataclass(frozen=True)
class Correction:
    """Additions of the corrected mechanism to the paper's; the published accountants do not look at
    it.

    Attributes:
        bounding: a key of :data:`BOUNDINGS`.
        weights: one of :data:`WEIGHTS`.
        one_shot: each layer is released once for all nodes and used in every step, as GAP does;
            otherwise anew in every step, for the blocks of its batch.  Then what comes before a
            layer's noise must not change either: weights are ``frozen``, or ``detached`` ones after
            the noise of the last layer; with one layer, these are all.
        evaluations: number of times that each layer is released for all nodes besides, to validate,
            test or predict.
        nonnegative: whether the encodings, the inputs of the first layer, have no negative entry.
        gradient_ratio: for ``dpsgd``, the deviation of the noise on A's gradient over θ, for
            clipping norm 1.
        degree_ratio: for ``gcn``, the deviation of the noise on the degrees, which are released
            once, over θ.

    Raises:
        PrivacyError: if a value is outside its range.
    """

    bounding: str = "both"
    weights: str = "detached"
    one_shot: bool = False
    evaluations: int = 0
    nonnegative: bool = False
    gradient_ratio: float = 1.0
    degree_ratio: float = 1.0

    def __post_init__(self) -> None:
        """Validate the values."""
        _require_name("bounding", self.bounding, BOUNDINGS)
        _require_name("weights", self.weights, WEIGHTS)
        if self.evaluations != 0:
            require_count("number of evaluations", self.evaluations)
        _require_positive("gradient_ratio", self.gradient_ratio)
        _require_positive("degree_ratio", self.degree_ratio)
        if self.one_shot and self.weights == "dpsgd":
            raise PrivacyError(
                "weights are 'dpsgd', which takes a release in every step; one_shot goes with "
                "frozen or detached"
            )


@dataclass(frozen=True)
class VerticalTraining:
    """The public facts of a training of VESPER or of a baseline.

    Attributes:
        nodes: number of training nodes N_T.
        batch: number of roots B in a batch, drawn afresh in every step, uniformly and without
            replacement.
        steps: number of steps T.
        layers: number of message passing layers L.
        degree: largest degree D.
        aggregation: one of :data:`AGGREGATIONS`.
        least_degree: D_min of truncated message passing, for ``gcn``.
        correction: what the corrected mechanism adds.

    Raises:
        PrivacyError: if a value is outside its range.
    """

    nodes: int
    batch: int
    steps: int
    layers: int
    degree: int
    aggregation: str = "gin"
    least_degree: int | None = None
    correction: Correction = field(default_factory=Correction)

    def __post_init__(self) -> None:
        """Validate the values."""
        require_count("number of training nodes N_T", self.nodes)
        require_count("batch size B", self.batch)
        require_count("number of steps T", self.steps)
        require_count("largest degree D", self.degree)
        require_count("number of layers L", self.layers)
        if self.batch > self.nodes:
            raise PrivacyError(
                f"the batch size B is {self.batch}; there are only N_T = {self.nodes} training "
                "nodes"
            )
        _require_name("aggregation", self.aggregation, AGGREGATIONS)
        if (self.least_degree is None) == (self.aggregation == "gcn"):
            raise PrivacyError(
                f"the minimum degree D_min is {self.least_degree}; it goes with gcn, and gcn "
                "needs it"
            )
        if self.least_degree is not None and not 2 <= self.least_degree <= self.degree:
            allowed = f"from 2, where Proposition 2 starts, to D = {self.degree}"
            raise PrivacyError(
                f"the minimum degree D_min is {self.least_degree}; it must be {allowed}"
            )
        if self.aggregation in NOISE_LAST and self.correction.weights == "detached":
            found = (
                f"weights are 'detached', but {self.aggregation} has no noise between its layers"
            )
            raise PrivacyError(f"{found}; they must be frozen or dpsgd")


def published_roots(degree: int, layers: int) -> int:
    """N_e = 2 (D^L − 1)/(D − 1) = 2 (1 + D + … + D^(L−1)): how many training nodes may read an edge
    (proof of Theorem 2.1).
    """
    return 2 * geometric_sum(degree, layers)


def published_sensitivities(training: VerticalTraining) -> tuple[float, ...]:
    """S_l of each release of a step, as published, for weights W of spectral norm 1.

    * GIN: √2 ‖W‖ (Proposition 1); GAP: √2, as GIN without weights (Appendix C.3).
    * GCN: η(D_min) ‖W‖ (Proposition 2).
    * VFGNN: one release, S² = 8 (1 + D + … + D^(L−1)) for rows of norm 1 (Proposition 3), which is
      the sum's; the paper does not say that GCN's weights change more rows.
    """
    if training.aggregation in NOISE_LAST:
        return (math.sqrt(8 * geometric_sum(training.degree, training.layers)),)
    return (
        math.sqrt(2) if training.least_degree is None else eta(training.least_degree),
    ) * training.layers


def eta(least_degree: int) -> float:
    """η(D_min) for weights of norm 1 (Proposition 2, equation 8)."""
    m = least_degree
    return math.sqrt(2) * ((1 - 1 / m) / (2 * m) + 1 / (m * (m + 1)) + 1 / (m + 1))


def layer_squares(training: VerticalTraining) -> tuple[float, ...]:
    """Squared sensitivity of each layer's release for all nodes in the corrected mechanism; not for
    VFGNN.

    Weights have norm 1.  GCN's are c_u c_v ≤ 1/(D_min + 1), as c = 1/√(max(noised degree, D_min) +
    1) is computed from degrees that were released with noise.
    """
    change = BOUNDINGS[training.correction.bounding]
    nonnegative = [
        training.correction.nonnegative,
        *[training.aggregation != "gap"] * (training.layers - 1),
    ]
    weight = 1.0 if training.least_degree is None else 1 / (training.least_degree + 1)
    return tuple(
        weight**2 * (change.nonnegative if each else change.squared) for each in nonnegative
    )


def changed_outputs(training: VerticalTraining, hops: int | None = None) -> int | None:
    """The most nodes within so many hops, by default L − 1, of any row whose sum changes; None if
    there may be any number.

    Shortest ways there use no changed edge, so that those rows have room for D − 1 neighbours, as
    have all others beside the one that they are reached from.

    With ``vfgnn_gcn`` the sum of a node changes as well if the degree of a neighbour does.  An end
    that takes up another neighbour keeps its degree, and that of the other grows; an end that takes
    up none has a degree less.  So for each end there is one node whose degree changes, for which
    nodes within one hop more count, and beside it the end itself, as for ``vfgnn``. Where not both
    ends have to keep an edge, any number of nodes may hear one whose degree changes.
    """
    hops = training.layers - 1 if hops is None else hops
    change = BOUNDINGS[training.correction.bounding]
    by_degree = training.aggregation == "vfgnn_gcn"
    if (hops > 0 or by_degree) and training.correction.bounding != "both":
        return None
    nodes = geometric_sum(training.degree - 1, hops + 1)
    return (
        change.rows // 2 * (nodes + geometric_sum(training.degree - 1, hops + 2))
        if by_degree
        else change.rows * nodes
    )


def reading_roots(training: VerticalTraining, layer: int) -> int:
    """The most training nodes whose blocks read one given row that changes in ``layer``, from 1 to
    L; for 0, any changed row.

    These are within L − layer hops of the row.  Where the bounded graphs with and without the edge
    are laid over each other, no node has more than D + 1 neighbours.
    """
    hops = training.layers - max(layer, 1)
    reached = changed_outputs(training, hops)
    if reached is None:
        return training.nodes
    one = 1 + (training.degree + 1) * geometric_sum(training.degree, hops) if layer else reached
    return min(training.nodes, one, reached)


def geometric_sum(ratio: int, terms: int) -> int:
    """1 + ratio + … + ratio^(terms − 1)."""
    return sum(ratio**power for power in range(terms))


def _require_name(key: str, name: str, allowed: Iterable[str]) -> None:
    if name not in allowed:
        raise PrivacyError(f"{key} is {name!r}; it must be one of {', '.join(allowed)}")


def _require_positive(key: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise PrivacyError(f"the {key} is {value}; it must be a finite number above 0")
