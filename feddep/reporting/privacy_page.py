"""The guarantees of all clients of the benchmark, as CSV and as Markdown."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from feddep.privacy.accountant import Guarantee
from feddep.privacy.formatting import format_delta, format_number
from feddep.reporting.client_guarantees import DELTA, ClientGuarantee, weakness
from feddep.reporting.labels import dataset_title, method_title
from feddep.reporting.markdown import table
from feddep.training.config import TrainingConfig

_HEAD = f"""\
# What neighbour sampling and DP-SGD guarantee

For every dataset and number of clients, the partition and split of seed {{seed}}; what is worst over the clients. Each client by
itself is in `privacy.csv`. docs/privacy.md says what the numbers mean, and what they leave out.

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
    columns = ["client", "degree", "roots", "times"]
    return pd.DataFrame(rows).astype(dict.fromkeys(columns, "Int64"))


def _columns(guarantee: Guarantee | None, suffix: str) -> dict[str, float]:
    names = [f"{name}{suffix}" for name in ("epsilon", "delta", "log10_rest")]
    if guarantee is None:
        return dict.fromkeys(names, math.nan)
    return dict(zip(names, (guarantee.epsilon, guarantee.delta, guarantee.log_rest / math.log(10)), strict=True))


def markdown(cases: Sequence[Case], seed: int) -> str:
    """The worst over the clients: of sampling, and of DP-SGD where a method trains by it."""
    parts = [_HEAD.format(seed=seed)]
    for name in dict.fromkeys(case.name for case in cases):
        here = [case for case in cases if case.name == name]
        setting = here[0].setting
        epochs = setting.rounds * setting.local_epochs
        heading = f"setting {name}: d = {setting.fanout}, L = {setting.layers}, N = {epochs}, B = {setting.batch_size}"
        parts += [f"## Neighbour sampling, {heading}\n", _SAMPLING, _sampling(here)]
        if any(found.mechanism == "dpsgd" for case in here for found in case.guarantees):
            parts += [f"## DP-SGD, {heading}\n", _NOISE, _noise(here)]
    return "\n".join(parts)


def _sampling(cases: Sequence[Case]) -> str:
    nodes = ("worst node", "median node")
    columns = ["theorem: ε", "δ", "all: ε", "δ", "exact: δ", "all: δ"]
    header = ["dataset", "M", *(column for node in nodes for column in (f"{node}: D", *columns))]
    lines = []
    for case in cases:
        line = [dataset_title(case.dataset), str(case.clients)]
        for node in nodes:
            published, exact = (_select(case.guarantees, node, accounting) for accounting in ("published", "exact"))
            theirs, ours = max(zip(published, exact, strict=True), key=lambda pair: (weakness(pair[1]), weakness(pair[0])))
            line += [str(theirs.degree), *_pair(theirs.one), *_pair(theirs.all), _pair(ours.one)[1], _pair(ours.all)[1]]
        lines.append(line)
    return table(header, lines)


def _noise(cases: Sequence[Case]) -> str:
    of_level = ["one, RDP", "PLD", "all, RDP", "PLD"]
    header = ["dataset", "M", "method", "σ", "q", "T", "k"]
    for level in ("example", "edge"):
        header += [f"{level}: {of_level[0]}", *of_level[1:]]
    header += ["simple: all, PLD", "edge, as a method"]
    levels = (("example", ""), ("edge", "trees"))
    columns = [(*level, times, by) for level in levels for times in ("one", "all") for by in ("rdp", "pld")]
    columns.append(("edge", "simple", "all", "pld"))
    lines = []
    for case in cases:
        noisy = [found for found in case.guarantees if found.mechanism == "dpsgd"]
        for method in dict.fromkeys(found.method for found in noisy):
            own = [found for found in noisy if found.method == method]
            line = [dataset_title(case.dataset), str(case.clients), method_title(method), f"{own[0].sigma:g}"]
            line += [_span([found.rate for found in own], ".3g"), _span([found.times for found in own], "d")]
            line.append(_span([found.roots for found in own], "d"))
            for level, bound, times, accounting in columns:
                line.append(_largest(getattr(found, times) for found in _select(own, level, accounting, bound)))
            lines.append([*line, format_number(math.inf)])  # inputs and messages depend on edges without noise
    return table(header, lines)


def _select(guarantees: Iterable[ClientGuarantee], hidden: str, accounting: str, bound: str = "") -> list[ClientGuarantee]:
    return [each for each in guarantees if (each.hidden, each.accounting, each.bound) == (hidden, accounting, bound)]


def _largest(guarantees: Iterable[Guarantee | None]) -> str:
    return format_number(max(guarantee.epsilon for guarantee in guarantees if guarantee is not None))


def _span(values: Iterable[float | None], form: str) -> str:
    """``20 – 30``, over the clients."""
    known = [value for value in values if value is not None]
    low, high = format(min(known), form), format(max(known), form)
    return low if low == high else f"{low} – {high}"


def _pair(guarantee: Guarantee | None) -> list[str]:
    return ["none", "none"] if guarantee is None else [format_number(guarantee.epsilon), format_delta(guarantee)]
