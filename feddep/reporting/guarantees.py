"""The guarantees of all clients of the benchmark, as CSV and as Markdown."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from feddep.privacy import text
from feddep.privacy.accountant import Guarantee
from feddep.privacy.guarantees import DELTA, Line, Training, badness
from feddep.reporting.labels import dataset_title, framework_title
from feddep.reporting.markdown import table

_HEAD = f"""\
# What neighbour sampling and DP-SGD guarantee

For every dataset and number of clients, the partition and split of seed {{seed}}; what is worst over the clients. Each client by
itself is in `privacy.csv`. docs/privacy.md says what the numbers mean, and what they leave out.

- *Vacuous* are a δ near 1, whatever the ε, and an ε far above 10: what is sent may then be e^ε times as likely with an edge as
  without.
- Neighbour sampling promises something to who does *not* see the drawn neighbours; δ is the chance that they show an edge. DP-SGD
  promises something about all weights that a client sends, whoever sees them.
- The slack δ' of the composition theorem, and δ of DP-SGD, are {DELTA:g}: below one over the number of edges of any client that
  has fewer than {1 / DELTA:,.0f}.
"""
_SAMPLING = """\
- *worst node*, *median node*: of all clients' the one for which the exact δ is largest.
- *theorem*: FedDEP's, for one sampling, at the least degree of the client's nodes, for which it is stated, or at that of its
  median node. It has no ε for a node without neighbours.
- *all*: after L hops times N epochs of the classifier's training, composed as in the theorem that is cited. What FedDEP trains
  before, its local GNNs, reads the same lists as often again.
- *exact*: the least δ there is, for every ε from 0: see docs/privacy.md.
"""
_NOISE = """\
- *example*: a training node with its sampled tree is there or not, the usual notion of DP-SGD, which says nothing of edges.
  *edge*: an edge of the client's graph is there or not; up to k training nodes read it. The bound by trees counts each as often
  as the edge can change its tree; *simple*, for comparison, whenever it is sampled.
- *one*: a single step, which is how FedDEP quotes the ε of a single sampling beside σ; *all*: the T steps of the training.
- RDP and PLD are two accountings of the same noise. Both bound ε from above.
- What a client shares besides the weights it trains with noise, such as prototypes, embeddings or validation counts, is not
  covered.
"""

_LEVELS = (("example", ""), ("edge", "trees"))
"""What is hidden, and by which bound, in full."""


@dataclass(frozen=True)
class Place:
    """A dataset, divided, under one setting.

    Attributes:
        setting, dataset: names in the configuration.
        clients: number of clients M.
        training: how classifiers are trained.
        lines: the guarantees of each client.
    """

    setting: str
    dataset: str
    clients: int
    training: Training
    lines: Sequence[Line]


def frame(places: Iterable[Place], seed: int) -> pd.DataFrame:
    """One row a guarantee.

    Returns:
        setting, dataset, clients, seed, and what :class:`feddep.privacy.guarantees.Line` has; a guarantee is
        epsilon, delta and log10_rest (the logarithm of 1 − δ, which still tells how far δ is from 1), with ``_one`` of a single
        sampling or step.  Empty where there is no ε.
    """
    rows = []
    for place in places:
        where = {"setting": place.setting, "dataset": place.dataset, "clients": place.clients, "seed": seed}
        for line in place.lines:
            facts = {name: value for name, value in vars(line).items() if name not in ("one", "all")}
            rows.append({**where, **facts, **_columns(line.one, "_one"), **_columns(line.all, "")})
    columns = ["client", "degree", "roots", "times"]
    return pd.DataFrame(rows).astype(dict.fromkeys(columns, "Int64"))


def _columns(guarantee: Guarantee | None, suffix: str) -> dict[str, float]:
    names = [f"{name}{suffix}" for name in ("epsilon", "delta", "log10_rest")]
    if guarantee is None:
        return dict.fromkeys(names, math.nan)
    return dict(zip(names, (guarantee.epsilon, guarantee.delta, guarantee.log_rest / math.log(10)), strict=True))


def markdown(places: Sequence[Place], seed: int) -> str:
    """What is worst over the clients: of sampling, and of DP-SGD where a framework trains by it."""
    settings = list(dict.fromkeys(place.setting for place in places))
    parts = [_HEAD.format(seed=seed)]
    for setting in settings:
        here = [place for place in places if place.setting == setting]
        training = here[0].training
        terms = f"d = {training.fanout}, L = {training.layers}, N = {training.epochs}, B = {training.batch_size}"
        heading = f"setting {setting}: {terms}"
        parts += [f"## Neighbour sampling, {heading}\n", _SAMPLING, _sampling(here)]
        if any(line.mechanism == "dpsgd" for place in here for line in place.lines):
            parts += [f"## DP-SGD, {heading}\n", _NOISE, _noise(here)]
    return "\n".join(parts)


def _sampling(places: Sequence[Place]) -> str:
    node = ["D", "theorem: ε", "δ", "all: ε", "δ", "exact: δ", "all: δ"]
    header = ["dataset", "M", *(f"worst node: {node[0]}", *node[1:]), *(f"median node: {node[0]}", *node[1:])]
    lines = []
    for place in places:
        cells = [dataset_title(place.dataset), str(place.clients)]
        for hidden in ("worst node", "median node"):
            of_node = [line for line in place.lines if line.hidden == hidden]
            published, exact = ([line for line in of_node if line.accounting == name] for name in ("published", "exact"))
            theirs, ours = max(zip(published, exact, strict=True), key=lambda pair: (badness(pair[1]), badness(pair[0])))
            cells += [str(theirs.degree), *_pair(theirs.one), *_pair(theirs.all), _delta(ours.one), _delta(ours.all)]
        lines.append(cells)
    return table(header, lines)


def _noise(places: Sequence[Place]) -> str:
    columns = [(level, bound, of, by) for level, bound in _LEVELS for of in ("one", "all") for by in ("rdp", "pld")]
    columns.append(("edge", "simple", "all", "pld"))
    of_level = ["one, RDP", "PLD", "all, RDP", "PLD"]
    header = ["dataset", "M", "framework", "σ", "q", "T", "k"]
    header += [f"{level}: {of_level[0]}" if k == 0 else name for level, _ in _LEVELS for k, name in enumerate(of_level)]
    header.append("simple: all, PLD")
    lines = []
    for place in places:
        noisy = [line for line in place.lines if line.mechanism == "dpsgd"]
        for framework in dict.fromkeys(line.framework for line in noisy):
            own = [line for line in noisy if line.framework == framework]
            cells = [dataset_title(place.dataset), str(place.clients), framework_title(framework), f"{own[0].sigma:g}"]
            cells += [_span([line.rate for line in own], ".3g"), _span([line.times for line in own], "d")]
            cells.append(_span([line.roots for line in own], "d"))
            for *kind, of, accounting in columns:
                these = [line for line in own if [line.hidden, line.bound, line.accounting] == [*kind, accounting]]
                cells.append(_largest([getattr(line, of) for line in these]))
            lines.append(cells)
    return table(header, lines)


def _largest(guarantees: Iterable[Guarantee | None]) -> str:
    return text.number(max(guarantee.epsilon for guarantee in guarantees if guarantee is not None))


def _span(values: Iterable[float | None], form: str) -> str:
    """``20 – 30``, over the clients."""
    known = [value for value in values if value is not None]
    low, high = format(min(known), form), format(max(known), form)
    return low if low == high else f"{low} – {high}"


def _pair(guarantee: Guarantee | None) -> list[str]:
    return ["none", "none"] if guarantee is None else [text.number(guarantee.epsilon), text.delta(guarantee)]


def _delta(guarantee: Guarantee | None) -> str:
    return "none" if guarantee is None else text.delta(guarantee)
