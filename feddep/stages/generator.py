"""Stage ``generator``: train the generators of missing neighbours and mend the subgraphs (:mod:`feddep.stages._step`)."""

import argparse

from feddep.stages import _step
from feddep.stages._step import add_arguments

__all__ = ["HELP", "add_arguments", "main"]

HELP = "train the generators of missing neighbours and mend the clients' subgraphs"


def main(arguments: argparse.Namespace) -> None:
    """Make the step and write it."""
    _step.main("generator", arguments)
