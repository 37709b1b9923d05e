"""Stage ``reproduction``: every published accuracy beside ours, and whether the two agree."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "write the table of every published number beside ours"
COMMAND = "reproduction"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the table is put in")


def main(arguments: argparse.Namespace) -> None:
    """Write reproduction.csv, reproduction.md and reproduction.sha256."""
    from feddep.reporting import agreement, files, page_keys

    config = flags.config_of(arguments)
    table = agreement.compare(config)
    contents = {"reproduction.csv": table, "reproduction.md": agreement.markdown(table)}
    files.write(arguments.output, contents, "reproduction", page_keys.shown_in_agreement(config))
