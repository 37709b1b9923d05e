"""Stage ``rekey``: move the published records to new keys, after training a sample of them anew."""

import argparse
import os
from pathlib import Path

from feddep.stages import flags

COMMAND = "rekey"
HELP = "move records to new keys after a change that renames options or code, once a sample trained anew gives the same results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--renames", type=Path, metavar="FILE", help="what options and frameworks were called before, YAML")
    parser.add_argument("--share", type=float, default=0.03, help="share of all runs to train anew (default: 0.03)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of processes (default: 1)")
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
    import yaml

    from feddep.experiment import rekey
    from feddep.utils.errors import DataError

    config = flags.config_of(arguments)
    renames = yaml.safe_load(arguments.renames.read_text(encoding="utf-8")) if arguments.renames else {}
    matched = rekey.find_records(config, renames)
    sample = {run: matched[run] for run in rekey.draw_sample(list(matched), arguments.share, arguments.seed)}
    mirror = config["data"]["mirror"] or os.environ.get("FEDDEP_DATA_MIRROR")
    verified = rekey.verify(config, sample, arguments.work, mirror, arguments.jobs, arguments.before)
    rekey.write_log(arguments.log, len(matched), verified, arguments.seed)
    different = [each.run.path for each in verified if not each.passed]
    if different:
        raise DataError(
            f"{len(different)} runs have other results than their records, the first is {different[0]}: see {arguments.log}"
        )
    rekey.move(config, matched)
    print(f"{len(verified)} runs gave their records' results; {len(matched)} records have today's keys")
