"""Stage ``guarantees``: what neighbour sampling and DP-SGD guarantee the clients of the benchmark."""

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from feddep.config import Config

HELP = "write the table of what neighbour sampling and DP-SGD guarantee every client of the benchmark"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the tables are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write privacy.csv, privacy.md and, where they come from, privacy.json.

    Raises:
        DataError: if a graph is not the dataset's, or a file is missing or damaged.
    """
    from feddep import plan
    from feddep.config import entry, main_tables
    from feddep.csv_files import write_csv
    from feddep.errors import DataError
    from feddep.graph import Graph
    from feddep.partition import Partition
    from feddep.privacy.guarantees import Training, measure
    from feddep.provenance import environment
    from feddep.reporting.guarantees import Place, frame, markdown
    from feddep.reporting.labels import sort_datasets
    from feddep.splits import Split
    from feddep.storage import read_json, write_json, write_text

    config = read_json(arguments.config)
    made, seed = Path(config["output"]), config["seeds"][0]
    places = []
    for dataset in sort_datasets(config["datasets"]):
        options = config["datasets"][dataset]
        file = made / "graphs" / f"{dataset}.safetensors"
        graph = Graph.load(file)
        if "synthetic" not in options and graph.fingerprint != plan.data_fingerprint(config, dataset):
            raise DataError(f"{file} is not the {dataset} that the registry knows; delete it and run prepare again")
        split = Split.load(made / "splits" / dataset / f"seed{seed}.safetensors").labelled(options["labelled"], seed)
        for clients in config["clients"]:
            partition = Partition.load(made / "partitions" / f"{plan.Cut(dataset, clients, seed).path}.safetensors")
            for setting in main_tables(config):
                training = Training.of(entry(config, "settings", setting))
                lines = list(measure(graph, partition, split, training, noises(config, dataset)))
                places.append(Place(setting, dataset, clients, training, lines))

    directory = arguments.output
    write_csv(directory / "privacy.csv", frame(places, seed))
    write_text(directory / "privacy.md", markdown(places, seed))
    data = {dataset: plan.data_fingerprint(config, dataset) for dataset in config["datasets"]}
    made_with = environment()
    made_with["packages"]["dp-accounting"] = version("dp-accounting")
    write_json(directory / "privacy.json", {"configuration": config, "seed": seed, "data": data, **made_with})


def noises(config: "Config", dataset: str) -> dict[str, float]:
    """σ of every framework of the configuration that trains its classifiers by DP-SGD."""
    from feddep.config import entry

    parameters = {name: entry(config, "frameworks", name, dataset) for name in config["frameworks"]}
    # FedGNN's noise may also be one on whole updates, which has another account.
    return {name: each["sigma"] for name, each in parameters.items() if "sigma" in each and each.get("noised", "step") == "step"}
