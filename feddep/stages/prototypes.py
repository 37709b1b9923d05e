"""Stage ``prototypes``: cluster each client's embeddings and share the prototypes (:mod:`feddep.stages._step`)."""

import argparse

from feddep.stages import _step
from feddep.stages._step import add_arguments

__all__ = ["HELP", "add_arguments", "main"]

HELP = "cluster each client's embeddings and share the prototypes"


def main(arguments: argparse.Namespace) -> None:
    """Make the step and write it."""
    _step.main("prototypes", arguments)
