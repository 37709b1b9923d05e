"""Stage publish: copy the finished results of a configuration to the records that git keeps."""

import argparse
from pathlib import Path

from feddep import records
from feddep.storage import read_json

HELP = "copy the finished results to the published records"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the stage."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, config.json in the output directory")


def main(arguments: argparse.Namespace) -> None:
    """Publish what changed, and say how much that was."""
    config = read_json(arguments.config)
    changed = records.publish(config)
    print(f"{len(changed)} records changed in {config['records']['directory']}")
