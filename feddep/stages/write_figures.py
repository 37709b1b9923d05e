"""Stage ``figures``: accuracy beside the papers' and training curves of each setting, and partitions."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "draw the figures: accuracy, training curves, partitions"
COMMAND = "figures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the figures are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write accuracy and curves of each setting, and partitions, each as SVG and PNG."""
    from feddep.reporting import files
    from feddep.reporting.results import collect

    files.write(arguments.output, collect(flags.config_of(arguments)).figures(), "figures")
