"""The edge-level guarantees that are claimed for what leaves clients, in a few words."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from feddep.privacy.accountant import Guarantee
from feddep.training.task import Task
from studies.privacy.client_privacy.measure import client_guarantees
from studies.privacy.privacy_audit.membership import CONTROL

CLAIMS: Mapping[tuple[str, str], str] = {
    ("fedgsl", "noised embeddings of all nodes"): (
        "none stated: noise as long as the embedding, which is from full neighbour lists"
    ),
    (
        "fedsage_plus",
        "gradients returned to other clients",
    ): "edges: all, (0, 0), as they are not read; features: none",
    (
        "feddep",
        "prototypes, encoder known",
    ): "by FedDEP that of sampling; but embeddings are computed from full neighbour lists",
    (
        "feddep_wo_nfdp",
        "prototypes, encoder known",
    ): "none: noise is on the classifier, embeddings from full neighbour lists",
    ("local", "nothing"): "all, (0, 0)",
    ("fedavg", CONTROL): "a control: of the true edges these updates can tell nothing",
}
"""By method and what leaves; everything else but model updates has :data:`NO_CLAIM`."""

NO_CLAIM = "none: computed from full neighbour lists"


def claimed(task: Task, method: str, parameters: Any, leaves: str) -> str:
    """What is claimed for the training of the classifier over all rounds, or for what else leaves.

    Guarantees of neighbour sampling are exact and hold whatever ε.  That of DP-SGD is the
    accountant's, for the training from given inputs, per instance (docs/results/privacy.md).
    """
    if leaves != "model updates":
        return CLAIMS.get((method, leaves), NO_CLAIM)
    noises = {method: parameters.sigma} if hasattr(parameters, "sigma") else {}
    lines = list(client_guarantees(task, noises))
    if noises:
        of_edges = [line for line in lines if (line.method, line.hidden) == (method, "edge")]
        least: dict[int | None, float] = {}
        for line in of_edges:
            least[line.client] = min(
                least.get(line.client, math.inf), line.all.epsilon if line.all else math.inf
            )
        delta = of_edges[0].all.delta if of_edges[0].all else math.nan
        epsilon = f"ε = {_range(least.values())} for an edge, δ = {delta:.0e}"
        return f"none as a method; training alone, σ = {noises[method]:g}: {epsilon}, per instance"
    median = [
        line
        for line in lines
        if (line.mechanism, line.hidden, line.accounting) == ("sampling", "median node", "exact")
    ]
    once, ever = (
        _deltas(each) for each in ([line.one for line in median], [line.all for line in median])
    )
    return f"sampling: δ = {once} once, {ever} in {median[0].times} times, whatever ε"


def _deltas(guarantees: list[Guarantee | None]) -> str:
    rest = [each.log_rest for each in guarantees if each is not None]
    low, high = (-math.expm1(value) for value in (max(rest), min(rest)))
    if low < 0.9999:
        return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} – {high:.2f}"
    exponent = max(rest) / math.log(10)
    return f"1 − 10^{exponent:.0f} or more" if math.isfinite(exponent) else "1"


def _range(values: Collection[float]) -> str:
    low, high = (
        "∞" if math.isinf(value) else f"{value:.{0 if value >= 100 else 1}f}"
        for value in (min(values), max(values))
    )
    return low if low == high else f"{low} – {high}"
