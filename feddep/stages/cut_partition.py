"""Stage ``cut``: one folder for each participant of a federation, a client's with its own subgraph and nothing of the others."""

import argparse
from pathlib import Path

from feddep.deployment import client_folders
from feddep.experiment import keys
from feddep.stages import flags
from feddep.stages import job as jobs

COMMAND = "cut"
HELP = "cut the data of a run into a folder for each client, to train it by processes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    jobs.add_arguments(parser, steps=False)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIRECTORY", help="where the folders of all participants go"
    )
    parser.add_argument(
        "--secure-aggregation", action="store_true", help="let the server see the mean of the clients' weights alone (SecAgg+)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Write the folders."""
    job = jobs.read(arguments)
    key = keys.run_key(job.config, job.run)
    flags.check_key(arguments, key)
    graph = job.task.graph
    clients = job.run.clients or 0
    federation = client_folders.Federation(
        key,
        job.specification,
        clients,
        graph.num_features,
        graph.num_classes,
        job.config["threads"],
        arguments.secure_aggregation,
    )
    client_folders.cut(job.task, federation, arguments.output)
