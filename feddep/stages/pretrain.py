"""Stage ``pretrain``: train each client's own GNN and embed its nodes (:mod:`feddep.stages._step`)."""

import argparse

from feddep.stages import _step
from feddep.stages._step import add_arguments

__all__ = ["HELP", "add_arguments", "main"]

HELP = "train each client's own GNN and embed its nodes"


def main(arguments: argparse.Namespace) -> None:
    """Make the step and write it."""
    _step.main("pretrain", arguments)
