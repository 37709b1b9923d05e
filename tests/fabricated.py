"""Runs that never were, with numbers that are easy to compute with."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from feddep.config.loading import Config, validate
from feddep.experiment import plan, runs
from feddep.experiment.plan import Run
from feddep.reporting.load import Study, assemble
from feddep.utils.csv_files import append_rows

RAW: dict[str, Any] = {
    "datasets": {"cora": {}, "citeseer": {}},
    "clients": [5, 10],
    "seeds": [0, 1, 2],
    "settings": {name: {"rounds": 4} for name in ("feddep", "vesper")},
    "methods": {"feddep": {"prototypes": None}},
    "tables": [
        {
            "setting": "feddep",
            "datasets": ["cora", "citeseer"],
            "methods": ["global", "fedavg", "feddep"],
        }
    ],
    "studies": [{"name": "made_up", "kind": "sweep", "title": "A study", "runs": [{}]}],
}
T_95_TWO_DEGREES = 4.302652729911275
"""97.5 % quantile of Student's t with two degrees of freedom, as printed in every table."""
Finished = tuple[Callable[[Config], Run], dict[str, Any]]
"""A run in a configuration, and its row."""


def two_sided_p(t: float) -> float:
    """p of a two-sided t-test with two degrees of freedom, which has a closed form."""
    return 1 - abs(t) / math.sqrt(t * t + 2)


def finished(
    method: str,
    seed: int,
    best: float,
    *,
    dataset: str = "cora",
    clients: int | None = 5,
    setting: str = "feddep",
    rounds: int = 4,
    best_round: int | list[int] | None = None,
    accuracies: list[float] | None = None,
    before: Mapping[str, float] | None = None,
    partition: str | None = None,
    **measured: Any,
) -> Finished:
    """A run and its row; without a best round it is best at its last but one, and 0.02 worse at the
    last.
    """
    names = {"setting": setting, "dataset": dataset}
    if partition is not None:
        names, dataset = {**names, "partition": partition}, f"{dataset},partition={partition}"

    def run(config: Config) -> Run:
        return plan.one_run(config, method, clients, seed, **names)

    sent = {"model": 1000 * (clients or 0)}
    row = {
        **{
            "key": "/".join(map(str, (setting, dataset, clients, method, seed))),
            "setting": setting,
            "dataset": dataset,
            "clients": clients,
            "method": method,
            "seed": seed,
        },
        **{
            "test": best,
            "test_last": best - 0.02,
            "validation": 0.5,
            "rounds": rounds,
            "bytes": sum(sent.values()),
        },
        **{
            "best_round": json.dumps(best_round or rounds - 1),
            "client_accuracies": accuracies and json.dumps(accuracies),
        },
        **{
            "bytes_by_kind": json.dumps(sent),
            "seconds": 2.0,
            "seconds_before": json.dumps(before or {}),
        },
        **{
            "data": "f1" * 8,
            "commit": "c0ffee" * 2,
            "machine": "a computer",
            "time": f"2026-01-0{1 + seed % 9}T12:00:00+00:00",
        },
        **measured,
    }
    return run, row


def table(found: Iterable[Finished]) -> pd.DataFrame:
    """The runs as the table of runs has them."""
    return runs.typed(pd.DataFrame([row for _, row in found], columns=list(runs.COLUMNS)))


def study(*found: Finished, raw: dict[str, Any] = RAW, **options: Any) -> Study:
    """The study of these runs, in this order; ``options`` are those of its entry in the
    configuration.
    """
    config = validate({**raw, "studies": [{**RAW["studies"][0], **options}]})
    return assemble(config, "made_up", [run(config) for run, _ in found], table(found))


def row(of: pd.DataFrame, /, **where: Any) -> dict[str, Any]:
    """The one row that has these values."""
    for column, value in where.items():
        of = of[of[column].isna() if value is None else of[column] == value]
    (found,) = of.to_dict("records")
    return found


def publish(root: Path, raw: dict[str, Any], **measured: Any) -> Config:
    """A configuration whose runs are all in tables of runs: seed k and place n have accuracy 0.7 +
    0.01 k + 0.001 n.
    """
    config = validate(
        {**raw, "output": str(root / "results"), "records": {"directory": str(root / "runs")}}
    )
    while absent := runs.missing(config, plan.all_runs(config)):
        _append(root / "runs", absent, **measured)
    facts: dict[str, Any] = {"nodes": 100, "edges": 400, "features": 10, "classes": 2}
    facts |= dict.fromkeys(("max_degree", "mean_degree", "words_per_node"), 8)
    facts |= {"components": 1, "largest_component": 100, "isolated_nodes": 0}
    facts |= {"source": "made up", "fingerprint": "f1" * 32, "label_counts": "[50, 50]"}
    rows = [{"key": key, "name": name, **facts} for name, key in plan.graphs(config).items()]
    append_rows(root / "runs" / "graphs.csv", pd.DataFrame(rows))
    rows = [{"key": run.partition_key, **_partition(run)} for run in plan.partitions(config)]
    append_rows(root / "runs" / "partitions.csv", pd.DataFrame(rows))
    return config


def _append(folder: Path, planned: Iterable[Run], **measured: Any) -> None:
    """Add runs to the table of a folder."""
    rows, curves = [], []
    for number, run in enumerate(planned):
        rounds = run.specification["setting"]["rounds"]
        best = 0.7 + 0.01 * run.seed + 0.001 * (7 * number % 13)
        given = {"clients": run.clients, "rounds": rounds, "validation": best, "stalled": False}
        _, made = finished(run.method.label, run.seed, best, **given, **measured)
        described = runs.described(run.setting.name, run.specification)
        rows.append({**made, **described, "key": run.key})
        climb = {
            "round": range(1, rounds + 1),
            "loss": 1.0,
            "validation": best,
            "test": best,
        }
        curves.append(
            pd.DataFrame({"key": rows[-1]["key"], **climb}).reindex(columns=["key", *runs.CURVES])
        )
    fabricated = runs.typed(pd.DataFrame(rows, columns=list(runs.COLUMNS)).drop_duplicates("key"))
    runs.append(
        folder,
        "feddep",
        fabricated,
        pd.concat(curves).drop_duplicates(["key", "round"]).astype({"key": "string"}),
    )


def _partition(run: Run) -> dict[str, Any]:
    """Ten missing edges a client, and one more with each seed."""
    assert run.clients is not None
    missing = 10 * run.clients + run.seed
    means = {
        "mean_client_nodes": 100 / run.clients,
        "mean_client_edges": (400 - missing) / run.clients,
    }
    return {
        "dataset": run.dataset.name,
        "clients": run.clients,
        "seed": run.seed,
        **means,
        "per_client": '[{"classes": [50, 50], "client": 0, "edges": 9, "nodes": 100}]',
        "missing_edges": missing,
        "cut_nodes": 0,
    }
