"""Stage ``download``: raw files of a public dataset, verified."""

import argparse
from pathlib import Path

from feddep.datasets.fetching import download
from feddep.datasets.public_graphs import options
from feddep.stages import flags
from feddep.utils.errors import ConfigError

HELP = "fetch and verify the raw files of a dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--dataset", required=True, help="name of the dataset")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the raw files are put in")


def main(arguments: argparse.Namespace) -> None:
    """Put the raw files into a folder; see :func:`feddep.datasets.fetching.download`."""
    config = flags.config_of(arguments)
    made = {"synthetic": "is synthetic and has no raw files", "path": "is in files of your own, which are not copied"}
    for key in options(config, arguments.dataset).keys() & made:
        raise ConfigError(f"dataset {arguments.dataset} {made[key]}: go on with the stage prepare")
    download(arguments.dataset, arguments.output, flags.mirror_of(config))
