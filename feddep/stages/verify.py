"""Stage ``verify``: a cell of a published table, trained anew and compared with its records."""

import argparse
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feddep.stages import flags

if TYPE_CHECKING:
    from feddep.config.loading import Config
    from feddep.experiment.plan import Run
    from feddep.experiment.verification import Comparison

HELP = "train a cell of a published table anew, one drawn at random or the named one, and say whether its number comes back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--table", choices=["accuracy"], default="accuracy", help="table that the cell is of (default: accuracy)")
    of.add_argument("--study", metavar="NAME", help="study that the cell is of, in place of a table")
    parser.add_argument("--setting", help="setting of the cell, or a variant such as feddep,rounds=100")
    parser.add_argument("--dataset", help="its dataset, or a variant")
    parser.add_argument("--method", help="its method, or a variant")
    parser.add_argument("--clients", type=flags.count, metavar="M", help="its number of clients")
    parser.add_argument("--seed", type=flags.seed, help="seed of the draw among the cells that fit (default: another each time)")
    parser.add_argument(
        "--max-seconds", type=_seconds, metavar="S", help="draw among cells whose runs took at most S seconds when recorded"
    )
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        default=0.01,
        metavar="T",
        help="largest difference of accuracy that is taken for rounding on another processor; 0: equal to the last bit "
        "(default: 0.01)",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("results/verify"),
        metavar="DIR",
        help="folder of public graphs, and of what an interrupted call has trained (default: results/verify)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Draw, train, compare, and print a line a seed.

    After an interruption the same flags go on with the same draw, and train what is left.

    Raises:
        ConfigError: if there is no such cell or study.
        DataError: if a cell has no records, or its number did not come back.
    """
    import torch

    from feddep.config import variants
    from feddep.experiment import keys, retraining, verification
    from feddep.utils.progress import track
    from feddep.utils.storage import read_result, write_result

    config = flags.config_of(arguments)
    wanted = {name: value for name in verification.CELL if (value := getattr(arguments, name)) is not None}
    limit = float("inf") if arguments.max_seconds is None else arguments.max_seconds
    asked = {"study": arguments.study, "seed": arguments.seed, "max_seconds": arguments.max_seconds, **wanted}
    unfinished = arguments.work / "unfinished" / keys.digest(asked)
    with _drawn_in(unfinished) as draw:
        if interrupted := draw.is_file():
            seed = read_result(draw)["seed"]
        else:
            seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
        cell = verification.draw(config, _runs(config, arguments.study), wanted, seed, limit)
        first = next(iter(cell))
        of = f"table {arguments.table}" if arguments.study is None else f"study {arguments.study}"
        print(f"{of}, drawn with seed {seed}: {first.path.rpartition('/')[0]}")
        _say_what_changed(config, cell)

        torch.set_num_threads(config["threads"])
        retraining.fetch_graph(config, variants.base(first.dataset), arguments.work, flags.mirror_of(config))
        if interrupted:
            print("going on with an interrupted call; to draw anew, name another --seed")
        write_result(draw, {"seed": seed})
        runs = track(cell, "runs trained anew")
        found = [verification.compare(config, run, cell[run], arguments.work, unfinished) for run in runs]
        draw.unlink()
    if kept := sum(each.kept for each in found):
        print(f"{kept} of {len(found)} runs were trained by an interrupted call")
    _print(found)
    table = Path(config["output"], "tables", "accuracy.csv")
    if arguments.study is None and table.is_file():
        _check_table(table, first, [each.recorded for each in found])
    _judge(found, arguments.tolerance)


@contextmanager
def _drawn_in(folder: Path) -> Iterator[Path]:
    """The file of the draw in a folder of unfinished trainings, for this call alone; without a draw the folder is removed."""
    from filelock import FileLock, Timeout

    from feddep.utils.errors import ConfigError

    draw = folder / "draw.json"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", blocking=False):
            try:
                yield draw
            finally:
                if not draw.exists():
                    shutil.rmtree(folder)
    except Timeout:
        raise ConfigError(f"another call with the same flags works in {folder}; wait for it, or name another --seed") from None


def _runs(config: "Config", study: str | None) -> "list[Run]":
    from feddep.experiment import plan
    from feddep.utils.errors import ConfigError

    if study is None:
        return plan.runs(config)
    if study not in config["studies"]:
        known = ", ".join(config["studies"]) or "none"
        raise ConfigError(f"--study is {study}, which the configuration has not; there are {known}")
    return plan.study_runs(config, study)


def _say_what_changed(config: "Config", cell: "Mapping[Run, dict[str, Any]]") -> None:
    from feddep.experiment import records

    changed = sum(records.of_run(config, run).outdated for run in cell)
    if changed:
        print(f"the code of {changed} of {len(cell)} runs has changed since their records were made")
    others = {made["device"] for record in cell.values() if (made := record["provenance"]).get("device") not in (None, "cpu")}
    if others:
        print(f"the records were made on {', '.join(sorted(others))}; the runs are trained on the CPU here")


def _print(found: "Sequence[Comparison]") -> None:
    print(f"{'seed':>5} {'record':>9} {'now':>9} {'difference':>11} {'seconds':>8}")
    for each in found:
        note = f"differs in {', '.join(each.differing)}" if each.differing else "equal to the last bit"
        numbers = f"{each.recorded:9.6f} {each.found:9.6f} {each.difference:11.2e} {each.seconds:8.1f}"
        print(f"{each.run.seed:>5} {numbers}  {note}")
    means = [sum(getattr(each, name) for each in found) / len(found) for name in ("recorded", "found")]
    print(f" mean {means[0]:9.6f} {means[1]:9.6f} {abs(means[0] - means[1]):11.2e}")


def _judge(found: "Sequence[Comparison]", tolerance: float) -> None:
    """Say that the number came back.

    Raises:
        DataError: if a run's result is further from its record's than the tolerance.
    """
    from feddep.utils.errors import DataError

    if wrong := [each for each in found if not each.passed(tolerance)]:
        worst = max(wrong, key=lambda each: each.difference)
        raise DataError(
            f"{len(wrong)} of {len(found)} runs did not give their record's result; of {worst.run.path} the accuracy is "
            f"{worst.found:.6f} and was {worst.recorded:.6f}, and these parts differ: {', '.join(worst.differing)}"
        )
    if any(each.differing for each in found):
        print(f"the number came back within {tolerance:g}, and not to the last bit, as another processor rounds")
    else:
        print("the number came back, equal to the last bit")


def _check_table(table: Path, run: "Run", recorded: "Sequence[float]") -> None:
    """Make sure that the table shows the mean of the records."""
    import pandas as pd

    from feddep.utils.checksum_lists import find_mismatch
    from feddep.utils.errors import DataError

    checksums = table.with_name("tables.sha256")
    if problem := find_mismatch(checksums):
        raise DataError(f"{problem}; write the tables again")
    rows = pd.read_csv(table)
    clients = rows["clients"].isna() if run.clients is None else rows["clients"] == run.clients
    here = rows[clients & (rows["setting"] == run.setting) & (rows["dataset"] == run.dataset)]
    here = here[here["method"] == run.method]
    mean = sum(recorded) / len(recorded)
    if len(here) != 1:
        raise DataError(f"{table} has {len(here)} rows of this cell; write the tables again")
    shown = float(here["mean"].iloc[0])
    if abs(shown - mean) > 1e-6:  # the table has six digits
        raise DataError(f"{table} shows {shown:.6g}, and the mean of the records is {mean:.6g}; write the tables again")
    print(f"{table} shows {shown:.6g}, the mean of the records")


def _seconds(text: str) -> float:
    return flags.number(text, 0, 1e9)


def _tolerance(text: str) -> float:
    return flags.number(text, 0, 1)
