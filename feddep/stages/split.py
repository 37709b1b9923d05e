"""Stage ``split``: train, validation and test nodes of a graph."""

import argparse
from pathlib import Path

from feddep.graph import Graph
from feddep.splits import random_split
from feddep.storage import read_json

HELP = "draw train, validation and test nodes of a graph"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--dataset", required=True, help="name of the dataset; two graphs of one size get the same split")
    parser.add_argument("--seed", type=int, required=True, help="seed of the run")
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="split to write, safetensors")


def main(arguments: argparse.Namespace) -> None:
    """Draw and write the split."""
    config = read_json(arguments.config)
    graph = Graph.load(arguments.graph)
    random_split(graph.num_nodes, config["split"], arguments.seed).save(arguments.output)
