"""Stage ``privacy``: what the sampling of neighbours guarantees, by the paper's theorem and in truth."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feddep.privacy.accountant import VACUOUS, Account, PrivacyError, Terms, account
from feddep.privacy.profile import contradicts, exact
from feddep.privacy.text import aligned, delta, sentences

if TYPE_CHECKING:
    from feddep.privacy.clients import Facts

HELP = "work out the edge-LDP guarantee of neighbour sampling, for a degree or for a graph's clients"

DEGREES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
"""Degrees that the table of a graph shows the share of nodes below of; FedDEP quotes its ε for 3, 10 and 15."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--degree", type=int, metavar="D", help="least number of neighbours of a node")
    parser.add_argument("--fanout", type=int, required=True, metavar="d", help="number of neighbours drawn at a time")
    parser.add_argument("--layers", type=int, default=1, metavar="L", help="number of hops (default: 1)")
    parser.add_argument("--epochs", type=int, default=1, metavar="N", help="number of epochs of training (default: 1)")
    parser.add_argument("--rate", type=float, default=1.0, metavar="r", help="mean of the Bernoulli sampler (default: 1)")
    parser.add_argument("--delta-prime", type=float, default=0.0, metavar="δ'", help="slack of the composition (default: 0)")
    parser.add_argument("--graph", type=Path, metavar="FILE", help="graph to examine")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition of this graph, to examine each client's")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all numbers, JSON")


def main(arguments: argparse.Namespace) -> None:
    """Print every step, and write it if asked to."""
    if arguments.degree is None and arguments.graph is None:
        raise PrivacyError("there is no list of neighbours to examine; give its length with --degree, or a graph with --graph")
    if arguments.partition is not None and arguments.graph is None:
        raise PrivacyError("--partition divides a graph; name the graph with --graph")
    terms = Terms(arguments.fanout, arguments.layers, arguments.epochs, arguments.rate, arguments.delta_prime)
    result: dict[str, object] = {"terms": vars(terms)}
    blocks = []
    if arguments.degree is not None:
        work = account(arguments.degree, terms)
        result["degree"] = {**work.as_dict(), "exact": _exact(work), "remarks": _remarks(work)}
        blocks += [_steps(work), _comparison(work), sentences(_remarks(work))]
    if arguments.graph is not None:
        clients = _examine(arguments.graph, arguments.partition, terms)
        result["clients"] = [client.as_dict() for client in clients]
        blocks += [_clients(clients), _shares(clients), sentences([client.remark() for client in clients])]
    print("\n\n".join(filter(None, blocks)))
    if arguments.output is not None:
        from feddep.storage import write_json

        write_json(arguments.output, result)


def _examine(graph: Path, partition: Path | None, terms: Terms) -> "list[Facts]":
    from feddep.graph import Graph
    from feddep.partition import Partition
    from feddep.privacy.clients import facts

    return facts(Graph.load(graph), None if partition is None else Partition.load(partition), terms)


def _steps(work: Account) -> str:
    terms = work.terms
    title = (
        f"Theorem 3.1 of FedDEP: lists of D = {work.degree} neighbours or more, d = {terms.fanout} drawn, L = {terms.layers}, "
        f"N = {terms.epochs}, r = {terms.rate:g}, δ' = {terms.slack:g}"
    )
    rows = [[step.name, step.symbol, f"{step.value:.6g}".replace("inf", "∞"), step.formula, step.source] for step in work.steps]
    return aligned(title, ["step", "", "value", "formula", "source"], rows, left={0, 1, 3, 4})


def _exact(work: Account) -> list[dict[str, object]]:
    """The exact guarantee for a list that loses and one that gains a neighbour, ready for JSON."""
    terms = work.terms
    return [
        {
            "lengths": [length, length + 1],
            "one": exact(length, terms.fanout).as_dict(),
            "all": exact(length, terms.fanout, terms.samplings).as_dict(),
            "one_with_order": exact(length, terms.fanout, ordered=True).as_dict(),
        }
        for length in (work.degree - 1, work.degree)
    ]


def _comparison(work: Account) -> str:
    terms = work.terms
    title = "The exact δ of these samplings, for every ε ≥ 0 (lists that differ in one neighbour; drawn neighbours are seen)"
    header = ["lists of", "published δ", "exact δ", f"after {terms.samplings}", "exact δ, order seen"]
    rows = [
        [
            f"{length} and {length + 1} neighbours",
            delta(work.one),
            delta(exact(length, terms.fanout)),
            delta(exact(length, terms.fanout, terms.samplings)),
            delta(exact(length, terms.fanout, ordered=True)),
        ]
        for length in (work.degree - 1, work.degree)
    ]
    return aligned(title, header, rows, left={0})


def _remarks(work: Account) -> list[str]:
    terms, texts = work.terms, []
    if work.one.delta == 1:
        texts.append("one neighbour is shown by every sampling: δ is 1, the guarantee is vacuous")
    elif work.composed.delta >= VACUOUS:
        texts.append(f"the composed δ̃ is {delta(work.composed)}: the guarantee is vacuous")
    if terms.rate < 1:
        texts.append(
            "the rate r counts where its sampler picks the neighbours that may be read; FedDEP's picks generated embeddings, "
            "after the lists have been read"
        )
    if contradicts(work.degree, terms.fanout):
        worst = exact(terms.fanout, terms.fanout)
        texts.append(
            f"Lemma B.1 is wrong here: lists of {terms.fanout} and {terms.fanout + 1} neighbours, drawn from with and without "
            f"replacement, differ by δ = {delta(worst)} for every ε"
        )
    return texts


def _clients(clients: "Sequence[Facts]") -> str:
    terms = clients[0].terms
    title = (
        f"Each client's own lists: d = {terms.fanout} drawn, L = {terms.layers}, N = {terms.epochs}, r = {terms.rate:g}, "
        f"δ' = {terms.slack:g}; theorem at the least degree, exact δ at the worst node"
    )
    shown = "nodes", "degree", "least", "isolated", "ε", "δ", "final ε", "final δ", "exact δ", f"after {terms.samplings}"
    header = ["", *shown, "mean", "reads", "most"]
    rows = []
    for client in clients:
        published = ["none"] * 4
        if (work := client.published) is not None:
            published = [f"{work.one.epsilon:.4g}", delta(work.one), f"{work.final.epsilon:.4g}", delta(work.final)]
        rows.append(
            [
                client.name,
                str(client.nodes),
                f"{client.mean_degree:.2f}",
                str(client.least_degree),
                str(client.isolated),
                *published,
                delta(client.one),
                delta(client.all),
                f"{client.mean_delta:.4g}",
                f"{client.samplings.mean():.1f}",
                f"{client.samplings.max():.1f}",
            ]
        )
    notes = (
        "mean: the exact δ of one sampling, in the mean over all neighbours in all lists",
        "reads, most: how often a list is read in an epoch that trains on every node once, in the mean and at most; "
        f"the theorem counts {terms.layers}",
    )
    return "\n".join([aligned(title, header, rows, left={0}), *notes])


def _shares(clients: "Sequence[Facts]") -> str:
    fanout = clients[0].terms.fanout
    header = ["", *map(str, DEGREES), f"{fanout} or {fanout + 1}"]
    rows = []
    for client in clients:
        border = client.share_below(fanout + 2) - client.share_below(fanout)
        rows.append([client.name, *(f"{share:.1%}" for share in [*map(client.share_below, DEGREES), border])])
    table = aligned(
        "Share of the nodes with fewer neighbours than 1, 2, …, and between the two ways of sampling", header, rows, left={0}
    )
    wrong = f"Lemma B.1 is wrong for nodes of {fanout} or {fanout + 1} neighbours; see --degree"
    return f"{table}\n{wrong}" if contradicts(fanout, fanout) else table
