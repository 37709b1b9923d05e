"""The guarantees of all clients of the benchmark: a table, and a page of what is worst over the clients."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from feddep.privacy.accountant import Guarantee
from feddep.privacy.formatting import format_delta
from feddep.reporting import markdown as md
from feddep.reporting.client_guarantees import DELTA, ClientGuarantee, weakness
from feddep.training.config import TrainingConfig

_HEAD = f"""\
# What neighbour sampling and DP-SGD guarantee

For every dataset and number of clients, the partition and split of seed {{seed}}; what is worst over the clients. Each client by
itself is in `table.csv`. docs/privacy.md says what the numbers mean, and what they leave out.

- *Vacuous* are a δ near 1, whatever the ε, and an ε far above 10: what is sent may then be e^ε times as likely with an edge as
  without.
- Neighbour sampling promises something to who does *not* see the drawn neighbours; δ is the chance that they show an edge. DP-SGD
  promises something about all weights that a client sends, whoever sees them, if its inputs do not depend on the same edges.
- The slack δ' of the composition theorem, and δ of DP-SGD, are {DELTA:g}: below one over the number of edges of any client that
  has fewer than {1 / DELTA:,.0f}.
"""
_SAMPLING = """\
- *worst node*, *median node*: of all clients' the one for which the exact δ is largest.
- *theorem*: FedDEP's, for one sampling, at the least degree of the client's nodes, for which it is stated, or, for comparison, at
  that of its median node. It has no ε for a node without neighbours. It is wrong where δ is below the exact one, as it is for
  lists of d and d + 1 neighbours, and at any smaller least degree whose δ is below theirs.
- *all*: after L hops times N epochs of the classifier's training, composed as in the theorem that is cited. What FedDEP trains
  before, its local GNNs, reads the same lists as often again.
- *exact*: the least δ there is, for every ε from 0: see docs/privacy.md.
"""
_NOISE = """\
- *example*: a training node with its sampled tree is there or not, the usual notion of DP-SGD, which says nothing of edges.
  *edge*: an edge of the client's graph is there or not; up to k training nodes read it. The bound by trees counts each as often
  as the edge can change its tree; *simple*, for comparison, whenever it is sampled.
- The ε of edges are *per instance*: k and the chances of a change are read off the private graph. They are no guarantee, and are
  private themselves. One for every graph takes a public bound on degrees: `feddep privacy dpsgd --degree`, for nodes, too.
- They are of the noised training alone. *as a method*: FedDEP w/o NFDP trains on embeddings, and FedGNN shares some, that are
  computed from the same edges without noise, so that no finite ε holds for an edge.
- The clipping norm was chosen by accuracy on the clients' private validation nodes, which no ε here accounts for.
- *one*: a single step, which is how FedDEP quotes the ε of a single sampling beside σ; *all*: the T steps of the training.
- RDP and PLD are two accountings of the same noise. Both bound ε from above.
- What a client shares besides the weights it trains with noise, such as prototypes, embeddings or validation counts, is not
  covered by any of the other columns.
"""


@dataclass(frozen=True)
class Case:
    """A dataset, divided, under one setting.

    Attributes:
        name: the setting's name in the configuration.
        dataset: its name in the configuration.
        clients: number of clients M.
        setting: how classifiers are trained.
        guarantees: those of all clients.
    """

    name: str
    dataset: str
    clients: int
    setting: TrainingConfig
    guarantees: Sequence[ClientGuarantee]


def frame(cases: Iterable[Case], seed: int) -> pd.DataFrame:
    """One row a guarantee.

    Returns:
        setting, dataset, clients, seed, and the fields of :class:`ClientGuarantee`; a guarantee is
        epsilon, delta and log10_rest (the logarithm of 1 − δ, which still tells how far δ is from 1), with ``_one`` of a single
        sampling or step.  Empty where there is no ε.
    """
    rows = []
    for case in cases:
        where = {"setting": case.name, "dataset": case.dataset, "clients": case.clients, "seed": seed}
        for found in case.guarantees:
            facts = {name: value for name, value in vars(found).items() if name not in ("one", "all")}
            rows.append({**where, **facts, **_columns(found.one, "_one"), **_columns(found.all, "")})
    return pd.DataFrame(rows).astype(dict.fromkeys(["client", "degree", "roots", "times"], "Int64"))


def _columns(guarantee: Guarantee | None, suffix: str) -> dict[str, float]:
    found = (math.nan,) * 3 if guarantee is None else (guarantee.epsilon, guarantee.delta, guarantee.log_rest / math.log(10))
    return {f"{name}{suffix}": value for name, value in zip(("epsilon", "delta", "log10_rest"), found, strict=True)}


def markdown(cases: Sequence[Case], seed: int) -> str:
    """The worst over the clients: of sampling, and of DP-SGD where a method trains by it."""
    parts = [_HEAD.format(seed=seed)]
    for name in dict.fromkeys(case.name for case in cases):
        here = [case for case in cases if case.name == name]
        setting = here[0].setting
        epochs = setting.rounds * setting.local_epochs
        heading = f"setting {name}: d = {setting.fanout}, L = {setting.layers}, N = {epochs}, B = {setting.batch_size}"
        for title, notes, found in (("Neighbour sampling", _SAMPLING, _sampling(here)), ("DP-SGD", _NOISE, _noise(here))):
            parts += [f"## {title}, {heading}\n", notes, md.shown(pd.DataFrame(found), found[0], [])] if found else []
    return "\n".join(parts)


def _sampling(cases: Sequence[Case]) -> list[dict[str, Any]]:
    rows = []
    for case in cases:
        for node in ("worst node", "median node"):
            published, exact = (_select(case.guarantees, node, accounting) for accounting in ("published", "exact"))
            theirs, ours = max(zip(published, exact, strict=True), key=lambda pair: (weakness(pair[1]), weakness(pair[0])))
            row = {"dataset": case.dataset, "clients": case.clients, "node": node, "D": theirs.degree}
            row |= {"theorem: ε": _epsilon(theirs.one), "theorem: δ": _delta(theirs.one)}
            row |= {"theorem, all: ε": _epsilon(theirs.all), "theorem, all: δ": _delta(theirs.all)}
            rows.append(row | {"exact: δ": _delta(ours.one), "exact, all: δ": _delta(ours.all)})
    return rows


def _epsilon(guarantee: Guarantee | None) -> str:
    return "none" if guarantee is None else md.number(guarantee.epsilon)


def _delta(guarantee: Guarantee | None) -> str:
    return "none" if guarantee is None else format_delta(guarantee)


def _noise(cases: Sequence[Case]) -> list[dict[str, Any]]:
    of_level = [(times, by) for times in ("one", "all") for by in ("rdp", "pld")]
    levels = [(*level, *each) for level in (("example", ""), ("edge", "trees")) for each in of_level]
    rows = []
    for case in cases:
        noisy = [found for found in case.guarantees if found.mechanism == "dpsgd"]
        for method in dict.fromkeys(found.method for found in noisy):
            own = [found for found in noisy if found.method == method]
            row = {"dataset": case.dataset, "clients": case.clients, "method": method, "σ": own[0].sigma}
            row |= {"q": _span(found.rate for found in own), "T": _span(found.times for found in own)}
            row["k"] = _span(found.roots for found in own)
            for level, bound, times, by in [*levels, ("edge", "simple", "all", "pld")]:
                found = [getattr(each, times) for each in _select(own, level, by, bound)]
                most = max(each.epsilon for each in found if each is not None)
                row[f"{level}{', simple' if bound == 'simple' else ''}, {times}: {by.upper()}"] = most
            rows.append(row | {"edge, as a method": math.inf})  # inputs and messages depend on edges without noise
    return rows


def _select(guarantees: Iterable[ClientGuarantee], hidden: str, accounting: str, bound: str = "") -> list[ClientGuarantee]:
    return [each for each in guarantees if (each.hidden, each.accounting, each.bound) == (hidden, accounting, bound)]


def _span(values: Iterable[float | None]) -> str:
    """``20 – 30``, over the clients."""
    known = [value for value in values if value is not None]
    low, high = md.number(min(known)), md.number(max(known))
    return low if low == high else f"{low} – {high}"
