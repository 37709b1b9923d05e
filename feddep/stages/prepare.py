"""Stage ``prepare``: the graph of a dataset, with its fingerprint and statistics."""

import argparse
from pathlib import Path

from feddep.datasets import own_files
from feddep.datasets.fetching import origin
from feddep.datasets.parsing import parse
from feddep.datasets.public_graphs import options
from feddep.datasets.statistics import statistics
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys
from feddep.stages import flags
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.storage import write_result

HELP = "turn raw files into a graph, and describe it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset")
    parser.add_argument("--raw", type=Path, metavar="DIR", help="folder of the raw files; for a public dataset")
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to write, safetensors")
    parser.add_argument("--statistics", type=Path, required=True, metavar="FILE", help="statistics to write, JSON")
    flags.add_key(parser)


def main(arguments: argparse.Namespace) -> None:
    """Write the graph and its statistics."""
    config = flags.config_of(arguments)
    chosen = options(config, arguments.dataset)
    key = keys.graph_key(config, arguments.dataset)
    flags.check_key(arguments, key)
    if "synthetic" in chosen:
        graph, source = planted_partition(**chosen["synthetic"]), "synthetic"
    elif "path" in chosen:
        graph, source = own_files.read(chosen["path"]), "own files"
        if keys.own_fingerprint(chosen["path"]) != keys.data_fingerprint(config, arguments.dataset):
            raise DataError(f"{chosen['path']} was changed while it was read; run the workflow again")
    elif arguments.raw is not None:
        graph, source = parse(arguments.dataset, arguments.raw), origin(arguments.raw)
    else:
        raise ConfigError(f"dataset {arguments.dataset} is made from raw files: name their folder with --raw")
    graph.save(arguments.graph, key)
    found = {"name": arguments.dataset, "source": source, **statistics(graph)}
    write_result(arguments.statistics, {"key": key, "statistics": found})
