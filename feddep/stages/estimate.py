"""Command ``estimate``: what the runs of a configuration will take, by study and method."""

import argparse

from feddep.stages import flags

HELP = "estimate how long the runs of a configuration take, from the records of runs like them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    flags.add_config(parser)
    parser.add_argument("--study", metavar="NAME", help="only this study (default: the main tables and all studies)")


def main(arguments: argparse.Namespace) -> None:
    """Print a row for every method of the main tables and of each study, and a sentence about all runs, each counted once.

    Raises:
        ConfigError: if there is no such study.
        DataError: if a record is damaged.
    """
    from feddep.config import variants
    from feddep.experiment import cost_estimate
    from feddep.utils.errors import ConfigError

    config = flags.config_of(arguments)
    parts = dict(cost_estimate.parts(config))
    if arguments.study is not None:
        if arguments.study not in config["studies"]:
            raise ConfigError(f"--study is {arguments.study!r}; the configuration has {', '.join(config['studies']) or 'none'}")
        parts = {arguments.study: parts[arguments.study]}
    durations = cost_estimate.Durations(config)
    rows: list[tuple[str, ...]] = [("study", "method", "runs", "to train", "from records", "core-hours")]
    for part, runs in parts.items():
        for method in dict.fromkeys(variants.base(run.method) for run in runs):
            chosen = [run for run in runs if variants.base(run.method) == method]
            found = cost_estimate.of_runs(config, chosen, durations)
            time = [cost_estimate.hours(found.core_seconds)] if found.core_seconds or not found.unknown else []
            time += ["unknown"] if found.unknown else []
            rows.append((part, method, *map(str, (found.runs, found.to_train, found.recorded)), " + ".join(time)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:{'<' if column < 2 else '>'}{widths[column]}}" for column, cell in enumerate(row)]
        print("  ".join(cells))
    print(cost_estimate.of_runs(config, (run for runs in parts.values() for run in runs), durations))
