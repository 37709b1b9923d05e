"""Stage ``privacy``: what the sampling of neighbours guarantees, by the paper's theorem and exactly."""

import argparse
from typing import TYPE_CHECKING

from feddep.privacy.accountant import VACUOUS_DELTA, PublishedGuarantee, SamplingParameters, amplify, published_guarantee
from feddep.privacy.formatting import aligned_table, format_delta, sentences
from feddep.privacy.profile import at_border, exact_guarantee, lemma_b1_fails, one_sided_losses, selected_delta
from feddep.stages.privacy_flags import NAME_THE_GRAPH, add_graph_arguments, given, load_graph, refuse, write

if TYPE_CHECKING:
    from feddep.privacy.sampling_guarantees import SamplingGuarantee

COMMAND = "privacy"
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
    add_graph_arguments(parser)


def main(arguments: argparse.Namespace) -> None:
    """Print every step, and write it if asked to."""
    has = given(arguments)
    refuse(
        (
            (
                not (has.degree or has.graph),
                "there is no list of neighbours to examine; give its length with --degree, or a graph with --graph",
            ),
            (has.partition and not has.graph, f"--partition divides a graph; {NAME_THE_GRAPH}"),
        )
    )
    parameters = SamplingParameters(arguments.fanout, arguments.layers, arguments.epochs, arguments.rate, arguments.delta_prime)
    result: dict[str, object] = {"terms": vars(parameters)}
    blocks = []
    if arguments.degree is not None:
        published = published_guarantee(arguments.degree, parameters)
        remarks = _remarks(published)
        exact, comparison = _comparison(published)
        result["degree"] = {**published.as_dict(), "exact": exact, "remarks": remarks}
        blocks += [_steps(published), comparison, sentences(remarks)]
    if arguments.graph is not None:
        from feddep.privacy.sampling_guarantees import sampling_guarantees

        clients = sampling_guarantees(*load_graph(arguments), parameters)
        result["clients"] = [client.as_dict() for client in clients]
        blocks += [_clients(clients), _shares(clients), sentences([client.remark() for client in clients])]
    write(arguments, blocks, result)


def _parameters_text(parameters: SamplingParameters) -> str:
    return (
        f"d = {parameters.fanout} drawn, L = {parameters.layers}, N = {parameters.epochs}, r = {parameters.rate:g}, "
        f"δ' = {parameters.slack:g}"
    )


def _steps(published: PublishedGuarantee) -> str:
    title = f"Theorem 3.1 of FedDEP: lists of D = {published.degree} neighbours or more, {_parameters_text(published.parameters)}"
    rows = [
        [step.name, step.symbol, f"{step.value:.6g}".replace("inf", "∞"), step.formula, step.source] for step in published.steps
    ]
    return aligned_table(title, ["step", "", "value", "formula", "source"], rows, left={0, 1, 3, 4})


def _comparison(published: PublishedGuarantee) -> tuple[list[dict[str, object]], str]:
    """The exact guarantee for a list that loses and one that gains a neighbour, ready for JSON and as a table.

    And for lists of d and d + 1 neighbours, which a graph of a least degree up to d may have.
    """
    fanout, samplings, degree = published.parameters.fanout, published.parameters.samplings, published.degree
    title = "The exact δ of these samplings, for every ε ≥ 0 (lists that differ in one neighbour; drawn neighbours are seen)"
    header = ["lists of", "published δ", "exact δ", f"after {samplings}", "exact δ, order seen"]
    header += ["if absent: ε", "δ", "if present: ε", "δ"]
    found: list[dict[str, object]] = []
    rows = []
    for length in dict.fromkeys((degree - 1, degree, max(degree, fanout))):
        absent, present = one_sided_losses(length, fanout)
        exact = {
            "one": exact_guarantee(length, fanout),
            "all": exact_guarantee(length, fanout, samplings),
            "one_with_order": exact_guarantee(length, fanout, ordered=True),
        }
        sides = {"absent": absent, "present": present}
        as_dicts = {name: guarantee.as_dict() for name, guarantee in {**exact, **sides}.items()}
        found.append({"lengths": [length, length + 1], **as_dicts})
        cells = [*map(format_delta, [published.one, *exact.values()])]
        for side in sides.values():
            cells += [f"{side.epsilon:.4g}", format_delta(side)]
        rows.append([f"{length} and {length + 1} neighbours", *cells])
    note = (
        "if absent, if present: the least δ on that side alone, of a list without or with the neighbour, and the least ε with it"
    )
    return found, f"{aligned_table(title, header, rows, left={0})}\n{note}"


def _remarks(published: PublishedGuarantee) -> list[str]:
    parameters, remarks = published.parameters, []
    fanout = parameters.fanout
    if published.one.delta == 1:
        remarks.append("one neighbour is shown by every sampling: δ is 1, the guarantee is vacuous")
    elif published.composed.delta >= VACUOUS_DELTA:
        remarks.append(f"the composed δ̃ is {format_delta(published.composed)}: the guarantee is vacuous")
    if parameters.rate < 1:
        remarks.append(
            "the rate r counts where its sampler picks the neighbours that may be read; FedDEP's picks generated embeddings, "
            "after the lists have been read"
        )
        theirs, lengths = amplify(published.one, parameters.rate), (published.degree - 1, published.degree)
        selected = max(selected_delta(length, fanout, parameters.rate, theirs.epsilon) for length in lengths)
        remarks.append(
            "where it does pick them first, fewer are left to draw from: one sampling has "
            f"δ = {selected:.4g} with the amplified ε, and not r δ = {theirs.delta:.4g}"
        )
    if lemma_b1_fails(published.degree, fanout):
        worst = format_delta(exact_guarantee(fanout, fanout))
        when = "" if lemma_b1_fails(published.degree, fanout, both_lists=True) else f", if a node may keep {fanout}"
        remarks.append(
            f"Lemma B.1 is wrong for a least degree of {published.degree}{when}: in such a graph there may be lists of {fanout} "
            f"and {fanout + 1} neighbours, drawn from with and without replacement, which differ by δ = {worst} for every ε"
        )
    return remarks


def _clients(clients: "list[SamplingGuarantee]") -> str:
    parameters = clients[0].parameters
    title = f"Each client's own lists: {_parameters_text(parameters)}; theorem at the least degree, exact δ at the worst node"
    shown = "nodes", "degree", "least", "isolated", "ε", "δ", "final ε", "final δ", "exact δ", f"after {parameters.samplings}"
    rows = []
    for client in clients:
        cells = [client.name, str(client.nodes), f"{client.mean_degree:.2f}", str(client.least_degree), str(client.isolated)]
        if client.published is None:
            cells += ["none"] * 4
        else:
            for guarantee in (client.published.one, client.published.final):
                cells += [f"{guarantee.epsilon:.4g}", format_delta(guarantee)]
        cells += [format_delta(client.one), format_delta(client.all), f"{client.mean_delta:.4g}"]
        rows.append([*cells, f"{client.samplings.mean():.1f}", f"{client.samplings.max():.1f}"])
    notes = (
        "mean: the exact δ of one sampling, in the mean over all neighbours in all lists",
        "reads, most: how often a list is read in an epoch that trains on every node once, in the mean and at most; "
        f"the theorem counts {parameters.layers}",
    )
    return "\n".join([aligned_table(title, ["", *shown, "mean", "reads", "most"], rows, left={0}), *notes])


def _shares(clients: "list[SamplingGuarantee]") -> str:
    fanout = clients[0].parameters.fanout
    title = "Share of the nodes with fewer neighbours than 1, 2, …, and between the two ways of sampling"
    header = ["", *map(str, DEGREES), f"{fanout} or {fanout + 1}"]
    rows = []
    for client in clients:
        border = client.share_below(fanout + 2) - client.share_below(fanout)
        rows.append([client.name, *(f"{share:.1%}" for share in [*map(client.share_below, DEGREES), border])])
    table = aligned_table(title, header, rows, left={0})
    wrong = f"Lemma B.1 is wrong for nodes of {fanout} or {fanout + 1} neighbours, whatever the least degree; see --degree"
    return f"{table}\n{wrong}" if at_border(fanout, fanout) else table
