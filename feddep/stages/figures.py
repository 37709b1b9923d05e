"""Stage ``figures``: accuracy beside the papers', training curves, partitions."""

import argparse
from pathlib import Path

HELP = "draw the figures: accuracy, training curves, partitions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the figures are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write accuracy, curves and partitions, each as SVG and PNG."""
    from feddep.reporting import figures
    from feddep.reporting.findings import collect
    from feddep.storage import read_json

    for name, figure in figures.all_figures(collect(read_json(arguments.config))):
        figures.write(figure, arguments.output, name)
