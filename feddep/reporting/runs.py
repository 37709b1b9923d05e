"""The finished runs of a configuration, and one row a run of what they measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from feddep.config.loading import Config
from feddep.experiment import plan, records
from feddep.experiment.file_schemas import Metrics
from feddep.reporting.undertrained import is_undertrained
from feddep.utils import schemas
from feddep.utils.errors import DataError


@dataclass(frozen=True)
class FinishedRun:
    """A run of the plan with the content of its ``metrics.json``.

    Attributes:
        run: which run it is.
        result: what it measured; a pure function of the run's specification, code and data.
        provenance: where, when and with what it was measured.
    """

    run: plan.Run
    result: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def identity(self) -> dict[str, Any]:
        """Which run it is, as columns of a table."""
        return identity(self.run)


def unspecified(one: FinishedRun, error: KeyError) -> DataError:
    """The error of a run whose result lacks a part of its specification."""
    return DataError(f"the result of the run {one.run.path} does not say with what {error} it was made; run it again")


def identity(run: plan.Run) -> dict[str, Any]:
    """Which run it is, as columns of a table."""
    return {part: getattr(run, part) for part in ("setting", "dataset", "clients", "method", "seed")}


def load(config: Config) -> list[FinishedRun]:
    """Read every run that the configuration asks for, and only runs of exactly that specification, code and data.

    Raises:
        DataError: if a run has not finished, its file is damaged, or it was made from something else than is asked for now.
    """
    return [load_one(config, run) for run in plan.runs(config)]


def load_one(config: Config, run: plan.Run) -> FinishedRun:
    """Read one run.

    Raises:
        DataError: as :func:`load`.
    """
    expected = records.of_run(config, run)
    path = expected.source
    if not path.exists():
        raise DataError(f"the run {run.path} has not finished ({path} does not exist); run `snakemake` to make it")
    metrics = records.read(path, expected.key)
    schemas.check(path, "result of a run", Metrics, metrics)
    return FinishedRun(run, metrics["result"], metrics["provenance"])


def table(finished: list[FinishedRun]) -> pd.DataFrame:
    """One row a run.

    Returns:
        setting, dataset, clients (NA where the method sees the whole graph), method, seed;
        best and last: test accuracy at the round best on validation and after the last round;
        validation: validation accuracy at that best round; global_validation: that of the same nodes on the global graph, as it
        is tested, and own: test accuracy where each node is classified by its owner on its own subgraph, NaN if not measured;
        client_accuracies: list of the clients' own test accuracies where each has its own model, else empty;
        rounds, best_round (mean over clients where each has its own);
        undertrained: see :func:`feddep.reporting.undertrained.is_undertrained`;
        bytes: all bytes that crossed any client's border, in either direction.
    """
    rows = []
    for one in finished:
        result = one.result
        rows.append(
            {
                **one.identity,
                "best": float(result["accuracy"]["best"]),
                "last": float(result["accuracy"]["last"]),
                "validation": float(result["validation"]["best"]),
                "global_validation": _best(result, "global_validation"),
                "own": _best(result, "local_before" if "local_before" in result else "own"),
                "client_accuracies": [float(client["accuracy"]["best"]) for client in result["clients"]],
                "rounds": len(result["curve"]["round"]),
                "best_round": float(np.mean(result["best_round"])),
                "undertrained": is_undertrained(result["best_round"], len(result["curve"]["round"])),
                "bytes": sum(int(entry["bytes"]) for entry in result["communication"]),
            }
        )
    return pd.DataFrame(rows).astype({"clients": "Int64"})


def curves(finished: list[FinishedRun]) -> pd.DataFrame:
    """One row a run and round.

    Returns:
        setting, dataset, clients, method, seed, round, loss (training), validation and test (accuracy).
    """
    frames = [
        pd.DataFrame({key: one.result["curve"][key] for key in ("round", "loss", "validation", "test")}).assign(**one.identity)
        for one in finished
    ]
    return pd.concat(frames, ignore_index=True).astype({"clients": "Int64"})


def over_seeds(rounds: pd.DataFrame, keys: Sequence[str], quantities: Sequence[str]) -> pd.DataFrame:
    """Quantities after each round, over seeds: a row for each value of the keys and round.

    Returns:
        The keys, round, and mean, low and high of each quantity, such as ``loss_mean``, ``loss_low`` and ``loss_high``.
    """
    found = rounds.groupby([*keys, "round"], sort=False, dropna=False)[list(quantities)].agg(["mean", "min", "max"])
    found.columns = [f"{quantity}_{end}" for quantity in quantities for end in ("mean", "low", "high")]
    return found.reset_index()


def _best(result: Mapping[str, Any], name: str) -> float:
    return float(result.get(name, {"best": np.nan})["best"])
