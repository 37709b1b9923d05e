"""Stage publish: copy the finished results of a configuration to the records that git keeps."""

import argparse

from feddep.experiment import records
from feddep.stages import flags

HELP = "copy the finished results to the published records"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the stage."""
    flags.add_config(parser)


def main(arguments: argparse.Namespace) -> None:
    """Publish what changed, and say how much that was."""
    config = flags.config_of(arguments)
    changed = records.publish(config)
    print(f"{len(changed)} records changed in {config['records']['directory']}")
