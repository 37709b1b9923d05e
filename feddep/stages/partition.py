"""Stage ``partition``: who owns which node, and what the division costs."""

import argparse
from pathlib import Path

from feddep.graph import Graph
from feddep.partition import louvain, statistics
from feddep.storage import read_json, write_json

HELP = "divide a graph among clients along its communities"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--dataset", required=True, help="name of the dataset, for the statistics")
    parser.add_argument("--clients", type=int, required=True, metavar="M", help="number of clients")
    parser.add_argument("--seed", type=int, required=True, help="seed of the run")
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="partition to write, safetensors")
    parser.add_argument("--statistics", type=Path, required=True, metavar="FILE", help="statistics to write, JSON")


def main(arguments: argparse.Namespace) -> None:
    """Write the partition and its statistics."""
    config = read_json(arguments.config)
    graph = Graph.load(arguments.graph)
    partition = louvain(graph, arguments.clients, arguments.seed, config["partition"]["delta"])
    partition.save(arguments.output)
    found = {"dataset": arguments.dataset, "seed": arguments.seed, **statistics(graph, partition)}
    write_json(arguments.statistics, found)
