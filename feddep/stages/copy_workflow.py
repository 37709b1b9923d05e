"""Stage ``workflow``: a folder in which Snakemake runs the benchmark, from an installed package."""

import argparse
import shutil
import tempfile
from pathlib import Path

import feddep
from feddep.utils.errors import ConfigError, DataError, one_line

HELP = "copy the workflow and its configurations to a folder, in which snakemake then runs them; for an installed package"
COMMAND = "workflow"
FOLDERS = ("workflow", "config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to make; it must not be there yet")


def main(arguments: argparse.Namespace) -> None:
    """Copy both folders, all or nothing.

    Raises:
        ConfigError: if the folder is there already, or the package was installed without the workflow.
        DataError: if the folder cannot be written.
    """
    output: Path = arguments.output
    if output.exists():
        raise ConfigError(f"--output is {output}, which is there already; name a folder that can be made")
    source = _source()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as scratch:
        made = Path(scratch, "made")
        try:
            for name in FOLDERS:
                shutil.copytree(source / name, made / name, ignore=shutil.ignore_patterns("__pycache__"))
        except shutil.Error as error:  # of several files, each with its reason
            raise DataError(f"{output} cannot be written: {one_line(str(error.args[0][0][2]))}") from None
        made.replace(output)
    print(f"run the benchmark there: cd {output} && snakemake")


def _source() -> Path:
    package = Path(feddep.__file__).resolve().parent
    for root in (package / "project", package.parent):  # a wheel; a clone
        if (root / "workflow" / "Snakefile").is_file() and (root / "config" / "config.yaml").is_file():
            return root
    raise ConfigError(f"there is no workflow beside {package}; install the package from its repository with `pip install .`")
