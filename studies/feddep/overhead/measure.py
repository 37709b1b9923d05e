"""What training generators of missing neighbours with other clients costs: Table 1 of FedDEP,
measured.

The paper gives an order of growth for "one round of updating a generator for one node" (Section
3.2, "Efficiency Analysis"). Here its letters become numbers, with the constant 1 and 4 bytes a
number, and stand beside what one run spends: operations counted while its generators are trained
(:mod:`studies.feddep.overhead.work`), bytes by the communications of its steps.

A method joins by an entry in :data:`SCHEMES`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from feddep.methods.method import StepResult
from feddep.training.task import Task
from studies.feddep.overhead import work as working
from studies.feddep.overhead.work import Work
from studies.measuring import Case, Tables

BYTES = 4
"""Size of a number that crosses a border, in single precision."""
DIGITS = 10
"""Of the numbers that are kept, which are counts."""


class Terms(NamedTuple):
    """The letters of the formulas, for one client."""

    V: int  # nodes of all clients
    others: int  # |V| − |V_i|, nodes of the other clients
    M: int  # clients
    n: int  # nodes that an update generates neighbours for
    d_x: int  # features
    d_z: int  # coordinates of an embedding, which for FedSage+ is h_v^K
    w: int  # width of fGen's last hidden layer; 0 without one
    θ: int  # weights that are sent along
    C: int  # prototypes; 0 without any
    S: int  # slots of a node
    ñ: float  # neighbours generated for a node, which the nearest are looked up for
    E_g: int  # updates


Value = Callable[[Terms], float]


class Cost(NamedTuple):
    """What Table 1 has in one row and column: a number of operations, or of numbers that cross
    borders.

    Beside the paper's formula stands the leading term of what the implementation does, each with
    its value for one client; ``by_node``: it is the cost of one node, not of a client with all its
    nodes.
    """

    paper: str
    paper_value: Value
    ours: str
    ours_value: Value
    by_node: bool = True


class Scheme(NamedTuple):
    """A row of Table 1.

    Attributes:
        train: trains a run's generators as its step ``generator`` does; returns the work of each
            client.
        operations: of one update.
        epoch, total: numbers that cross borders in an epoch, in which each generator is updated
            once, and in the whole training.
        before: stages before ``generator`` whose messages serve nothing else.
    """

    train: Callable[[Task, Any, Mapping[str, StepResult]], list[Work]]
    operations: Cost
    epoch: Cost
    total: Cost
    before: tuple[str, ...] = ()


def _asked(t: Terms) -> float:
    """A question goes up, and down to M − 1 others; as many answers go up and down again."""
    return (3 * t.M - 2) * t.S * t.d_z


def _generated_anew(t: Terms) -> float:
    """Two for each weight of fGen to generate, two for its gradient, and two to hand the gradient
    on, at M − 1 others.
    """
    return 6 * (t.M - 1) * (t.ñ * t.w * t.d_x + 256 * (t.w + t.d_z))


def _sent_along(t: Terms) -> float:
    """A generator goes up and down to M − 1 others with the embeddings, gradients of fGen as often
    up and once, summed, down.
    """
    return t.M * ((2 * t.θ - t.d_z - 1) / t.n + t.d_z) if t.M > 1 else 0


_PER_EPOCH = "M ((2 |θ| − d_z − 1) / n + d_z)"
SCHEMES = {
    "fedsage_plus": Scheme(
        working.neighgen,
        Cost(
            "|V| ñ d_x",
            lambda t: t.V * t.ñ * t.d_x,
            "6 (M − 1) (ñ w d_x + 256 (w + d_z))",
            _generated_anew,
        ),
        Cost("M |θ| |h_v^K|", lambda t: t.M * t.θ * t.d_z, _PER_EPOCH, _sent_along),
        Cost(
            "E_g M |θ| |h_v^K|",
            lambda t: t.E_g * t.M * t.θ * t.d_z,
            f"E_g {_PER_EPOCH}",
            lambda t: t.E_g * _sent_along(t),
        ),
    ),
    "feddep_wo_proto": Scheme(
        working.dgen_without_prototypes,
        Cost(
            "|V| ñ d_z",
            lambda t: t.V * t.ñ * t.d_z,
            "2 (|V| − |V_i|) ñ d_z",
            lambda t: 2 * t.others * t.ñ * t.d_z,
        ),
        Cost("M ñ d_z", lambda t: t.M * t.ñ * t.d_z, "(3 M − 2) S d_z", _asked),
        Cost(
            "E_g M ñ d_z",
            lambda t: t.E_g * t.M * t.ñ * t.d_z,
            "E_g (3 M − 2) S d_z",
            lambda t: t.E_g * _asked(t),
        ),
    ),
    "feddep": Scheme(
        working.dgen_with_prototypes,
        Cost(
            "M C² d_z",
            lambda t: t.M * t.C**2 * t.d_z,
            "2 (M − 1) C ñ d_z",
            lambda t: 2 * (t.M - 1) * t.C * t.ñ * t.d_z,
        ),
        Cost("0", lambda t: 0, "0", lambda t: 0),
        Cost(
            "M C d_z",
            lambda t: t.M * t.C * t.d_z,
            "M C d_z",
            lambda t: t.M * t.C * t.d_z,
            by_node=False,
        ),
        before=("prototypes",),
    ),
}
"""The rows of the table by method, in the paper's order."""


def measure(case: Case) -> Tables:
    """Train a run's generators once more and count.

    Returns:
        ``overhead``, rows with client: number of the client, or ``all`` for the mean over clients;
        a mean over all clients' nodes where it is of a node; quantity: ``operations``,
        ``bytes_epoch`` or ``bytes_total``, which Table 1 has; ``generated`` and ``all_operations``,
        which are those of :class:`studies.feddep.overhead.work.Work`, the latter in one update; of:
        ``node`` or ``client``: what it is the cost of; measured: the number; paper and paper_value:
        the paper's formula and its value; empty and NaN for a quantity that Table 1 does not have;
        ours and ours_value: the same of the leading term of what the implementation does.
    """
    scheme, results = SCHEMES[case.method.name], case.task.step_results
    work = scheme.train(case.task, case.parameters, results)
    stages = (*scheme.before, "generator")
    sent = {
        stage: sum(entry["bytes"] for entry in results[stage].communication) for stage in stages
    }
    return {"overhead": list(_rows(scheme, _terms(case, work), work, sent))}


def _rows(
    scheme: Scheme, terms: list[Terms], work: Sequence[Work], sent: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    nodes = np.array([each.nodes for each in work])

    def row(
        client: int | None, quantity: str, total: float, cost: Cost | None = None, size: int = 1
    ) -> dict[str, Any]:
        """A total of one client or of all, divided by their nodes or by their number."""
        by_node = cost is None or cost.by_node
        members = slice(None) if client is None else slice(client, client + 1)
        weights = (nodes if by_node else np.ones_like(nodes))[members]
        of: dict[str, Any] = {"client": "all" if client is None else client, "quantity": quantity}
        of |= {"of": "node" if by_node else "client", "measured": float(total / weights.sum())}
        for source in ("paper", "ours"):
            text, value = "", math.nan
            if cost is not None:
                text, formula = getattr(cost, source), getattr(cost, f"{source}_value")
                value = size * float(
                    np.average([formula(each) for each in terms[members]], weights=weights)
                )
            of |= {source: text, f"{source}_value": value}
        return of

    for quantity, totals, cost in (
        ("generated", [each.generated * each.nodes for each in work], None),
        ("operations", [each.operations for each in work], scheme.operations),
        ("all_operations", [each.all_operations / each.updates for each in work], None),
    ):
        for client, total in enumerate(totals):
            yield row(client, quantity, total, cost)
        yield row(None, quantity, sum(totals), cost)
    yield row(None, "bytes_epoch", sent["generator"] / work[0].updates, scheme.epoch, BYTES)
    yield row(None, "bytes_total", sum(sent.values()), scheme.total, BYTES)


def _terms(case: Case, work: Sequence[Work]) -> list[Terms]:
    task, parameters = case.task, case.parameters
    assert task.partition is not None  # or there would have been nobody to train a generator
    sizes = np.bincount(task.partition.client)
    prototypes = getattr(parameters, "prototypes", 0)
    of_all = {
        "V": int(sizes.sum()),
        "M": len(sizes),
        "d_x": task.graph.num_features,
        "d_z": parameters.embedding,
        "w": getattr(parameters, "generator_width", 0),
        "C": task.graph.num_classes if prototypes is None else prototypes,
        "S": parameters.max_generated,
    }
    return [
        Terms(
            others=int(sizes.sum() - size),
            n=each.nodes,
            θ=each.weights,
            ñ=each.generated,
            E_g=each.updates,
            **of_all,
        )
        for size, each in zip(sizes, work, strict=True)
    ]
