"""Stage ``neighbourhoods``: how near mended neighbourhoods are to the true ones, and how many neighbours are missing."""

import argparse
from pathlib import Path

HELP = "compare the neighbourhoods that NeighGen mends with the true ones"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.stages import _running

    _running.add_arguments(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the tables are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write distances.csv and counts.csv, the rows of :mod:`feddep.neighbourhoods`.

    Raises:
        ConfigError: if the framework generates no features of neighbours.
    """
    import pandas as pd

    from feddep import frameworks, neighbourhoods
    from feddep.csv_files import write_csv
    from feddep.errors import ConfigError
    from feddep.stages import _running
    from feddep.steps import make_all

    job = _running.read(arguments)
    _, parameters = frameworks.configured(job.specification["framework"])
    made = make_all(job.problem, parameters, frameworks.steps(job.specification["framework"]))
    if "generator" not in made:
        raise ConfigError(f"the framework {job.run.framework} has no stage generator, so there is nothing to compare")
    tables = {
        "distances": neighbourhoods.distances(job.problem, made["generator"]),
        "counts": neighbourhoods.counts(job.problem, made["generator"]),
    }
    for name, rows in tables.items():
        write_csv(arguments.output / f"{name}.csv", pd.DataFrame(rows))
