"""Stage ``partition``: who owns which node, and what the partition costs."""

import argparse
from pathlib import Path

from feddep.experiment import keys
from feddep.experiment.plan import PartitionSpec
from feddep.experiment.task_files import load_graph
from feddep.graph import partitioners
from feddep.graph.partition import statistics
from feddep.stages import flags
from feddep.utils.storage import write_result

HELP = "partition a graph among clients"
COMMAND = "partition"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset, or of a variant such as cora,partition=random")
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
    key = keys.partition_key(config, spec)
    flags.check_key(arguments, key)
    graph = load_graph(config, arguments.dataset, arguments.graph)
    partition = partitioners.partition(graph, spec.clients, spec.seed, **keys.partition_options(config, spec.dataset))
    partition.save(arguments.output, key)
    found = {"dataset": arguments.dataset, "seed": arguments.seed, **statistics(graph, partition)}
    write_result(arguments.statistics, {"key": key, "statistics": found})
