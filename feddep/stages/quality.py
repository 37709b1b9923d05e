"""Stage ``quality``: is what a run's generators generate better than a guess?"""

import argparse
from pathlib import Path

HELP = "compare what FedDEP's generators generate with guesses that need no training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.stages import _running

    _running.add_arguments(parser)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="table to write, CSV: a row a client and guess"
    )


def main(arguments: argparse.Namespace) -> None:
    """Train the generators of the run, compare, and write the table.

    Raises:
        ConfigError: if the framework does not generate neighbours from prototypes.
    """
    import pandas as pd

    from feddep import frameworks, quality
    from feddep.csv_files import write_csv
    from feddep.errors import ConfigError
    from feddep.stages import _running
    from feddep.steps import make_all

    job = _running.read(arguments)
    _, parameters = frameworks.configured(job.specification["framework"])
    steps = [step for step in frameworks.steps(job.specification["framework"]) if step.stage != "generator"]
    if "prototypes" not in {step.stage for step in steps}:
        raise ConfigError(f"the framework {job.run.framework} has no stage prototypes, so there is nothing to compare")
    made = make_all(job.problem, parameters, steps)
    table = pd.DataFrame(quality.measure(job.problem, parameters, made))
    write_csv(arguments.output, table)
