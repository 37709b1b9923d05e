"""Stage ``rekey``: move the published records to new keys, after training a sample of them anew."""

import argparse
from pathlib import Path
from typing import Any

from feddep.stages import flags

COMMAND = "rekey"
HELP = "move records to new keys after a change that renames options or code, once a sample trained anew gives the same results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--renames", type=Path, metavar="FILE", help="what options and methods were called before, YAML")
    parser.add_argument(
        "--share", type=float, default=0.03, help="share of the runs with another key or code to train anew (default: 0.03)"
    )
    parser.add_argument("--seed", type=flags.seed, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--jobs", type=flags.count, default=1, metavar="N", help="number of processes (default: 1)")
    parser.add_argument(
        "--work", type=Path, default=Path("results/rekey"), metavar="DIR", help="folder for what is in the making"
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="DIR",
        help="results folder of the code before the change on this machine; for records of other machines",
    )
    parser.add_argument("--log", type=Path, required=True, metavar="FILE", help="log to write, Markdown")


def main(arguments: argparse.Namespace) -> None:
    """Verify, write the log, and move the records if all is equal.

    Raises:
        DataError: if a run has no record, or one that was trained anew has another result; no record is changed then.
    """
    from feddep.experiment import rekey
    from feddep.utils.errors import DataError

    config = flags.config_of(arguments)
    renames = _renames(arguments.renames) if arguments.renames else {}
    matched = rekey.find_records(config, renames)
    outdated = rekey.outdated(config, matched)
    sample = {run: matched[run] for run in rekey.draw_sample(outdated, arguments.share, arguments.seed)}
    mirror = flags.mirror_of(config)
    verified = rekey.verify(config, sample, arguments.work, mirror, arguments.jobs, arguments.before)
    rekey.write_log(arguments.log, len(outdated), verified, arguments.seed)
    different = [each.run.path for each in verified if not each.passed]
    if different:
        raise DataError(
            f"{len(different)} runs have other results than their records, the first is {different[0]}: see {arguments.log}"
        )
    rekey.move(config, matched)
    print(
        f"{len(verified)} runs gave their records' results; all {len(matched)} records have today's keys, "
        f"{len(outdated)} of them had others, or other code"
    )


def _renames(path: Path) -> dict[str, Any]:
    """What was renamed.

    Raises:
        DataError: if the file is not YAML, or says something else.
    """
    import yaml

    from feddep.experiment.file_schemas import Renames
    from feddep.utils import schemas
    from feddep.utils.errors import DataError
    from feddep.utils.storage import read_text

    try:
        content = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    schemas.check(path, "list of renames", Renames, content)
    return dict(content)
