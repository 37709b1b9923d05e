"""Stage reuse: take a finished result from its published record instead of computing it."""

import argparse
from pathlib import Path

from feddep import records

HELP = "write a result from its published record, after checking that it is the very same result"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the stage."""
    parser.add_argument("--record", type=Path, required=True, help="published record to read")
    parser.add_argument("--key", required=True, help="content key that the record must have")
    parser.add_argument("--output", type=Path, required=True, help="file to write")


def main(arguments: argparse.Namespace) -> None:
    """Copy the record, if it has the key."""
    records.reuse(arguments.record, arguments.key, arguments.output)
