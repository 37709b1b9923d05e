"""Stage ``dpsgd``: what DP-SGD guarantees, or how much noise a budget needs."""

import argparse
from collections.abc import Callable

from feddep.privacy.accountant import PrivacyError
from feddep.privacy.changed_trees import most_roots, most_roots_of_node
from feddep.privacy.dpsgd_accounting import LEAST_PLD_DELTA
from feddep.privacy.dpsgd_guarantees import (
    Adjacency,
    DpsgdGuarantee,
    PoissonSampling,
    TreeChanges,
    calibrated_guarantee,
    client_trees,
    dpsgd_guarantee,
    protected,
)
from feddep.privacy.formatting import aligned_table, format_number, sentences
from feddep.stages.privacy_flags import NAME_THE_GRAPH, add_graph_arguments, given, load_graph, refuse, write

COMMAND = "dpsgd"
HELP = "work out what DP-SGD guarantees for examples, edges and nodes, or the noise that keeps a budget"

NOTES = (
    "Both columns are upper bounds: by Rényi DP, and by privacy loss distributions (PLD).",
    "one step: before composition, which is how FedDEP quotes the ε of a single sampling beside σ.",
    "The example level says nothing of edges: an edge is in the trees of many training nodes.",
    "All ε are of the training alone, with its inputs given and its clipping norm public. Nothing is promised of inputs that",
    "depend on edges without noise, nor of what is sent beside the weights: as methods FedDEP w/o NFDP and FedGNN have no",
    "finite ε for edges or nodes.",
)
GUARANTEE = "A guarantee for every graph of no larger degree, and so many training nodes: --degree has to be public, and kept."
GIVEN_ROOTS = "A guarantee for edges only if k is public, and no edge of any graph can change more trees; see --degree."
PER_INSTANCE = (
    "Per instance: k, and how likely trees change, are read off this graph, which is private. ε holds for the edges and nodes",
    "that it has, is private itself, and no guarantee: for one, give a public bound on degrees, --degree with --layers, instead.",
)
NODES = (
    "A node changes its own gradient and the trees up to L hops away, which read its features or the list of a neighbour. If it",
    "is a training node, it changes n as well, and with it q and T, which count as known.",
)
UNBOUNDED = (
    "Without a bound on degrees a node may change the trees of all training nodes: no ε holds for all graphs; see --degree."
)
SIMPLE = "The simple bound counts each of the k training nodes as changed by an edge whenever it is sampled."
NODE_LEVEL: tuple[Adjacency, ...] = ("added or removed", "replaced")
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
    parser.add_argument(
        "--level",
        choices=["example", "edge", "both", "node"],
        help="what is hidden; both: examples and edges (default: all for which k is known)",
    )
    parser.add_argument("--rate", type=float, metavar="q", help="probability that a training node is in a batch")
    parser.add_argument("--batch-size", type=int, metavar="B", help="expected number of training nodes in a batch")
    parser.add_argument("--nodes", type=int, metavar="n", help="number of training nodes")
    parser.add_argument("--steps", type=int, metavar="T", help="number of steps")
    parser.add_argument("--rounds", type=int, metavar="R", help="number of rounds; with a batch size, instead of --steps")
    parser.add_argument("--local-epochs", type=int, default=1, metavar="E", help="epochs in a round (default: 1)")
    parser.add_argument("--roots", type=int, metavar="k", help="number of training nodes whose trees may depend on an edge")
    parser.add_argument("--degree", type=int, metavar="D", help="public bound on the degrees, to bound k by")
    parser.add_argument("--layers", type=int, metavar="L", help="number of hops of the trees")
    parser.add_argument("--fanout", type=int, metavar="d", help="number of neighbours drawn at a time; with a graph")
    add_graph_arguments(parser, with_split=True)


def main(arguments: argparse.Namespace) -> None:
    """Print ε on both levels, and write it if asked to."""
    result, table, notes, remarks = (_of_numbers if arguments.graph is None else _of_graph)(arguments)
    coarse = [f"PLD says nothing for a δ below {LEAST_PLD_DELTA:g}."] if arguments.delta < LEAST_PLD_DELTA else []
    blocks = ["\n".join([table, *notes, *NOTES, *coarse]), sentences(remarks)]
    write(arguments, blocks, {"delta": arguments.delta, **result})


Output = tuple[dict[str, object], str, list[str], list[str | None]]
"""Result for JSON, table, notes below it, and remarks."""


def _of_numbers(arguments: argparse.Namespace) -> Output:
    has = given(arguments)
    counts = has.batch_size and has.nodes
    needed = "--batch-size and --nodes are needed for {}, which --{} gives without them"
    beside = "--{} is given beside {}, from which it follows; give one or the other"
    refuse(
        (
            *((getattr(has, flag), f"--{flag} goes with a graph; {NAME_THE_GRAPH}") for flag in ("partition", "split", "fanout")),
            (has.rate and (has.batch_size or has.nodes), beside.format("rate", "--batch-size or --nodes")),
            (not has.rate and not counts, needed.format("the sampling rate", "rate")),
            (has.steps and has.rounds, beside.format("steps", "--rounds")),
            (
                not has.steps and not has.rounds,
                "the number of steps is missing; give --steps, or --rounds with --batch-size and --nodes",
            ),
            (not has.steps and not counts, needed.format("the number of steps", "steps")),
            (has.roots and has.degree, "--roots is given beside --degree, which only bounds it; give one or the other"),
            (
                has.degree and not has.layers and not has.roots,
                "--degree bounds the number k of training nodes only with the number of hops; give it with --layers",
            ),
            (
                arguments.level in ("edge", "both") and not has.roots and not has.degree,
                "the edge level needs the number k of training nodes that may read an edge; give --roots, --degree and --layers, "
                "or a graph with --graph",
            ),
        )
    )
    if has.rate:
        sampling = PoissonSampling(arguments.rate, arguments.steps)
    else:
        sampling = PoissonSampling.of_training(arguments.nodes, arguments.batch_size, _epochs(arguments))
        sampling = PoissonSampling(sampling.rate, arguments.steps) if has.steps else sampling
    roots = arguments.roots
    if has.degree:
        roots = most_roots(arguments.degree, arguments.layers)
        roots = min(roots, arguments.nodes) if has.nodes else roots
    nodes = _any_node(arguments, sampling.rate) if has.degree or arguments.level == "node" else []
    levels = _levels(arguments, sampling, None if roots is None else TreeChanges.simple(roots, sampling.rate), nodes)
    title = f"DP-SGD with q = {sampling.rate:g}, T = {sampling.steps}, δ = {arguments.delta:g}: ε of one step and of all steps"
    header = ["what is hidden", "σ", "one step, RDP", "PLD", "all, RDP", "PLD"]
    rows = [[protected(level), format_number(level.sigma), *_cells(level)] for level in levels]
    notes = [] if roots is None else [SIMPLE + " With a graph, --graph, there is a sharper one."]
    scope = "all graphs" if has.degree else "as the number of roots" if has.roots else None
    notes += {"all graphs": [GUARANTEE], "as the number of roots": [GIVEN_ROOTS]}.get(scope or "", [])
    notes += [*(NODES if nodes else []), *([] if has.degree else [UNBOUNDED])]
    result: dict[str, object] = {"sampling": vars(sampling), "scope": scope, "levels": [level.as_dict() for level in levels]}
    return result, aligned_table(title, header, rows, {0}), notes, [level.remark() for level in levels]


def _of_graph(arguments: argparse.Namespace) -> Output:
    from feddep.graph.split import Split

    needed = {
        "split": "its training nodes",
        "batch_size": "the sampling rate",
        "rounds": "the number of steps",
        "layers": "k",
        "fanout": "what trees show of edges",
    }
    has = given(arguments)
    follows = "--{} is given, but follows from the graph; leave it out, or leave out --graph"
    missing = "--{} is missing; with --graph it is needed for {}"
    refuse(
        (
            *((getattr(has, flag), follows.format(flag)) for flag in ("rate", "nodes", "steps", "roots", "degree")),
            *((not getattr(has, flag), missing.format(flag.replace("_", "-"), use)) for flag, use in needed.items()),
        )
    )
    graph, partition = load_graph(arguments)
    split = Split.load(arguments.split, nodes=graph.num_nodes)
    clients = client_trees(graph, partition, split, arguments.layers, arguments.fanout)
    epochs = _epochs(arguments)
    rows, found = [], []
    remarks: list[str | None] = []
    for client in clients:
        sampling = PoissonSampling.of_training(client.training, arguments.batch_size, epochs)
        node = TreeChanges.simple(client.node_roots, sampling.rate, "removed")
        levels = _levels(arguments, sampling, client.worst_edge(sampling.rate), [node])
        row = [client.name, str(client.training), f"{sampling.rate:.4g}", str(sampling.steps), str(client.roots)]
        row.append(format_number(client.changed))
        header = ["", "n", "q", "T", "k", "changed"]
        for level in levels:
            if level.level == "edge" and level.bound == "simple":
                header += ["simple: all, RDP", "PLD"]
                row += _cells(level)[-2:]
                continue
            if level.level == "node" and arguments.level is None:
                header += ["node: k", "all, RDP", "PLD"]
                row += [str(level.roots), *_cells(level)[-2:]]
                continue
            header += [f"{level.level}: σ", "one step, RDP", "PLD", "all, RDP", "PLD"]
            row += [format_number(level.sigma), *_cells(level)]
            if remark := level.remark():
                remarks.append(f"{client.name}, {remark}")
        rows.append(row)
        found.append({**client.as_dict(), **vars(sampling), "levels": [level.as_dict() for level in levels]})
    title = (
        f"DP-SGD of each client: B = {arguments.batch_size}, {epochs} epochs, L = {arguments.layers}, d = {arguments.fanout}, "
        f"δ = {arguments.delta:g}; ε of one step and of all T steps"
    )
    notes = [*TREES, *PER_INSTANCE, *NODES]
    return {"scope": "per instance", "clients": found}, aligned_table(title, header, rows, {0}), notes, remarks


def _cells(level: DpsgdGuarantee) -> list[str]:
    return [format_number(value) for each in (level.one_step, level.all_steps) for value in (each.rdp, each.pld)]


def _any_node(arguments: argparse.Namespace, rate: float) -> list[TreeChanges]:
    """A node of any graph of the given degree that is added or removed, and one that is replaced."""
    found = []
    for adjacency in NODE_LEVEL:
        bounds = [] if arguments.nodes is None else [arguments.nodes]
        if arguments.degree is not None:
            bounds.append(most_roots_of_node(arguments.degree, arguments.layers, adjacency == "replaced"))
        found.append(TreeChanges.simple(min(bounds, default=None), rate, adjacency))
    return found


def _levels(
    arguments: argparse.Namespace, sampling: PoissonSampling, edge: TreeChanges | None, nodes: list[TreeChanges]
) -> list[DpsgdGuarantee]:
    """The levels asked for: the example level, and where k is known, those of edges and nodes.

    The simple bound for edges stands beside a better one.  A budget is for nodes only if they alone are asked for.
    """
    wanted, delta = arguments.level, arguments.delta
    function: Callable[..., DpsgdGuarantee] = dpsgd_guarantee if arguments.epsilon is None else calibrated_guarantee
    value = arguments.sigma if arguments.epsilon is None else arguments.epsilon
    if wanted == "node":
        return [function(value, sampling, delta, node) for node in nodes]
    found = [] if wanted == "edge" else [function(value, sampling, delta)]
    if edge is not None and wanted != "example":
        found.append(function(value, sampling, delta, edge))
        if edge.bound != "simple":
            simple = TreeChanges.simple(edge.roots, sampling.rate)
            found.append(dpsgd_guarantee(found[-1].sigma, sampling, delta, simple))
    return [*found, *(dpsgd_guarantee(found[-1].sigma, sampling, delta, node) for node in nodes if wanted is None)]


def _epochs(arguments: argparse.Namespace) -> int:
    """Number of epochs in all rounds together; a single round where only the sampling rate is asked for."""
    rounds = 1 if arguments.rounds is None else arguments.rounds
    for flag, value in (("rounds", rounds), ("local-epochs", arguments.local_epochs)):
        if value < 1:
            raise PrivacyError(f"--{flag} is {value}; it must be at least 1")
    return int(rounds * arguments.local_epochs)
