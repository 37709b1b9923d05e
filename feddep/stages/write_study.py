"""Stage ``study``: the table, page and figure of one study."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "write the tables and draw the figure of a study"
COMMAND = "study"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--study", required=True, metavar="NAME", help="name of the study in the configuration")
    parser.add_argument("--table", metavar="NAME", help="write only this further table, such as rounds of a study of curves")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that tables and figure are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write table.csv, table.md, figure.svg, figure.png, provenance.json and their checksums, or a further table alone.

    Raises:
        ConfigError: if there is no such study, or its kind has no such further table.
    """
    from feddep.reporting import files, page_keys, studies

    config = flags.config_of(arguments)
    contents = studies.contents(config, arguments.study, arguments.table)
    files.write(arguments.output, contents, arguments.table or "study", page_keys.shown_in_study(config, arguments.study))
