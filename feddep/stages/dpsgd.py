"""Stage ``dpsgd``: what DP-SGD guarantees, or how much noise a budget needs."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from feddep.privacy.accountant import PrivacyError
from feddep.privacy.dpsgd_accounting import LEAST_PLD_DELTA, most_roots
from feddep.privacy.noisy_training import Edge, Sampling, Spending, Trained, hidden, spent, trained, within
from feddep.privacy.text import aligned, number, sentences

HELP = "work out what DP-SGD guarantees for examples and edges, or the noise that keeps a budget"

NOTES = (
    "Both columns are upper bounds: by Rényi DP, and by privacy loss distributions (PLD).",
    "one step: before composition, which is how FedDEP quotes the ε of a single sampling beside σ.",
    "The example level says nothing of edges: an edge is in the trees of many training nodes.",
)
SIMPLE = "The simple bound counts each of the k training nodes as changed by an edge whenever it is sampled."
TREES = (
    "k: the most training nodes whose trees may depend on one and the same edge. changed: the most of their trees that one edge "
    "changes in the mean.",
    "edge: the bound by trees, which counts a training node as often as an edge can change its tree.",
    f"simple: for comparison, with the same noise. {SIMPLE}",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    noise = parser.add_mutually_exclusive_group(required=True)
    noise.add_argument("--sigma", type=float, metavar="σ", help="noise multiplier: standard deviation over clipping norm")
    noise.add_argument("--epsilon", type=float, metavar="ε", help="a budget: find the least noise that keeps it")
    parser.add_argument("--delta", type=float, default=1e-5, metavar="δ", help="δ (default: 1e-5)")
    parser.add_argument("--level", choices=["example", "edge", "both"], help="what is hidden (default: both where k is known)")
    parser.add_argument("--rate", type=float, metavar="q", help="probability that a training node is in a batch")
    parser.add_argument("--batch-size", type=int, metavar="B", help="expected number of training nodes in a batch")
    parser.add_argument("--nodes", type=int, metavar="n", help="number of training nodes")
    parser.add_argument("--steps", type=int, metavar="T", help="number of steps")
    parser.add_argument("--rounds", type=int, metavar="R", help="number of rounds; with a batch size, instead of --steps")
    parser.add_argument("--local-epochs", type=int, default=1, metavar="E", help="epochs in a round (default: 1)")
    parser.add_argument("--roots", type=int, metavar="k", help="number of training nodes whose trees may depend on an edge")
    parser.add_argument("--degree", type=int, metavar="D", help="largest degree of the graph, to bound k by")
    parser.add_argument("--layers", type=int, metavar="L", help="number of hops of the trees")
    parser.add_argument("--fanout", type=int, metavar="d", help="number of neighbours drawn at a time; with a graph")
    parser.add_argument("--graph", type=Path, metavar="FILE", help="graph to examine")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition of this graph, to examine each client's")
    parser.add_argument("--split", type=Path, metavar="FILE", help="split of this graph, for its training nodes")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all numbers, JSON")


def main(arguments: argparse.Namespace) -> None:
    """Print ε on both levels, and write it if asked to."""
    if arguments.graph is not None:
        result, text = _of_graph(arguments)
    else:
        result, text = _of_numbers(arguments)
    print(text)
    if arguments.output is not None:
        from feddep.storage import write_json

        write_json(arguments.output, {"delta": arguments.delta, **result})


def _of_numbers(arguments: argparse.Namespace) -> tuple[dict[str, object], str]:
    for flag in ("partition", "split", "fanout"):
        if getattr(arguments, flag) is not None:
            raise PrivacyError(f"--{flag} goes with a graph; name the graph with --graph")
    sampling = Sampling(_rate(arguments), _steps(arguments))
    roots = _roots(arguments)
    edge = None if roots is None else Edge(roots)
    spendings = _account(arguments, sampling, edge)
    title = f"DP-SGD with q = {sampling.rate:g}, T = {sampling.steps}, δ = {arguments.delta:g}: ε of one step and of all steps"
    header = ["what is hidden", "σ", "one step, RDP", "PLD", "all, RDP", "PLD"]
    rows = [[hidden(spending.edge), number(spending.sigma), *_cells(spending)] for spending in spendings]
    remarks = [spending.remark() for spending in spendings]
    notes = [] if edge is None else [SIMPLE + " With a graph, --graph, there is a sharper one."]
    text = "\n\n".join(filter(None, [_with_notes(aligned(title, header, rows, {0}), notes, arguments), sentences(remarks)]))
    return {"sampling": vars(sampling), "levels": [spending.as_dict() for spending in spendings]}, text


def _of_graph(arguments: argparse.Namespace) -> tuple[dict[str, object], str]:
    from feddep.graph import Graph
    from feddep.partition import Partition
    from feddep.splits import Split

    for flag in ("rate", "nodes", "steps", "roots", "degree"):
        if getattr(arguments, flag) is not None:
            raise PrivacyError(f"--{flag} is given, but follows from the graph; leave it out, or leave out --graph")
    needed = {
        "split": "its training nodes",
        "batch_size": "the sampling rate",
        "rounds": "the number of steps",
        "layers": "k",
        "fanout": "what trees show of edges",
    }
    for flag, purpose in needed.items():
        if getattr(arguments, flag) is None:
            raise PrivacyError(f"--{flag.replace('_', '-')} is missing; with --graph it is needed for {purpose}")
    graph, split = Graph.load(arguments.graph), Split.load(arguments.split)
    partition = None if arguments.partition is None else Partition.load(arguments.partition)
    clients = trained(graph, partition, split, arguments.layers, arguments.fanout)
    epochs = _epochs(arguments)
    samplings = [Sampling.of_training(client.training, arguments.batch_size, epochs) for client in clients]
    accounts = [
        _account(arguments, sampling, client.edge(sampling.rate)) for client, sampling in zip(clients, samplings, strict=True)
    ]
    lines = list(zip(clients, samplings, accounts, strict=True))
    title = (
        f"DP-SGD of each client: B = {arguments.batch_size}, {epochs} epochs, L = {arguments.layers}, d = {arguments.fanout}, "
        f"δ = {arguments.delta:g}; ε of one step and of all T steps"
    )
    header = ["", "n", "q", "T", "k", "changed"]
    for spending in accounts[0]:
        simple = spending.bound == "simple"
        header += ["simple: all, RDP", "PLD"] if simple else [f"{spending.level}: σ", "one step, RDP", "PLD", "all, RDP", "PLD"]
    table = aligned(title, header, [_line(*line) for line in lines], {0})
    remarks = [
        f"{client.name}, {remark}"
        for client, _, spendings in lines
        for spending in spendings
        if spending.bound != "simple" and (remark := spending.remark()) is not None
    ]
    text = "\n\n".join(filter(None, [_with_notes(table, TREES, arguments), sentences(remarks)]))
    return {
        "clients": [
            {**client.as_dict(), **vars(sampling), "levels": [spending.as_dict() for spending in spendings]}
            for client, sampling, spendings in lines
        ]
    }, text


def _line(client: Trained, sampling: Sampling, spendings: Sequence[Spending]) -> list[str]:
    cells = [client.name, str(client.training), f"{sampling.rate:.4g}", str(sampling.steps)]
    cells += [str(client.roots), number(client.changed)]
    for spending in spendings:
        cells += _cells(spending)[-2:] if spending.bound == "simple" else [number(spending.sigma), *_cells(spending)]
    return cells


def _cells(spending: Spending) -> list[str]:
    return [number(value) for each in (spending.step, spending.training) for value in (each.rdp, each.pld)]


def _with_notes(table: str, notes: Iterable[str], arguments: argparse.Namespace) -> str:
    coarse = f"PLD says nothing for a δ below {LEAST_PLD_DELTA:g}."
    return "\n".join([table, *notes, *NOTES, *([coarse] if arguments.delta < LEAST_PLD_DELTA else [])])


def _account(arguments: argparse.Namespace, sampling: Sampling, edge: Edge | None) -> list[Spending]:
    """The levels asked for: the example level, and the edge level where k is known; its simple bound beside a better one."""
    level = arguments.level or ("example" if edge is None else "both")
    if edge is None and level != "example":
        raise PrivacyError(
            "the edge level needs the number k of training nodes that may read an edge; give --roots, --degree and --layers, "
            "or a graph with --graph"
        )
    find: Callable[..., Spending] = spent if arguments.epsilon is None else within
    found = [] if level == "edge" else [find(_given(arguments), sampling, arguments.delta)]
    if edge is not None and level != "example":
        found.append(find(_given(arguments), sampling, arguments.delta, edge))
        if edge.bound != "simple":
            found.append(spent(found[-1].sigma, sampling, arguments.delta, Edge(edge.roots)))
    return found


def _given(arguments: argparse.Namespace) -> float:
    """The noise multiplier, or the budget."""
    return float(arguments.sigma if arguments.epsilon is None else arguments.epsilon)


def _rate(arguments: argparse.Namespace) -> float:
    if arguments.rate is not None:
        if arguments.nodes is not None or arguments.batch_size is not None:
            raise PrivacyError("--rate is given beside --batch-size or --nodes, from which it follows; give one or the other")
        return float(arguments.rate)
    return _sampling(arguments, "the sampling rate, which --rate gives").rate


def _steps(arguments: argparse.Namespace) -> int:
    if arguments.steps is not None:
        if arguments.rounds is not None:
            raise PrivacyError("--steps is given beside --rounds, from which it follows; give one or the other")
        return int(arguments.steps)
    if arguments.rounds is None:
        raise PrivacyError("the number of steps is missing; give --steps, or --rounds with --batch-size and --nodes")
    return _sampling(arguments, "the number of steps, which --steps gives").steps


def _sampling(arguments: argparse.Namespace, purpose: str) -> Sampling:
    if arguments.batch_size is None or arguments.nodes is None:
        raise PrivacyError(f"--batch-size and --nodes are needed for {purpose} without them")
    return Sampling.of_training(arguments.nodes, arguments.batch_size, _epochs(arguments))


def _epochs(arguments: argparse.Namespace) -> int:
    rounds = 1 if arguments.rounds is None else arguments.rounds
    for flag, value in (("rounds", rounds), ("local-epochs", arguments.local_epochs)):
        if value < 1:
            raise PrivacyError(f"--{flag} is {value}; it must be at least 1")
    return int(rounds * arguments.local_epochs)


def _roots(arguments: argparse.Namespace) -> int | None:
    """k, or the most that it can be in a graph of the given degree; none if neither is known."""
    if arguments.roots is not None:
        if arguments.degree is not None:
            raise PrivacyError("--roots is given beside --degree, which only bounds it; give one or the other")
        return int(arguments.roots)
    if arguments.degree is None:
        return None
    if arguments.layers is None:
        raise PrivacyError("--degree bounds the number k of training nodes only with the number of hops; give it with --layers")
    most = most_roots(arguments.degree, arguments.layers)
    return most if arguments.nodes is None else min(most, arguments.nodes)
