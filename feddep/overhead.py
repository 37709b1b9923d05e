"""What training generators of missing neighbours with other clients costs: Table 1 of FedDEP, measured.

The paper gives an order of growth for "one round of updating a generator for one node" (Section 3.2, "Efficiency Analysis").
Here its letters become numbers, with the constant 1 and 4 bytes a number, and stand beside what one run spends: operations
counted while its generators are trained (:mod:`feddep.watching`), bytes by the ledgers of its steps.

A framework joins by an entry in :data:`SCHEMES`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feddep.problem import Problem
from feddep.steps import Made
from feddep.watching import Work, dgen, neighgen

BYTES = 4
"""Size of a number that crosses a border, in single precision."""


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
        weights: |θ|, weights that are sent along, as in :class:`feddep.watching.Work`.
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
        framework: name of the framework.
        watch: trains the generators of a run as its step ``generator`` does, from the results of the steps before it, and
            returns the work of each client.
        operations: of one update.
        epoch: numbers that cross borders in one epoch, in which each generator is updated once.
        total: numbers that cross borders from the beginning to the end of the training.
        remark: where formula and measured cost differ by more than a constant, in sentences.
        before: stages before ``generator`` whose messages serve nothing else.
    """

    framework: str
    watch: Callable[[Problem, Any, Mapping[str, Made]], list[Work]]
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


SCHEMES = (
    Scheme(
        "fedsage_plus",
        neighgen.generators,
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
    Scheme(
        "feddep_wo_proto",
        dgen.without_prototypes,
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
    Scheme(
        "feddep",
        dgen.with_prototypes,
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
)
"""The rows of the table, in the paper's order."""


@dataclass(frozen=True)
class Line:
    """A measured number, beside the formulas where there are any.

    Attributes:
        framework: name of the framework, or of a variant.
        client: number of the client, or none for the mean over clients; a mean over all clients' nodes where it is of a node.
        quantity: ``operations``, ``bytes_epoch`` or ``bytes_total``, which Table 1 has; ``sought``, ``generated`` and
            ``all_operations``, which are those of :class:`feddep.watching.Work`, the last in one update.
        of: ``node`` or ``client``: what it is the cost of.
        measured: the number.
        paper: the paper's formula; empty for a quantity that Table 1 does not have.
        paper_value: its value; NaN without one.
        ours: the leading term of what the implementation does.
        ours_value: its value.
    """

    framework: str
    client: int | None
    quantity: str
    of: str
    measured: float
    paper: str = ""
    paper_value: float = math.nan
    ours: str = ""
    ours_value: float = math.nan


def measure(scheme: Scheme, framework: str, problem: Problem, parameters: Any) -> list[Line]:
    """Train a run's generators once more and count.

    Args:
        scheme: the scheme.
        framework: what to call it: the name of the framework, or of a variant.
        problem: the run, with the results of all its steps.
        parameters: the framework's parameters.

    Raises:
        ConfigError: if the parameters leave nothing to count.
    """
    work = scheme.watch(problem, parameters, problem.made)
    terms = _terms(problem, parameters, work)
    nodes = np.array([each.nodes for each in work])
    lines = []

    def add(client: int | None, quantity: str, total: float, cost: Cost | None = None, size: int = 1) -> None:
        """Add a line: a total of one client or of all, divided by their nodes or by their number."""
        by_node = cost is None or cost.by_node
        members = slice(None) if client is None else slice(client, client + 1)
        weights = (nodes if by_node else np.ones_like(nodes))[members]

        def value(formula: Formula) -> float:
            return size * float(np.average([formula.value(each) for each in terms[members]], weights=weights))

        formulas = () if cost is None else (cost.paper.text, value(cost.paper), cost.ours.text, value(cost.ours))
        of = "node" if by_node else "client"
        lines.append(Line(framework, client, quantity, of, float(total / weights.sum()), *formulas))

    for quantity, totals, cost in (
        ("sought", [each.sought * each.nodes for each in work], None),
        ("generated", [each.generated * each.nodes for each in work], None),
        ("operations", [each.operations for each in work], scheme.operations),
        ("all_operations", [each.all_operations / each.updates for each in work], None),
    ):
        for client, total in enumerate(totals):
            add(client, quantity, total, cost)
        add(None, quantity, sum(totals), cost)

    sent = {stage: sum(row["bytes"] for row in problem.made[stage].ledger) for stage in (*scheme.before, "generator")}
    add(None, "bytes_epoch", sent["generator"] / work[0].updates, scheme.epoch, BYTES)
    add(None, "bytes_total", sum(sent.values()), scheme.total, BYTES)
    return lines


def _terms(problem: Problem, parameters: Any, work: Sequence[Work]) -> list[Terms]:
    assert problem.partition is not None  # or there would have been nobody to train a generator
    sizes = np.bincount(problem.partition.client)
    prototypes = getattr(parameters, "prototypes", 0)
    return [
        Terms(
            everywhere=int(sizes.sum()),
            elsewhere=int(sizes.sum() - sizes[i]),
            clients=len(sizes),
            nodes=each.nodes,
            features=problem.graph.num_features,
            embedding=parameters.embedding,
            width=getattr(parameters, "generator_width", 0),
            weights=each.weights,
            prototypes=problem.graph.num_classes if prototypes is None else prototypes,
            neighbours=each.sought,
            updates=each.updates,
        )
        for i, each in enumerate(work)
    ]
