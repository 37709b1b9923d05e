"""The table of runs: a row for each trained run, recognised by its key, and beside it the curves of
all trainings.

A protocol, which is the name of a setting, has ``PROTOCOL.csv`` and a folder ``PROTOCOL/`` of
Parquet files with the curves in ``results/runs/``, which git keeps.  Both only grow: a publication
appends lines to the table and adds one file of curves, so that git stores each run once.  Training
writes ``KEY.json`` to a cache, which git does not keep; :func:`publish` adds it to the tables.
Whoever reads a run gets it from either.  A key that is in a table is done; curves of a key that is
in none are not read.
"""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from feddep.config.loading import Config
from feddep.config.models import Dataset, PartitionOptions, SplitOptions
from feddep.experiment import keys
from feddep.methods import registry
from feddep.training.config import TrainingConfig
from feddep.training.evaluation import MOMENTS, is_after_better
from feddep.utils.csv_files import FROM_0, PRINTED, append_rows, read_checked
from feddep.utils.errors import DataError, one_line
from feddep.utils.files import atomic_path, exclusive, read_json, write_json
from feddep.utils.parameters import Parameters

if TYPE_CHECKING:
    from feddep.experiment.plan import Run

# Of the rows of one publication.
_ORDER = [
    *(
        "dataset",
        "clients",
        "method",
        "parameters",
        "training",
        "partition",
        "data_options",
        "split",
    ),
    *("seed", "key"),
]


class Column(NamedTuple):
    """A column of a table: its type in pandas, what it says, and its unit, if it has one."""

    type: str
    meaning: str
    unit: str = ""


_MEASURED = ("global_validation", "validation_after", "local_before", "local_after")
_ROUNDS = {"": "", "_last": ", in the last round"}
_ACCURACIES = {
    "test": "accuracy, or area under the ROC curve, of the test nodes on the global graph",
    "validation": "the same of the validation nodes, by their owners before the local steps",
    "global_validation": "the same of the validation nodes on the global graph",
    "validation_after": "the same of the validation nodes, by their owners after the local steps",
    "local_before": "the same of the test nodes, by their owners before the local steps",
    "local_after": "the same of the test nodes, by their owners after the local steps",
}
SCHEMA: dict[str, Column] = {
    "key": Column("string", "content key of the run (`feddep.experiment.keys`)"),
    "setting": Column("string", "the protocol"),
    "training": Column("string", "options of the setting that differ from their defaults"),
    "dataset": Column("string", "name of the graph"),
    "data_options": Column("string", "options of the dataset that differ from their defaults"),
    "split": Column("string", "which nodes train, validate and test: method and options"),
    "partition": Column(
        "string", "how nodes are divided among clients; empty where a method sees the whole graph"
    ),
    "clients": Column("Int64", "number of clients; empty where a method sees the whole graph"),
    "method": Column("string", "name of the method"),
    "parameters": Column("string", "parameters of the method that differ from their defaults"),
    "seed": Column("Int64", "what split, partition, initial weights and every draw follow from"),
    **{
        f"{name}{end}": Column("float64", f"{meaning}{when}", "0–1")
        for name, meaning in _ACCURACIES.items()
        for end, when in _ROUNDS.items()
    },
    "rounds": Column("Int64", "rounds that were trained"),
    "best_round": Column(
        "string",
        "JSON: the round best on validation nodes, from 1; a list of each client's, or, where the "
        "evaluation is `owners`, of that before and that after the local steps",
    ),
    "client_accuracies": Column(
        "string",
        "JSON: the test accuracy of each client with a model of its own; before and after the "
        "local steps where the evaluation is `owners`",
        "0–1",
    ),
    "stalled": Column("boolean", "whether the run is no better than a constant answer"),
    "bytes": Column("Int64", "all that crossed the clients' boundaries", "bytes"),
    "bytes_by_kind": Column("string", "JSON: the same by kind of message", "bytes"),
    "seconds": Column("float64", "time of training", "seconds"),
    "seconds_before": Column("string", "JSON: time of each step before training", "seconds"),
    "data": Column("string", "first 16 digits of the fingerprint of the graph"),
    "commit": Column("string", "commit of the code; `+` where it was changed"),
    "machine": Column(
        "string", "operating system, versions of Python and PyTorch, device, threads"
    ),
    "macro_f1": Column(
        "float64",
        "macro-F1 of the test nodes on the global graph",
        "0–1",
    ),
    "macro_f1_before": Column("float64", "the same, by their owners before the local steps", "0–1"),
    "macro_f1_after": Column("float64", "the same after the local steps", "0–1"),
    "time": Column("string", "when the run ended, in UTC"),
}
"""The columns of the table; options are ``name=value``, separated by spaces."""
COLUMNS: dict[str, str] = {name: column.type for name, column in SCHEMA.items()}
"""Their types in pandas."""
CURVES = ("round", "loss", "validation", "test", "local_before", "local_after")
"""The columns of the curves beside the key; NaN where a quantity was not measured."""
_NUMBER, _SHARE = r"\d+(\.\d+)?(e-?\d+)?", r"(0\.\d+|1\.0|\d(\.\d+)?e-\d+|NaN)"
_OWN = rf"({_SHARE}|\[{_SHARE}, {_SHARE}\])"  # before and after the local steps
_ALLOWED: dict[str, str | tuple[float, float]] = {
    **dict.fromkeys(("key", "data"), "[0-9a-f]{16}"),
    **dict.fromkeys(("setting", "dataset", "method"), r"[a-z]\w*"),
    **dict.fromkeys(("training", "data_options", "parameters"), r"\w+=.+"),
    **dict.fromkeys(("split", "partition"), r"\w+( \w+=.+)?"),
    **{name: (0, 1) for name, kind in COLUMNS.items() if kind == "float64"},
    **dict.fromkeys(("seed", "bytes", "seconds"), FROM_0),
    **dict.fromkeys(("clients", "rounds"), (1, sys.float_info.max)),
    "best_round": r"[1-9]\d*|\[[1-9]\d*(, [1-9]\d*)*\]",
    "client_accuracies": rf"\[{_OWN}(, {_OWN})*\]",
    "bytes_by_kind": r'\{("[^"\\]+": \d+(, "[^"\\]+": \d+)*)?\}',
    "seconds_before": rf'\{{("\w+": {_NUMBER}(, "\w+": {_NUMBER})*)?\}}',
    "commit": r"[0-9a-f]{12}\+?",
    "machine": PRINTED,
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00",
}
"""What a cell may be: text of this pattern, or a number from the first to the second."""
_OPTIONAL = {
    *(name for name, kind in COLUMNS.items() if kind == "float64" and name != "seconds"),
    *("training", "data_options", "partition", "clients", "parameters"),
    *("client_accuracies", "commit"),
}
"""Columns that may be empty."""
# A loss is a mean of float32: further digits only took a quarter of the room of curves.
_CURVE_TYPES = {"key": "string", **dict.fromkeys(CURVES[1:], "float64"), "loss": "float32"}


def row(
    key: str,
    setting: str,
    specification: Mapping[str, Any],
    result: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """The row of a run.

    Args:
        key: its content key.
        setting: name of its setting.
        specification: all that determines it but the data
            (:func:`feddep.experiment.keys.specification`).
        result: what it measured (:func:`feddep.training.summary.summary`).
        provenance: where, when and with what it was measured
            (:func:`feddep.experiment.provenance.environment`), with ``seconds`` and
            ``seconds_before``.
    """
    accuracies = [client["accuracy"]["best"] for client in result["clients"]]
    macro_f1 = result["macro_f1"]
    return {
        "key": key,
        **described(setting, specification),
        **_both("test", result["accuracy"]),
        **{
            key: value
            for name in ("validation", *_MEASURED)
            for key, value in _both(name, result.get(name)).items()
        },
        "rounds": len(result["curve"]["round"]),
        "best_round": json.dumps(result["best_round"]),
        "client_accuracies": json.dumps(accuracies) if accuracies else None,
        "stalled": result["stalled"],
        "bytes": sum(sent["bytes"] for sent in result["communication"]),
        "bytes_by_kind": json.dumps(bytes_by_kind(result["communication"])),
        "seconds": provenance["seconds"],
        "seconds_before": json.dumps(provenance["seconds_before"], sort_keys=True),
        "data": provenance["data_fingerprint"][:16],
        "commit": provenance["git"]["commit"]
        and provenance["git"]["commit"][:12] + ("+" if provenance["git"]["dirty"] else ""),
        "machine": machine(provenance),
        "macro_f1": _known(macro_f1["global"]),
        **{f"macro_f1_{moment}": _known(macro_f1[moment]) for moment in MOMENTS},
        "time": provenance["time"],
    }


def described(setting: str, specification: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that say which run it is, for people; its key says it exactly."""
    data, partition, method = (
        dict(specification[part] or {}) for part in ("dataset", "partition", "method")
    )
    data.pop("synthetic", None)
    clients, divided = partition.pop("clients", None), partition.pop("method", None)
    dataset, name = data.pop("name"), method.pop("name")
    how, shares = data.pop("split", "random"), dict(specification["split"])
    del shares["test"]  # what is left
    return {
        "setting": setting,
        "training": _options(specification["setting"], TrainingConfig().model_dump(mode="json")),
        "dataset": dataset,
        "data_options": _options(data, Dataset().model_dump(mode="json")),
        "split": _division(how, shares, SplitOptions()),
        "partition": divided
        and _division(divided, partition, PartitionOptions(engine="python-louvain")),
        "clients": clients,
        "method": name,
        "parameters": _options(method, registry.find(name).parameters().model_dump(mode="json")),
        "seed": specification["seed"],
    }


def _division(method: str, options: Mapping[str, Any], defaults: Parameters) -> str:
    """How nodes are split or partitioned: the method, and what differs from the defaults."""
    return " ".join(filter(None, [method, _options(options, defaults.model_dump())]))


def _options(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> str | None:
    differing = {key: value for key, value in given.items() if value != defaults[key]}
    return (
        " ".join(
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in differing.items()
        )
        or None
    )


def _both(name: str, measured: Mapping[str, float] | None) -> dict[str, float | None]:
    both = {"best": None, "last": None, **(measured or {})}
    return {column: _known(both[end]) for column, end in ((name, "best"), (f"{name}_last", "last"))}


def _known(value: float | None) -> float | None:
    """A number; None for what was not measured, as the accuracy on the global graph of models that
    stay with their owners.
    """
    return None if value is None or math.isnan(value) else value


def bytes_by_kind(communication: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Bytes of all clients in both directions, by kind of message."""
    found: Counter[str] = Counter()
    for sent in communication:
        found[sent["kind"]] += sent["bytes"]
    return dict(sorted(found.items()))


def machine(provenance: Mapping[str, Any]) -> str:
    """The machine and versions of a run, on one line."""
    torch = provenance["packages"]["torch"]
    counted = f"{provenance['threads']} thread{'s' if provenance['threads'] != 1 else ''}"
    return (
        f"{provenance['platform']}, Python {provenance['python']}, torch {torch}, "
        f"{provenance['device']}, {counted}"
    )


def curve(result: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The curves of a run, a list over the rounds for each of :data:`CURVES` that was measured."""
    return {
        name: list(map(_known, result["curve"][name])) for name in CURVES if name in result["curve"]
    }


# --- reading ---


def tables(directory: Path) -> list[Path]:
    """The tables of runs in a folder: each CSV file beside a folder of the same name, its curves.

    A folder alone was left by a publication that ended before it had written its rows.
    """
    return [file for file in sorted(directory.glob("*.csv")) if file.with_suffix("").is_dir()]


def published(directory: Path) -> set[str]:
    """The keys of all runs that are in a table."""
    found: set[str] = set()
    for file in tables(directory):
        with file.open(encoding="utf-8", errors="replace") as lines:
            found.update(line.partition(",")[0] for line in lines)
    return found


def cached(config: Config, key: str) -> Path:
    """Where the training of a run writes."""
    return Path(config["output"], ".cache", "runs", f"{key}.json")


def missing(config: Config, runs: "Iterable[Run]") -> "dict[Run, str]":
    """The runs that are in no table, or all if the configuration does not use tables, with their
    keys.
    """
    known = published(Path(config["records"]["directory"])) if config["records"]["use"] else set()
    return {run: run.key for run in runs if run.key not in known}


def untrained(config: Config, runs: "Iterable[Run]") -> "list[Run]":
    """The runs that are in no table and were not trained here; of those with one key the last."""
    absent = {key: run for run, key in missing(config, runs).items()}
    return [run for key, run in absent.items() if not cached(config, key).exists()]


def are_trained(config: Config, runs: "Iterable[Run]") -> bool:
    """Whether each run is in a table, or was trained here."""
    return not untrained(config, runs)


def load(config: Config, runs: "Sequence[Run]") -> pd.DataFrame:
    """Measurements of runs, a row each in their order: :data:`COLUMNS`, but setting, dataset and
    method as the plan spells them.

    Raises:
        DataError: if one has not been trained, or a file is damaged.
    """
    # Runs that differ in their names alone have one key.
    order = [run.key for run in runs]
    absent = set(missing(config, runs).values())
    frames = [
        table[table["key"].isin(set(order) - absent)]
        for table in map(read_table, tables(Path(config["records"]["directory"])))
    ]
    trained = [read_json(cached(config, key), key)["row"] for key in sorted(absent)]
    found = pd.concat(
        [*frames, typed(pd.DataFrame(trained, columns=list(COLUMNS)))], ignore_index=True
    )
    ordered = found.set_index("key", drop=False).loc[order].reset_index(drop=True)
    _check_identity(ordered, runs)
    spelled = [run.columns for run in runs]
    for part in ("setting", "dataset", "method"):
        ordered[part] = pd.array([columns[part] for columns in spelled], dtype="string")
    return ordered


def as_owners_choose(recorded: pd.DataFrame) -> pd.DataFrame:
    """The runs that owners judged with the accuracies of the models that they would use: before or
    after a round's local steps.

    All owners of a run take the same, that which is right on more of all their validation nodes.
    """
    after = is_after_better(recorded["validation"], recorded["validation_after"])
    found = recorded.copy()
    for which, when in (
        (after, "after"),
        (recorded["validation_after"].notna() & ~after, "before"),
    ):
        for end in ("", "_last"):
            found.loc[which, f"test{end}"] = recorded[f"local_{when}{end}"]
        found.loc[which, "macro_f1"] = recorded[f"macro_f1_{when}"]
        place = MOMENTS.index(when)
        found.loc[which, "best_round"] = [
            str(json.loads(pair)[place]) for pair in recorded.loc[which, "best_round"]
        ]
        pairs = map(json.loads, recorded.loc[which, "client_accuracies"])
        found.loc[which, "client_accuracies"] = [
            json.dumps([pair[place] for pair in of]) for of in pairs
        ]
    found.loc[after, "validation"] = recorded["validation_after"]
    return found


def _check_identity(rows: pd.DataFrame, runs: "Sequence[Run]") -> None:
    """Make sure that rows say of themselves what their keys stand for."""
    parts = ("dataset", "clients", "method", "seed")
    named = [(run.dataset.name, run.clients, run.method.name, run.seed) for run in runs]
    asked = pd.DataFrame(named, columns=list(parts)).astype({part: COLUMNS[part] for part in parts})
    off = rows[list(parts)].compare(asked)
    if len(off):
        wrong = off.columns.get_level_values(0)[0]
        row = rows.loc[off[wrong].dropna(how="all").index[0]]
        raise DataError(
            f"the row {row['key']} in the table of runs has the {wrong} {row[wrong]}, which its "
            "key does not stand for; take the table from git again"
        )


def load_curves(config: Config, runs: "Sequence[Run]") -> pd.DataFrame:
    """The curves of runs: key and :data:`CURVES`, a row a run and round, in the order of the runs.

    Raises:
        DataError: if one has not been trained, or a file is damaged.
    """
    order = {run.key: place for place, run in enumerate(runs)}
    absent = set(missing(config, runs).values())
    wanted = set(order) - absent
    directory = Path(config["records"]["directory"])
    frames = [
        _frame(key, read_json(cached(config, key), key)["curve"]) for key in order if key in absent
    ]
    for table in tables(directory) if wanted else ():
        frames.append(read_curves(table.with_suffix(""), wanted))
    found = pd.concat(frames, ignore_index=True)
    if lost := wanted - set(found["key"]):
        raise DataError(
            f"{directory} has rows of runs without their curves, such as {min(lost)}; take the "
            "curves from git again"
        )
    return found.sort_values(
        "key", key=lambda column: column.map(order), kind="stable"
    ).reset_index(drop=True)


def read_table(file: Path) -> pd.DataFrame:
    """A table of runs.

    Raises:
        DataError: if it is damaged.
    """
    table = read_checked(file, COLUMNS, _ALLOWED, _OPTIONAL)
    if list(table) != list(COLUMNS):
        raise DataError(f"{file} does not have the columns of a table of runs in their order")
    folder, rounds = file.with_suffix(""), dict[Any, int]()
    for curves in _curves_in(folder):
        found = _read_parquet(curves, columns=["key"], read_dictionary=["key"])
        rounds.update(found["key"].value_counts().to_dict())
    of_row = table["key"].map(rounds).fillna(0)
    if lost := table["key"][of_row != table["rounds"]].tolist():
        raise DataError(
            f"{folder} does not have the curves of all rounds of {len(lost)} runs of {file}, such "
            f"as {lost[0]}; take both from git again"
        )
    return table


def _curves_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.parquet"))


def _read_parquet(file: Path, **what: Any) -> pd.DataFrame:
    try:
        return pd.read_parquet(file, page_checksum_verification=True, **what)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file} has no curves of runs ({one_line(str(error))}); take it from git again"
        ) from None


def read_curves(folder: Path, wanted: Iterable[str] | None = None) -> pd.DataFrame:
    """The curves of the wanted keys, or of all, in a folder of a protocol's curves.

    Where several files have a key, the last by name counts: one was left by a publication that
    ended before it had written its rows, or a row was deleted for its run to be recorded anew.

    Raises:
        DataError: if a file is damaged.
    """
    filters = None if wanted is None else [("key", "in", set(wanted))]
    frames, known = [], set[str]()
    for file in reversed(_curves_in(folder)):
        found = _read_parquet(file, columns=["key", *CURVES], filters=filters)
        found = found.astype(_CURVE_TYPES)
        shares = found[list(CURVES[2:])]
        if ((shares < 0) | (shares > 1)).any(axis=None) or np.isinf(found["loss"]).any():
            raise DataError(
                f"{file} has accuracies outside 0 to 1 or an infinite loss; take it from git again"
            )
        frames.append(found[~found["key"].isin(known)])
        known.update(found["key"].unique())
    return pd.concat(frames[::-1], ignore_index=True) if frames else _frame([], {})


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """A table with the types of :data:`COLUMNS`."""
    return table.astype(COLUMNS)


def _frame(key: str | list[str], curves: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    return (
        pd.DataFrame({"key": key, **curves}).reindex(columns=["key", *CURVES]).astype(_CURVE_TYPES)
    )


def typical_seconds(config: Config) -> dict[tuple[str, str], float]:
    """The median of the seconds of recorded runs with their steps, by dataset and method."""
    files = tables(Path(config["records"]["directory"]))
    if not files:
        return {}
    recorded = pd.concat(map(read_table, files)).set_index(["dataset", "method"])
    before = recorded["seconds_before"].map(lambda text: sum(json.loads(text).values()))
    medians = (recorded["seconds"] + before).groupby(level=[0, 1]).median()
    return dict(zip(medians.index.tolist(), medians.tolist(), strict=True))


def estimate(config: Config, runs: "Iterable[Run]") -> tuple[float, int]:
    """Seconds that runs will take: the median of recorded runs of the same method on the same
    dataset.

    Returns:
        The sum, and how many runs have none like them in the tables.
    """
    known = typical_seconds(config)
    found = [known.get((run.dataset.name, run.method.name)) for run in runs]
    return float(sum(seconds for seconds in found if seconds is not None)), found.count(None)


# --- writing ---


def write_cached(
    run: "Run", result: Mapping[str, Any], provenance: Mapping[str, Any], file: Path
) -> None:
    """Write what training a run yields: its row, its curves, and what was sent by client, direction
    and kind.
    """
    measured = row(run.key, run.setting.name, run.specification, result, provenance)
    content = {"row": measured, "curve": curve(result)}
    write_json(file, {**content, "communication": result["communication"]}, run.key)


def publish(config: Config, runs: "Sequence[Run]") -> int:
    """Add runs of the cache that no table has to the tables of their protocols; returns how many.

    Raises:
        DataError: if one has not been trained, or a file is damaged.
    """
    directory = Path(config["records"]["directory"])
    with exclusive(directory):
        recorded = published(directory)
        contents = [
            read_json(cached(config, key), key)
            for key in dict.fromkeys(run.key for run in runs)
            if key not in recorded
        ]
        for protocol in sorted({content["row"]["setting"] for content in contents}):
            of_protocol = [content for content in contents if content["row"]["setting"] == protocol]
            rows = pd.DataFrame([content["row"] for content in of_protocol], columns=list(COLUMNS))
            curves = [_frame(content["row"]["key"], content["curve"]) for content in of_protocol]
            append(directory, protocol, typed(rows), pd.concat(curves))
    return len(contents)


def append(directory: Path, protocol: str, rows: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Add rows, none of which is recorded, to the table of a protocol, and their curves in a file
    of their own.

    The curves are written first: if the process ends before the rows are, no table has these runs,
    and they are added once more.
    """
    table = directory / f"{protocol}.csv"
    if table.is_file():
        read_table(table)  # nothing is added to one that is damaged
    rows = rows.sort_values(_ORDER, na_position="first")
    place = {key: number for number, key in enumerate(rows["key"])}
    curves = curves.sort_values("key", key=lambda column: column.map(place), kind="stable")
    # A later publication has a later name, and the same runs have the same one.
    time = re.sub(r"\D", "", rows["time"].max()[:19])
    name = f"{time}-{keys.digest({'keys': sorted(rows['key'])})}.parquet"
    with atomic_path(directory / protocol / name) as scratch:
        # A dictionary of accuracies or losses takes more room than it saves.
        curves.reset_index(drop=True).to_parquet(
            scratch,
            index=False,
            compression="zstd",
            compression_level=19,
            use_dictionary=["key"],
            column_encoding={"loss": "BYTE_STREAM_SPLIT"},
            write_page_checksum=True,
        )
    append_rows(table, rows)
