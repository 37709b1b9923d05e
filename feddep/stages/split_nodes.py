"""Stage ``split``: train, validation and test nodes of a graph."""

import argparse
from pathlib import Path

from feddep.experiment import keys
from feddep.experiment.task_files import load_graph
from feddep.graph.split import random_split
from feddep.stages import flags

HELP = "draw train, validation and test nodes of a graph"
COMMAND = "split"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset; two graphs of one size get the same split")
    parser.add_argument("--seed", type=flags.seed, required=True, help="seed of the run")
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="split to write, safetensors")
    flags.add_key(parser)


def main(arguments: argparse.Namespace) -> None:
    """Draw and write the split."""
    config = flags.config_of(arguments)
    key = keys.split_key(config, arguments.dataset, arguments.seed)
    flags.check_key(arguments, key)
    graph = load_graph(config, arguments.dataset, arguments.graph)
    random_split(graph.num_nodes, config["split"], arguments.seed).save(arguments.output, key)
