"""Stage ``quality_table``: the generators of several runs beside guesses, in one table."""

import argparse
from pathlib import Path

HELP = "write the table of what generators generate beside guesses that need no training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the table is put in")


def main(arguments: argparse.Namespace) -> None:
    """Write quality.csv, a row a cell and guess, and quality.md."""
    from feddep.csv_files import write_csv
    from feddep.reporting import quality
    from feddep.storage import read_json, write_text

    summary = quality.summarise(quality.load(read_json(arguments.config)))
    write_csv(arguments.output / "quality.csv", summary)
    write_text(arguments.output / "quality.md", quality.markdown(summary))
