"""What is measured on single runs on demand, and that no record holds: one CSV a run, below a folder of its own."""

from pathlib import Path

import pandas as pd

from feddep.config import Config
from feddep.errors import DataError
from feddep.plan import Run, measured_runs


def of_run(kind: str, run: Run, name: str = "") -> str:
    """Where a run's measurements lie below the folder of results.

    Args:
        kind: key of the configuration that names the runs.
        run: the run.
        name: of the table, where there are several.
    """
    return f"{kind}/{run.path}{'/' if name else ''}{name}.csv"


def load(config: Config, kind: str, name: str = "") -> pd.DataFrame:
    """The measurements of all runs that a key names: the columns of the run, then those of its measurement.

    Args:
        config: the configuration.
        kind: the key.
        name: as for :func:`of_run`.

    Raises:
        DataError: if a run is not measured yet, or no run is named.
    """
    frames = []
    for run in measured_runs(config, kind):
        path = Path(config["output"], of_run(kind, run, name))
        if not path.exists():
            raise DataError(f"{run.path} is not measured yet ({path} does not exist); run `snakemake` for the table")
        of = {part: getattr(run, part) for part in ("setting", "dataset", "clients", "framework", "seed")}
        table = pd.read_csv(path)
        frames.append(table.assign(**of)[[*of, *table.columns]])
    if not frames:
        raise DataError(f"the configuration's key {kind} names no run; there is nothing to show")
    return pd.concat(frames, ignore_index=True).astype({"clients": "Int64"})
