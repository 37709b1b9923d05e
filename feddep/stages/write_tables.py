"""Stage ``tables``: every number of the benchmark beside the published one."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "write the tables: accuracy, comparisons, effect sizes, average ranks, costs, partitions, provenance"
COMMAND = "tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the tables are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write the tables as CSV, all but comparisons also as Markdown, accuracy as LaTeX, provenance.json and tables.sha256."""
    from feddep.reporting import files, page_keys
    from feddep.reporting.results import collect

    config = flags.config_of(arguments)
    files.write(arguments.output, collect(config).tables(), "tables", page_keys.shown_in_tables(config))
