"""Stage ``measure``: what is measured on one run beside its accuracy."""

import argparse
from pathlib import Path

HELP = "measure something on one run beside its accuracy, such as the quality of its generators"
COMMAND = "measure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.measurements import MEASUREMENTS
    from feddep.stages import job

    job.add_arguments(parser)
    described = "; ".join(f"{each.name}: {each.title}" for each in MEASUREMENTS.values())
    parser.add_argument("--measurement", required=True, choices=list(MEASUREMENTS), help=described)
    parser.add_argument(
        "--model", type=Path, metavar="FILE", help="weights of the run's models; label_distributions and label_shortcut read them"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="tables to write, JSON")


def main(arguments: argparse.Namespace) -> None:
    """Measure, and write the tables of the run by name.

    Raises:
        ConfigError: if the run has nothing to measure.
        DataError: if a file is missing or damaged.
    """
    import torch

    from feddep.experiment import keys
    from feddep.measurements import MEASUREMENTS
    from feddep.methods import registry
    from feddep.stages import flags
    from feddep.stages import job as jobs
    from feddep.utils.storage import read_arrays, write_result

    job = jobs.read(arguments)
    method, parameters = registry.configured(job.specification["method"])
    key, weights = keys.run_key(job.config, job.run), None
    flags.check_key(arguments, key)
    if arguments.model is not None:
        weights = {name: torch.from_numpy(array) for name, array in read_arrays(arguments.model, key).items()}
    tables = MEASUREMENTS[arguments.measurement].measure(job.run, job.task, method, parameters, weights)
    write_result(arguments.output, {"key": key, "measurement": arguments.measurement, "tables": tables})
