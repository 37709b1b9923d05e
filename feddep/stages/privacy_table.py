"""Stage ``guarantees``: what neighbour sampling and DP-SGD guarantee the clients of the benchmark."""

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from feddep.stages import flags

if TYPE_CHECKING:
    from feddep.config.loading import Config

COMMAND = "guarantees"
HELP = "write the table of what neighbour sampling and DP-SGD guarantee every client of the benchmark"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--graph", action="append", required=True, metavar="DATASET=FILE", help="graph of a dataset; repeatable")
    parser.add_argument("--split", action="append", required=True, metavar="DATASET=FILE", help="its split; repeatable")
    parser.add_argument(
        "--partition", action="append", required=True, metavar="DATASET/mM=FILE", help="its partition among M clients; repeatable"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the tables are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write privacy.csv, privacy.md and, where they come from, privacy.json; and their checksums.

    Raises:
        ConfigError: if a graph has no split, or no partition for a number of clients.
        DataError: if a graph is not the dataset's, or a file is missing or damaged.
    """
    from feddep.config.loading import entry, main_tables
    from feddep.experiment import keys
    from feddep.experiment.plan import PartitionSpec
    from feddep.experiment.provenance import environment
    from feddep.experiment.task_files import load_graph, load_partition, load_split
    from feddep.reporting import files
    from feddep.reporting.client_guarantees import client_guarantees
    from feddep.reporting.labels import sort_datasets
    from feddep.reporting.privacy_page import Case, frame, markdown
    from feddep.training.config import TrainingConfig
    from feddep.utils.errors import ConfigError

    config = flags.config_of(arguments)
    graphs, splits, partitions = (flags.named_files(flag, getattr(arguments, flag)) for flag in ("graph", "split", "partition"))
    needed = {f"{dataset}/m{clients}" for dataset in graphs for clients in config["clients"]}
    for flag, given, wanted in (("split", splits, set(graphs)), ("partition", partitions, needed)):
        if missing := sorted(wanted - set(given)):
            raise ConfigError(f"--{flag} is missing for {', '.join(missing)}")
    seed, cases = config["seeds"][0], []
    for dataset in sort_datasets(graphs):
        graph = load_graph(config, dataset, graphs[dataset])
        split = load_split(config, dataset, seed, splits[dataset]).labelled(config["datasets"][dataset]["labelled"], seed)
        for clients in config["clients"]:
            partition = load_partition(config, PartitionSpec(dataset, clients, seed), partitions[f"{dataset}/m{clients}"])
            for name in main_tables(config):
                setting = TrainingConfig(**entry(config, "settings", name))
                guarantees = list(client_guarantees(graph, partition, split, setting, noises(config, dataset)))
                cases.append(Case(name, dataset, clients, setting, guarantees))

    data = {dataset: keys.data_fingerprint(config, dataset) for dataset in graphs}
    made_with = environment()
    made_with["packages"]["dp-accounting"] = version("dp-accounting")
    provenance = {"configuration": config, "seed": seed, "data": data, **made_with}
    contents = {"privacy.csv": frame(cases, seed), "privacy.md": markdown(cases, seed), "privacy.json": provenance}
    files.write(arguments.output, contents, "privacy")


def noises(config: "Config", dataset: str) -> dict[str, float]:
    """σ of every method of the configuration that trains its classifiers by DP-SGD."""
    from feddep.config.loading import entry

    noise = {}
    for name in config["methods"]:
        parameters = entry(config, "methods", name)
        # FedGNN's noise may also be one on whole updates, which is accounted for differently.
        if "sigma" in parameters and parameters.get("noised", "step") == "step":
            sigma = parameters["sigma"]
            noise[name] = sigma.get(dataset) if isinstance(sigma, dict) else sigma
    return {name: sigma for name, sigma in noise.items() if sigma is not None}
