"""Stage ``partition``: who owns which node, and what the division costs."""

import argparse
from pathlib import Path

from feddep.experiment import keys
from feddep.experiment.plan import PartitionSpec
from feddep.graph.graph import Graph
from feddep.graph.partition import louvain, statistics
from feddep.stages import flags
from feddep.utils.storage import write_json

HELP = "divide a graph among clients along its communities"
COMMAND = "partition"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset, for the statistics")
    parser.add_argument("--clients", type=flags.count, required=True, metavar="M", help="number of clients")
    parser.add_argument("--seed", type=flags.seed, required=True, help="seed of the run")
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="partition to write, safetensors")
    parser.add_argument("--statistics", type=Path, required=True, metavar="FILE", help="statistics to write, JSON")
    flags.add_key(parser)


def main(arguments: argparse.Namespace) -> None:
    """Write the partition and its statistics."""
    config = flags.config_of(arguments)
    spec = PartitionSpec(arguments.dataset, arguments.clients, arguments.seed)
    flags.check_key(arguments, keys.partition_key(config, spec))
    graph = Graph.load(arguments.graph)
    partition = louvain(graph, arguments.clients, arguments.seed, config["partition"]["delta"])
    partition.save(arguments.output)
    found = {"dataset": arguments.dataset, "seed": arguments.seed, **statistics(graph, partition)}
    write_json(arguments.statistics, found)
