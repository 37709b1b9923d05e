"""What training generators of missing neighbours with other clients costs: Table 1 of FedDEP, measured.

The paper gives an order of growth for "one round of updating a generator for one node" (Section 3.2, "Efficiency Analysis").
Here its letters become numbers, with the constant 1 and 4 bytes a number, and stand beside what one run spends: operations
counted while its generators are trained (:mod:`feddep.measurements.instrumentation`), bytes by the communications of its steps.

A method joins by an entry in :data:`SCHEMES` and in :data:`feddep.measurements.COMPARED`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from feddep.config import variants
from feddep.experiment.plan import Run
from feddep.measurements import Tables, instrumentation
from feddep.measurements.instrumentation import Work
from feddep.methods.method import StepResult
from feddep.reporting import markdown as md
from feddep.reporting.labels import dataset_title, method_title
from feddep.training.task import Task
from feddep.utils.csv_files import csv_text
from feddep.utils.errors import ConfigError

BYTES = 4
"""Size of a number that crosses a border, in single precision."""

_COLUMNS = {
    "operations": "operations, of a node in an update",
    "bytes_epoch": "bytes, of a node in an epoch",
    "bytes_total": "bytes in all, of a {of}",
}
"""What Table 1 has; its headings are comp., comm./epoch and total comm."""

_NOTES = f"""\
- *paper*: Table 1's order of growth with the constant 1 and {BYTES} bytes a number. ñ is taken as the number of neighbours of a
  node that the nearest are looked up for; where that is not the number generated, the last table has both.
- *ours*: the leading term of what the implementation does, exact for bytes.
- *measured*, operations: every floating-point operation of the cross-client part of the loss, wherever it is carried out: the
  search for the nearest, the distances to what was found, and their gradient, in what was generated or, where other clients
  compute it, in the weights of the generator. A multiply-add counts as two, an operation on each element as one for each, a sum
  or a search for the least as one for each element that is read.
- *measured*, bytes: by the communication log, which counts a message where it leaves and where it reaches a client, so twice
  through the server. Divided by the nodes that neighbours are generated for, or by the clients.
- What pretraining sends, if the encoder is a common one, and what training the classifier sends is not counted.
"""
_CLIENTS = """\
Operations are those of a node in an update; *of all* is their share in all operations of training the generator and of mending
the subgraph with its result. A generator leaves its widest layers out where it generates nothing, so that share depends on how
much it generates.
"""


@dataclass(frozen=True)
class Terms:
    """The letters of the formulas, for one client.

    Attributes:
        everywhere: |V|, nodes of all clients.
        elsewhere: |V| − |V_i|, nodes of the other clients.
        clients: M.
        nodes: n, nodes that an update generates neighbours for.
        features: d_x.
        embedding: d_z, which for FedSage+ is |h_v^K|.
        width: w, of fGen's last hidden layer; 0 without one.
        weights: |θ|, weights that are sent along, as in :class:`feddep.measurements.instrumentation.Work`.
        prototypes: C; 0 without any.
        neighbours: ñ, taken as the number of neighbours of a node that the nearest are looked up for.
        updates: E_g.
    """

    everywhere: int
    elsewhere: int
    clients: int
    nodes: int
    features: int
    embedding: int
    width: int
    weights: int
    prototypes: int
    neighbours: float
    updates: int


@dataclass(frozen=True)
class Formula:
    """A cost in letters, as it is printed, and its value for one client."""

    text: str
    value: Callable[[Terms], float]


@dataclass(frozen=True)
class Cost:
    """What Table 1 has in one row and column: a number of operations, or of numbers that cross borders.

    Attributes:
        paper: the paper's formula.
        ours: the leading term of what the implementation does.
        by_node: whether it is the cost of one node, or of a client with all its nodes.
    """

    paper: Formula
    ours: Formula
    by_node: bool = True


@dataclass(frozen=True)
class Scheme:
    """A row of Table 1.

    Attributes:
        train: trains the generators of a run as its step ``generator`` does, from the results of the steps before it, and
            returns the work of each client.
        operations: of one update.
        epoch: numbers that cross borders in one epoch, in which each generator is updated once.
        total: numbers that cross borders from the beginning to the end of the training.
        remark: where formula and measured cost differ by more than a constant, in sentences.
        before: stages before ``generator`` whose messages serve nothing else.
    """

    train: Callable[[Task, Any, Mapping[str, StepResult]], list[Work]]
    operations: Cost
    epoch: Cost
    total: Cost
    remark: str
    before: tuple[str, ...] = ()


def _zero(terms: Terms) -> float:
    return 0


def _asked(terms: Terms) -> float:
    """A question goes up, and down to M − 1 others; as many answers go up and down again."""
    return (3 * terms.clients - 2) * terms.neighbours * terms.embedding


def _shared(terms: Terms) -> float:
    return terms.clients * terms.prototypes * terms.embedding


def _generated_anew(terms: Terms) -> float:
    """Two for each weight of fGen to generate, two for its gradient, and two to hand the gradient on, at M − 1 others."""
    layers = terms.neighbours * terms.width * terms.features + 256 * (terms.width + terms.embedding)
    return 6 * (terms.clients - 1) * layers


def _sent_along(terms: Terms) -> float:
    """A generator goes up and down to M − 1 others with the embeddings, gradients of fGen as often up and once, summed, down."""
    m, of_features = terms.clients, terms.weights - terms.embedding - 1
    return m * (terms.weights + of_features) / terms.nodes + m * terms.embedding if m > 1 else 0


SCHEMES = {
    "fedsage_plus": Scheme(
        instrumentation.neighgen,
        operations=Cost(
            Formula("|V| ñ d_x", lambda t: t.everywhere * t.neighbours * t.features),
            Formula("6 (M − 1) (ñ w d_x + 256 (w + d_z))", _generated_anew),
        ),
        epoch=Cost(
            Formula("M |θ| |h_v^K|", lambda t: t.clients * t.weights * t.embedding),
            Formula("M ((2 |θ| − d_z − 1) / n + d_z)", _sent_along),
        ),
        total=Cost(
            Formula("E_g M |θ| |h_v^K|", lambda t: t.updates * t.clients * t.weights * t.embedding),
            Formula("E_g M ((2 |θ| − d_z − 1) / n + d_z)", lambda t: t.updates * _sent_along(t)),
        ),
        remark="a generator is sent once for all n nodes of an update, beside the embedding of each: |θ| and |h_v^K| add up, "
        "while no message holds their product. The computation has a term that the formula leaves out: each of the M − 1 others "
        "generates the neighbours anew and computes the gradient of fGen's weights, w d_x of them for each neighbour, however "
        "small its subgraph is. The search multiplies stored features only, fewer than |V| d_x where features are sparse.",
    ),
    "feddep_wo_proto": Scheme(
        instrumentation.dgen_without_prototypes,
        operations=Cost(
            Formula("|V| ñ d_z", lambda t: t.everywhere * t.neighbours * t.embedding),
            Formula("2 (|V| − |V_i|) ñ d_z", lambda t: 2 * t.elsewhere * t.neighbours * t.embedding),
        ),
        epoch=Cost(
            Formula("M ñ d_z", lambda t: t.clients * t.neighbours * t.embedding),
            Formula("(3 M − 2) ñ d_z", _asked),
        ),
        total=Cost(
            Formula("E_g M ñ d_z", lambda t: t.updates * t.clients * t.neighbours * t.embedding),
            Formula("E_g (3 M − 2) ñ d_z", lambda t: t.updates * _asked(t)),
        ),
        remark="the formulas hold, if ñ is the number S of slots. All slots are looked up for and sent, empty ones as zeros, so "
        "that counts stay at home: what is spent does not fall with the number generated, not even where it is 0. For a "
        "client, one update costs |V̄_i| (|V| − |V_i|) S d_z multiply-adds.",
    ),
    "feddep": Scheme(
        instrumentation.dgen_with_prototypes,
        operations=Cost(
            Formula("M C² d_z", lambda t: t.clients * t.prototypes**2 * t.embedding),
            Formula("2 (M − 1) C ñ d_z", lambda t: 2 * (t.clients - 1) * t.prototypes * t.neighbours * t.embedding),
        ),
        epoch=Cost(Formula("0", _zero), Formula("0", _zero)),
        total=Cost(Formula("M C d_z", _shared), Formula("M C d_z", _shared), by_node=False),
        remark="the computation does not grow with C² but with C ñ, for each generated neighbour is compared with the C "
        "prototypes of each other client; C² is what comparing C prototypes with C others would cost, and no loss of the paper "
        "does that. M C d_z crosses the border of each client; all together send and receive M² C d_z, as all get all.",
        before=("prototypes",),
    ),
}
"""The rows of the table by method, in the paper's order."""


def measure(run: Run, task: Task, parameters: Any, results: Mapping[str, StepResult]) -> Tables:
    """Train a run's generators once more and count.

    Returns:
        ``overhead``, rows with
        client: number of the client, or ``all`` for the mean over clients; a mean over all clients' nodes where it is of a node;
        quantity: ``operations``, ``bytes_epoch`` or ``bytes_total``, which Table 1 has; ``sought``, ``generated`` and
        ``all_operations``, which are those of :class:`feddep.measurements.instrumentation.Work`, the last in one update;
        of: ``node`` or ``client``: what it is the cost of; measured: the number;
        paper and paper_value: the paper's formula and its value; empty and NaN for a quantity that Table 1 does not have;
        ours and ours_value: the same of the leading term of what the implementation does.

    Raises:
        ConfigError: if the method has no entry in the table, or the parameters leave nothing to count.
    """
    method = variants.base(run.method)
    if method not in SCHEMES:
        raise ConfigError(f"the method is {method}; the table has entries for {', '.join(SCHEMES)}")
    scheme = SCHEMES[method]
    return {"overhead": list(_rows(scheme, task, parameters, results, scheme.train(task, parameters, results)))}


def _rows(
    scheme: Scheme, task: Task, parameters: Any, results: Mapping[str, StepResult], work: Sequence[Work]
) -> Iterator[dict[str, Any]]:
    terms = _terms(task, parameters, work)
    nodes = np.array([each.nodes for each in work])

    def row(client: int | None, quantity: str, total: float, cost: Cost | None = None, size: int = 1) -> dict[str, Any]:
        """A total of one client or of all, divided by their nodes or by their number."""
        by_node = cost is None or cost.by_node
        members = slice(None) if client is None else slice(client, client + 1)
        weights = (nodes if by_node else np.ones_like(nodes))[members]

        def value(formula: Formula) -> float:
            return size * float(np.average([formula.value(each) for each in terms[members]], weights=weights))

        known = {} if cost is None else {"paper": cost.paper, "ours": cost.ours}
        formulas: dict[str, Any] = {"paper": "", "paper_value": math.nan, "ours": "", "ours_value": math.nan}
        for source, formula in known.items():
            formulas |= {source: formula.text, f"{source}_value": value(formula)}
        cell = {"client": "all" if client is None else client, "quantity": quantity, "of": "node" if by_node else "client"}
        return {**cell, "measured": float(total / weights.sum()), **formulas}

    for quantity, totals, cost in (
        ("sought", [each.sought * each.nodes for each in work], None),
        ("generated", [each.generated * each.nodes for each in work], None),
        ("operations", [each.operations for each in work], scheme.operations),
        ("all_operations", [each.all_operations / each.updates for each in work], None),
    ):
        for client, total in enumerate(totals):
            yield row(client, quantity, total, cost)
        yield row(None, quantity, sum(totals), cost)

    sent = {stage: sum(entry["bytes"] for entry in results[stage].communication) for stage in (*scheme.before, "generator")}
    yield row(None, "bytes_epoch", sent["generator"] / work[0].updates, scheme.epoch, BYTES)
    yield row(None, "bytes_total", sum(sent.values()), scheme.total, BYTES)


def _terms(task: Task, parameters: Any, work: Sequence[Work]) -> list[Terms]:
    assert task.partition is not None  # or there would have been nobody to train a generator
    sizes = np.bincount(task.partition.client)
    prototypes = getattr(parameters, "prototypes", 0)
    return [
        Terms(
            everywhere=int(sizes.sum()),
            elsewhere=int(sizes.sum() - sizes[i]),
            clients=len(sizes),
            nodes=each.nodes,
            features=task.graph.num_features,
            embedding=parameters.embedding,
            width=getattr(parameters, "generator_width", 0),
            weights=each.weights,
            prototypes=task.graph.num_classes if prototypes is None else prototypes,
            neighbours=each.sought,
            updates=each.updates,
        )
        for i, each in enumerate(work)
    ]


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/overhead.csv, with ten significant digits, and tables/overhead.md."""
    rows = tables["overhead"]
    first = ["dataset", "clients", "setting", "seed", "method"]
    ordered = rows[[*first, *(column for column in rows.columns if column not in first)]]
    return {"tables/overhead.csv": csv_text(ordered, digits=10), "tables/overhead.md": markdown(rows)}


def markdown(rows: pd.DataFrame) -> str:
    """The formulas beside the measured numbers, the measured numbers of each client, and where formulas do not hold."""
    run = rows.iloc[0]
    title = f"{dataset_title(run['dataset'])}, M = {run['clients']}, setting {run['setting']}, seed {run['seed']}"
    present = {variants.base(name) for name in rows["method"]}
    remarks = "".join(f"- {method_title(name)}: {scheme.remark}\n" for name, scheme in SCHEMES.items() if name in present)
    return (
        f"# What training generators of missing neighbours across clients costs\n\n{title}\n\n{_NOTES}\n{_formulas(rows)}\n"
        f"## Where the formulas and the measured costs differ by more than a constant\n\n{remarks}\n## Each client\n\n"
        f"{_CLIENTS}\n{_clients(rows)}"
    )


def _formulas(rows: pd.DataFrame) -> str:
    header = ["", "", "paper", "= P", "ours", "= O", "measured", "measured / P", "measured / O"]
    shown = rows[(rows["client"] == "all") & rows["quantity"].isin(list(_COLUMNS))]
    lines = []
    for line in shown.to_dict("records"):
        measured, paper, ours = line["measured"], line["paper_value"], line["ours_value"]
        formulas = [line["paper"], _number(paper), line["ours"], _number(ours)]
        ratios = [_ratio(measured, paper), _ratio(measured, ours)]
        name = [method_title(line["method"]), _COLUMNS[line["quantity"]].format(of=line["of"])]
        # A bar is the border of a cell in Markdown.
        lines.append([text.replace("|", r"\|") for text in (*name, *formulas, _number(measured), *ratios)])
    return md.table(header, _without_repetition(lines))


def _clients(rows: pd.DataFrame) -> str:
    header = ["", "client", "neighbours looked up for", "of them generated", "operations", "of all"]
    cells = rows.to_dict("records")
    values = {(cell["method"], cell["client"], cell["quantity"]): cell["measured"] for cell in cells}
    lines = []
    for method, client, _ in (key for key in values if key[2] == "operations"):
        sought, generated, operations, everything = (
            values[method, client, quantity] for quantity in ("sought", "generated", "operations", "all_operations")
        )
        numbers = [f"{sought:.2f}", f"{generated:.2f}", _number(operations), f"{operations / everything:.1%}"]
        lines.append([method_title(method), str(client), *numbers])
    return md.table(header, _without_repetition(lines))


def _without_repetition(lines: list[list[str]]) -> list[list[str]]:
    """Without the name of a method where it is that of the line before."""
    before = [None, *(line[0] for line in lines)]
    return [["" if line[0] == last else line[0], *line[1:]] for line, last in zip(lines, before, strict=False)]


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.3g}" if base else ""
