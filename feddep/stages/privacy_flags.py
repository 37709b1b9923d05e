"""What the commands ``privacy`` and ``dpsgd`` share: flags of a graph, flags that go together, output."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feddep.privacy.accountant import PrivacyError

if TYPE_CHECKING:
    from feddep.graph.graph import Graph
    from feddep.graph.partition import Partition

NAME_THE_GRAPH = "name the graph with --graph"


def add_graph_arguments(parser: argparse.ArgumentParser, with_split: bool = False) -> None:
    """Add the flags that name a graph and the output."""
    parser.add_argument("--graph", type=Path, metavar="FILE", help="graph to examine")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition of this graph, to examine each client's")
    if with_split:
        parser.add_argument("--split", type=Path, metavar="FILE", help="split of this graph, for its training nodes")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all numbers, JSON")


def given(arguments: argparse.Namespace) -> argparse.Namespace:
    """Whether each flag is given, or has a default."""
    return argparse.Namespace(**{flag: value is not None for flag, value in vars(arguments).items()})


def refuse(mistakes: Iterable[tuple[bool, str]]) -> None:
    """Raise :class:`PrivacyError` with the message of the first mistake that was made."""
    for made, message in mistakes:
        if made:
            raise PrivacyError(message)


def load_graph(arguments: argparse.Namespace) -> "tuple[Graph, Partition | None]":
    """The graph, and its partition if one is given."""
    from feddep.graph.graph import Graph
    from feddep.graph.partition import Partition

    graph = Graph.load(arguments.graph)
    return graph, None if arguments.partition is None else Partition.load(arguments.partition, nodes=graph.num_nodes)


def write(arguments: argparse.Namespace, blocks: Sequence[str], result: object) -> None:
    """Print the blocks that are not empty, and write the result if asked to."""
    print("\n\n".join(filter(None, blocks)))
    if arguments.output is not None:
        from feddep.utils.storage import write_json

        write_json(arguments.output, result)
