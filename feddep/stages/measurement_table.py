"""Stage ``measurement_table``: one measurement of several runs, in tables and figures."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "write the tables and figures of a measurement"
COMMAND = "measurement_table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.measurements import MEASUREMENTS

    flags.add_config(parser)
    parser.add_argument("--measurement", required=True, choices=list(MEASUREMENTS), help="what was measured")
    parser.add_argument(
        "--input",
        type=Path,
        action="append",
        metavar="FILE",
        help="tables of a run to read, JSON; by default those of the runs that the configuration names, below its output",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder of results, for tables/ and figures/ below it"
    )


def main(arguments: argparse.Namespace) -> None:
    """Write the files that the measurement has.

    Raises:
        DataError: if a run is not measured yet, or no run is named.
    """
    from feddep.measurements import MEASUREMENTS
    from feddep.reporting import files
    from feddep.utils.errors import DataError
    from feddep.utils.storage import read_result

    measurement, config = MEASUREMENTS[arguments.measurement], flags.config_of(arguments)
    paths = {f"{path}": path for path in arguments.input or ()}
    if not paths:
        paths = {run.path: Path(config["output"], measurement.file(run)) for run in measurement.runs(config)}
    for name, path in paths.items():
        if not path.exists():
            raise DataError(f"{name} is not measured yet ({path} does not exist); run `snakemake` for the table")
    measured = {path: read_result(path) for path in paths.values()}
    for path, content in measured.items():
        if content.get("measurement") != measurement.name:
            raise DataError(f"{path} is no measurement {measurement.name}; name files that the stage measure wrote for it")
    page = measurement.page(content["tables"] for content in measured.values())
    files.write(arguments.output, page, f"tables/{measurement.name}")
