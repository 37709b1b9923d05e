"""A study's finished runs as one table, with a column for every option that differs between them."""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from feddep.config import variants
from feddep.config.loading import Config, entry
from feddep.experiment import plan
from feddep.reporting import markdown as md
from feddep.reporting import runs
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
from feddep.reporting.runs import FinishedRun
from feddep.utils.errors import ConfigError
from feddep.utils.files import canonical_json

SECTIONS = {"setting": "settings", "dataset": "datasets", "method": "methods"}
"""The parts of a run that may be variants, and where the configuration has their entries."""


@dataclass(frozen=True)
class Study:
    """The runs of a study, and what differs between them.

    Attributes:
        name: key of the study in the configuration.
        title: heading of its table and figure.
        finished: its runs, in the order of the plan.
        runs: one row a run, in the same order: setting, dataset and method as they are spelled, clients, seed; best and
            last (test accuracy), validation, undertrained and bytes as :func:`feddep.reporting.runs.table` gives them;
            trained_rounds; seconds of training the classifier, and seconds_before of all that was made for it; and a column for
            each of ``options``, None where the entry has no such option or the study leaves it as it is.
        options: what the study gives several values: the column, and whose option it is (a key of :data:`SECTIONS`).
        short: for each key of :data:`SECTIONS` the spelled names, without the options that have a column of their own.
        score: column of ``runs`` that a grid ranks by.
        search_seeds: seeds of the runs that hyperparameters are chosen by.
    """

    name: str
    title: str
    finished: list[FinishedRun]
    runs: pd.DataFrame
    options: dict[str, str]
    short: dict[str, dict[str, str]]
    score: str = "validation"
    search_seeds: tuple[int, ...] = ()

    @property
    def points(self) -> pd.DataFrame:
        """The runs under their short names: with the options, setting, dataset, clients and method, they tell runs apart."""
        return self.runs.assign(**{part: self.runs[part].map(names) for part, names in self.short.items()})

    def columns(self, *parts: str) -> list[str]:
        """The options of these parts of a run: of ``setting``, ``dataset`` or ``method``."""
        return [column for column, part in self.options.items() if part in parts]

    def values(self, column: str) -> list[Any]:
        """The values of an option, as :func:`ordered` has them."""
        return ordered(self.runs[column])

    def size(self) -> str:
        """``6 runs, 2 seeds (0, 2)``; where datasets have different ones, ``2 seeds (0, 2) on Cora, 1 seed (0) on PubMed``."""
        datasets: dict[tuple[int, ...], list[str]] = {}
        for dataset, runs_of in self.runs.groupby(self.runs["dataset"].map(variants.base), sort=False):
            datasets.setdefault(tuple(sorted(runs_of["seed"].unique())), []).append(dataset_title(str(dataset)))
        parts = [f"{len(self.runs)} runs"]
        for seeds, names in datasets.items():
            counted = f"{len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'} ({', '.join(map(str, seeds))})"
            parts.append(counted if len(datasets) == 1 else f"{counted} on {' and '.join(names)}")
        return ", ".join(parts)


def ordered(values: Iterable[Any]) -> list[Any]:
    """Distinct values but None: numbers ascending, and with anything else among them as they come."""
    found = list(dict.fromkeys(value for value in values if value is not None))
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found


def load(config: Config, name: str) -> Study:
    """Read the results of a study.

    Raises:
        ConfigError: if the configuration has no such study.
        DataError: if a run has not finished, its file is damaged, or it was made from something else than is asked for now.
    """
    if name not in config["studies"]:
        known = ", ".join(config["studies"]) or "none"
        raise ConfigError(f"studies.{name} is not in the configuration; there are {known}")
    return assemble(config, name, [runs.load_one(config, run) for run in plan.study_runs(config, name)])


def assemble(config: Config, name: str, finished: list[FinishedRun]) -> Study:
    """The study of runs that are at hand."""
    table = runs.table(finished).drop(columns=["client_accuracies", "best_round"])
    table = table.rename(columns={"rounds": "trained_rounds"})
    table["seconds"] = [float(one.provenance.get("seconds", math.nan)) for one in finished]
    table["seconds_before"] = [math.fsum(one.provenance.get("seconds_before", {}).values()) for one in finished]

    varied = {part: _varied(config, section, list(dict.fromkeys(table[part]))) for part, section in SECTIONS.items()}
    places = [(part, key) for part, entries in varied.items() for keys in entries.values() for key in keys]
    options = {}
    for part, key in dict.fromkeys(places):
        alone = key not in table.columns and all(part == other for other, same in places if same == key)
        column = key if alone else f"{part}.{key}"
        options[column] = part
        table[column] = pd.Series([_value(config, varied, one.run, part, key) for one in finished], dtype=object)
    short = {
        part: {spelled: without(spelled, varied[part][variants.base(spelled)]) for spelled in dict.fromkeys(table[part])}
        for part in SECTIONS
    }
    title = config["studies"][name]["title"] or name
    entry_of = config["studies"][name]
    return Study(name, title, finished, table, options, short, entry_of["score"], tuple(entry_of["search_seeds"] or ()))


def _varied(config: Config, section: str, names: list[str]) -> dict[str, list[str]]:
    """For each entry the options that have several values under its spelled names."""
    entries: dict[str, list[str]] = {}
    for name in names:
        entries.setdefault(variants.base(name), []).append(name)
    varied = {}
    for base, spelled in entries.items():
        keys = dict.fromkeys(key for name in spelled for key in variants.read(name)[1])
        # An entry of which only one form is there needs no look at its options.
        complete = [entry(config, section, name) for name in spelled] if len(spelled) > 1 else []
        varied[base] = [key for key in keys if len({canonical_json(options[key]) for options in complete}) > 1]
    return varied


def _value(config: Config, varied: dict[str, dict[str, list[str]]], run: plan.Run, part: str, key: str) -> Any:
    """What a run has for an option: a number, or text as the configuration writes it; None where it is not varied."""
    spelled: str = getattr(run, part)
    if key not in varied[part][variants.base(spelled)]:
        return None
    dataset = run.dataset if part == "method" else None
    value = entry(config, SECTIONS[part], spelled, dataset)[key]
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)


def without(spelled: str, keys: Collection[str]) -> str:
    """A spelled name without some of its options."""
    name, changes = variants.read(spelled)
    return variants.format_name(name, {key: value for key, value in changes.items() if key not in keys})


KEYS = ["setting", "dataset", "clients", "method"]


def summarise(study: Study) -> pd.DataFrame:
    """Summarise a study over seeds, one row a point, in the papers' order.

    Returns:
        setting, dataset, clients, method and the study's options; and, named as in the main table, seeds; mean and std of
        test accuracy at the round best on validation, last_mean and last_std after the last round; validation_mean;
        own_mean, where all runs measured it: test accuracy with each node classified by its owner; undertrained, the share
        of such runs; bytes, seconds and seconds_before, means over seeds.
    """
    keys = [*KEYS, *study.options]
    groups = study.points.groupby(keys, sort=False, dropna=False)
    summary = groups.agg(
        seeds=("seed", "size"),
        mean=("best", "mean"),
        std=("best", "std"),
        last_mean=("last", "mean"),
        last_std=("last", "std"),
        validation_mean=("validation", "mean"),
        **({"own_mean": ("own", "mean")} if study.runs["own"].notna().all() else {}),
        undertrained=("undertrained", "mean"),
        bytes=("bytes", "mean"),
        seconds=("seconds", "mean"),
        seconds_before=("seconds_before", "mean"),
    ).reset_index()
    summary["bytes"] = summary["bytes"].round().astype("int64")
    order = {
        "setting": list(dict.fromkeys(summary["setting"])),
        "dataset": sort_datasets(summary["dataset"]),
        "method": sort_methods(summary["method"]),
        **{column: study.values(column) for column in study.options},
    }
    places = {column: summary[column].map({value: k for k, value in enumerate(values)}) for column, values in order.items()}
    places["clients"] = summary["clients"]
    rows = pd.DataFrame(places).astype("Float64").fillna(-1).sort_values(list(places)).index  # where there is no option: first
    return summary.loc[rows].reset_index(drop=True)


def summarise_with(study: Study, beside: pd.DataFrame) -> pd.DataFrame:
    """The summary over seeds with further columns; ``beside`` has a row a run, the same for all seeds of a point."""
    keys = [*KEYS, *study.options]
    points = study.points[keys].join(beside).groupby(keys, sort=False, dropna=False).first()
    return summarise(study).merge(points.reset_index(), how="left", on=keys)


def places(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Settings and datasets, in the order of the rows."""
    return list(dict.fromkeys(zip(table["setting"], table["dataset"], strict=True)))


def panel_title(table: pd.DataFrame, setting: str, dataset: str) -> str:
    """The dataset, and the setting if the table has several."""
    return dataset_title(dataset) + ("" if table["setting"].nunique() == 1 else f", {setting}")


def line_name(line: Mapping[str, Any], options: Iterable[str]) -> str:
    """The method with the options that it has: ``FedDEP, prototypes=3``."""
    known = [f"{option}={md.value(line[option])}" for option in options if line[option] is not None]
    return ", ".join([method_title(line["method"]), *known])
