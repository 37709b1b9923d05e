"""Stage ``figures``: accuracy beside the papers', training curves and average ranks of each setting, and partitions."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "draw the figures: accuracy, training curves, partitions, average ranks"
COMMAND = "figures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the figures are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write accuracy, curves and ranks of each setting, and partitions, each as SVG and PNG."""
    from feddep.reporting import files, page_keys
    from feddep.reporting.results import collect

    results = collect(flags.config_of(arguments))
    figures = results.figures() | results.rank_figures()
    files.write(arguments.output, figures, "figures", page_keys.shown_in_tables(results.config))
