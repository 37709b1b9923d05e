"""Stage ``label_distributions``: which labels the clients of a run hold, and which its models predict."""

import argparse
from pathlib import Path

HELP = "count the labels that clients hold and that trained models predict"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.stages import _running

    _running.add_arguments(parser)
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="weights of the run's models to read")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="table to write, CSV: a row a count")


def main(arguments: argparse.Namespace) -> None:
    """Write the counts of :func:`feddep.label_distributions.measure`.

    Raises:
        ConfigError: if the framework's classifier is no plain GraphSAGE.
        DataError: if the weights are missing or damaged.
    """
    import pandas as pd
    import torch

    from feddep import label_distributions
    from feddep.csv_files import write_csv
    from feddep.stages import _running
    from feddep.storage import read_arrays

    problem = _running.read(arguments).problem
    weights = {name: torch.from_numpy(array) for name, array in read_arrays(arguments.model).items()}
    rows = label_distributions.measure(problem, weights)
    write_csv(arguments.output, pd.DataFrame(rows))
