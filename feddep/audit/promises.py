"""What is promised for each thing that leaves a client: the guarantee above, to hold against the attack below.

A promise about edges, as docs/privacy.md has them: of neighbour sampling the exact one, which needs no ε, and of DP-SGD that of
the accountant for one edge.  Both are of the training of the classifier over all rounds.
"""

import math
from collections.abc import Mapping

from feddep.privacy.accountant import Guarantee
from feddep.privacy.guarantees import Line, Training, measure
from feddep.problem import Problem

UPDATES = "model updates"
NONE = "none: computed from full neighbour lists"
UNREAD = "edges: all, (0, 0), as they are not read; features: none"

PROMISES: Mapping[tuple[str, str], str] = {
    (
        "fedgsl",
        "noised embeddings of all nodes",
    ): "none stated: noise as long as the embedding, which is from full neighbour lists",
    ("fedsage_plus", "gradients returned to other clients"): UNREAD,
    ("feddep", "prototypes, encoder known"): "by FedDEP that of sampling; but embeddings are computed from full neighbour lists",
    ("feddep_wo_nfdp", "prototypes, encoder known"): "none: noise is on the classifier, embeddings from full neighbour lists",
    ("local", "nothing"): "all, (0, 0)",
}
"""For a framework and what leaves; of everything else that is no model update, :data:`NONE`."""


class Promises:
    """The promises of one run's clients."""

    def __init__(self, problem: Problem, noises: Mapping[str, float]) -> None:
        """Account for the training of the classifier.

        Args:
            problem: the run; there is a partition.
            noises: σ of each framework that trains by DP-SGD.
        """
        assert problem.partition is not None
        training = Training.of(vars(problem.setting))
        self._lines = list(measure(problem.graph, problem.partition, problem.split, training, noises))
        self._noises = noises

    def of(self, framework: str, leaves: str) -> str:
        """In a few words."""
        if leaves != UPDATES:
            return PROMISES.get((framework, leaves), NONE)
        return self._noise(framework) if framework in self._noises else self.sampling

    @property
    def sampling(self) -> str:
        """Of neighbour sampling, for the node of median degree of each client."""
        lines = [
            line for line in self._lines if (line.mechanism, line.hidden, line.accounting) == ("sampling", "median node", "exact")
        ]
        once, ever = [line.one for line in lines], [line.all for line in lines]
        return f"sampling: δ = {_deltas(once)} once, {_deltas(ever)} in {lines[0].times} times, whatever ε"

    def _noise(self, framework: str) -> str:
        lines = [line for line in self._lines if (line.framework, line.hidden) == (framework, "edge")]
        by_client: dict[int | None, list[Line]] = {}
        for line in lines:
            by_client.setdefault(line.client, []).append(line)
        least = [min(line.all.epsilon if line.all else math.inf for line in each) for each in by_client.values()]
        delta = lines[0].all.delta if lines[0].all else math.nan
        return f"DP-SGD, σ = {self._noises[framework]:g}: ε = {_range(least)} for an edge, δ = {delta:.0e}"


def _deltas(guarantees: list[Guarantee | None]) -> str:
    rest = [each.log_rest for each in guarantees if each is not None]
    low, high = (-math.expm1(value) for value in (max(rest), min(rest)))
    if low < 0.9999:
        return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} – {high:.2f}"
    exponent = max(rest) / math.log(10)
    return f"1 − 10^{exponent:.0f} or more" if math.isfinite(exponent) else "1"


def _range(values: list[float]) -> str:
    low, high = ("∞" if math.isinf(value) else f"{value:.{0 if value >= 100 else 1}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} – {high}"
