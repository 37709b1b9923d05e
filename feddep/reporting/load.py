"""The runs of a study as one long table, with a column for every option that differs between
them.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from feddep.config import variants
from feddep.config.entries import Entry
from feddep.config.loading import Config
from feddep.experiment import plan, runs
from feddep.reporting import frames, statistics
from feddep.reporting.labels import dataset_title, without
from feddep.training.evaluation import is_unfinished
from feddep.utils.errors import ConfigError
from feddep.utils.files import canonical_json

PARTS = ("setting", "dataset", "method")
"""The parts of a run that may differ from their entries in the configuration; a dataset's split and
partition are parts of it.
"""
KEYS = ["setting", "dataset", "clients", "method"]
"""Columns that identify a row of a study, beside its options."""
_MEASURED = [
    "seed",
    "test",
    "test_last",
    "validation",
    "global_validation",
    "local_before",
    "local_after",
    "macro_f1",
    "bytes",
    "seconds",
]


@dataclass(frozen=True)
class Study:
    """The runs of a study, and what differs between them.

    Attributes:
        config: the configuration.
        name: key of the study there.
        plan: its runs.
        recorded: what they measured, as the table of runs has it
            (:func:`feddep.experiment.runs.load`).
        runs: the same as :func:`tidy` has it, with a column for each of ``options``, None where the
            entry has no such option or the study leaves it as it is.
        options: what the study gives several values: the column, and whose option it is (a key of
            :data:`PARTS`).
        short: for each key of :data:`PARTS` the spelled names, without the options that have a
            column of their own.
    """

    config: Config
    name: str
    plan: Sequence[plan.Run]
    recorded: pd.DataFrame
    runs: pd.DataFrame
    options: dict[str, str]
    short: dict[str, dict[str, str]]

    @property
    def title(self) -> str:
        """Heading of its page and figure."""
        return self.entry["title"] or self.name

    @property
    def entry(self) -> dict[str, Any]:
        """The study's part of the configuration."""
        return self.config["studies"][self.name]

    @property
    def points(self) -> pd.DataFrame:
        """The runs under their short names: with the options, setting, dataset, clients and method,
        they tell runs apart.
        """
        return self.runs.assign(
            **{part: self.runs[part].map(names) for part, names in self.short.items()}
        )

    @property
    def margin(self) -> dict[str, Any]:
        """Which differences of accuracy count as none
        (:class:`feddep.config.models.Margin`).
        """
        return self.config["margin"]

    def columns(self, *parts: str) -> list[str]:
        """The options of these parts of a run: of ``setting``, ``dataset`` or ``method``."""
        return [column for column, part in self.options.items() if part in parts]

    def specifications(self) -> list[dict[str, Any]]:
        """The specification of each run, in the order of ``runs``."""
        return [run.specification for run in self.plan]

    def summary(self, beside: pd.DataFrame | None = None) -> pd.DataFrame:
        """One row a point, in the papers' order, over seeds.

        Args:
            beside: further columns, a row a run, the same for all seeds of a point.

        Returns:
            :data:`KEYS` and the study's options; seeds, mean, std, last_mean, last_std,
            validation_mean, unfinished, stalled, bytes, seconds and seconds_before as in
            :func:`feddep.reporting.statistics.summarise`; and local_before_mean and
            local_after_mean, where all runs measured it.
        """
        columns = [*KEYS, *self.options]
        table = statistics.summarise(self.points, columns)
        local = [f"{name}_mean" for name in statistics.LOCAL if self.runs[name].notna().all()]
        levels = ["seeds", "mean", "std", "last_mean", "last_std", "validation_mean", *local]
        table = table[[*columns, *levels, *statistics.FLAWS, "bytes", "seconds", "seconds_before"]]
        table = frames.in_paper_order(
            table, ["setting", "dataset", "method", *self.options, "clients"]
        )
        if beside is None:
            return table
        points = (
            self.points[columns].join(beside).groupby(columns, sort=False, dropna=False).first()
        )
        return table.merge(points.reset_index(), how="left", on=columns)


def load(config: Config, name: str) -> Study:
    """Read what the runs of a study measured.

    Raises:
        ConfigError: if the configuration has no such study.
        DataError: if a run has not been trained, or a file is damaged.
    """
    if name not in config["studies"]:
        raise ConfigError(
            f"studies.{name} is not in the configuration; there are "
            f"{', '.join(config['studies']) or 'none'}"
        )
    planned = plan.study_runs(config, name)
    return assemble(config, name, planned, runs.load(config, planned))


def assemble(
    config: Config, name: str, planned: Sequence[plan.Run], recorded: pd.DataFrame
) -> Study:
    """A study of runs that are at hand."""
    table = tidy(recorded)
    columns = _columns(planned, table)
    for column, (part, key, entries) in columns.items():
        table[column] = pd.Series(
            [_value(_part(run, part), key, entries) for run in planned], dtype=object
        )
    short: dict[str, dict[str, str]] = {part: {} for part in PARTS}
    for part, names in short.items():
        for spelled in dict.fromkeys(table[part]):
            base = variants.base(spelled)
            names[spelled] = without(
                spelled,
                [key for whose, key, of in columns.values() if whose == part and base in of],
            )
    return Study(
        config,
        name,
        planned,
        recorded,
        table,
        {column: part for column, (part, _, _) in columns.items()},
        short,
    )


def tidy(recorded: pd.DataFrame) -> pd.DataFrame:
    """One row a run, with what tables show of it.

    Args:
        recorded: as :func:`feddep.experiment.runs.load` gives it.

    Returns:
        Of :data:`feddep.experiment.runs.COLUMNS` key, :data:`KEYS`, seed, accuracies, bytes and
        seconds; trained_rounds; best_round (mean over clients where each has a model of its own);
        unfinished (:func:`feddep.training.evaluation.is_unfinished`); stalled: whether it is no
        better than a constant answer; client_accuracies: list of the test accuracies of clients
        with test nodes where each has its
        own model, else empty; worst_client, the least of them, and client_spread, their standard
        deviation (that of a population), NaN where there are none; seconds_before, of all that was
        made for it.  Where owners judged, accuracies and macro_f1 are those of the models that they
        would use; macro_f1 is NaN where it was not recorded.
    """
    recorded = runs.as_owners_choose(recorded)
    best = [np.atleast_1d(json.loads(text)) for text in recorded["best_round"]]
    rounds = [int(number) for number in recorded["rounds"]]
    accuracies = [
        [] if pd.isna(text) else [each for each in json.loads(text) if not math.isnan(each)]
        for text in recorded["client_accuracies"]
    ]
    return recorded[["key", *KEYS, *_MEASURED]].assign(
        trained_rounds=rounds,
        best_round=[float(those.mean()) for those in best],
        unfinished=list(map(is_unfinished, best, rounds)),
        stalled=recorded["stalled"].fillna(False).astype(bool),
        client_accuracies=pd.Series(accuracies, dtype=object, index=recorded.index),
        worst_client=[min(each, default=math.nan) for each in accuracies],
        client_spread=[float(np.std(each)) if each else math.nan for each in accuracies],
        seconds_before=[
            math.fsum(json.loads(text).values()) for text in recorded["seconds_before"]
        ],
    )


Column = tuple[str, str, list[str]]
"""Whose option it is, what it is called there, and the entries that vary it."""


def _part(run: plan.Run, part: str) -> Entry:
    """The setting, method or dataset of a run, the last with its split and partition."""
    entry: Entry = run.place if part == "dataset" else getattr(run, part)
    return entry


def _columns(planned: Iterable[plan.Run], table: pd.DataFrame) -> dict[str, Column]:
    """The options that get a column, by its name."""
    found: dict[tuple[str, str], list[str]] = {}
    for part in PARTS:
        entries: dict[str, dict[str, Entry]] = {}
        for entry in (_part(run, part) for run in planned):
            entries.setdefault(entry.name, {}).setdefault(entry.label, entry)
        for base, forms in entries.items():
            for key in dict.fromkeys(key for form in forms.values() for key in form.changes):
                if len({canonical_json(form.options[key]) for form in forms.values()}) > 1:
                    found.setdefault((part, key), []).append(base)
    of_parts = [key for _, key in found]
    return {
        key if of_parts.count(key) == 1 and key not in table.columns else f"{part}.{key}": (
            part,
            key,
            entries,
        )
        for (part, key), entries in found.items()
    }


def _value(entry: Entry, key: str, entries: Collection[str]) -> Any:
    """The value of an option of a part of a run: a number, or text as the configuration writes it;
    None where it is not varied.
    """
    if entry.name not in entries:
        return None
    value = entry.options[key]
    return (
        value
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else json.dumps(value)
    )


def curves(config: Config, planned: Sequence[plan.Run], table: pd.DataFrame) -> pd.DataFrame:
    """The curves of runs, a row a run and round: :data:`KEYS` and
    :data:`feddep.experiment.runs.CURVES`.
    """
    return table[["key", *KEYS]].merge(runs.load_curves(config, planned), on="key")


def over_seeds(rounds: pd.DataFrame, quantities: Sequence[str]) -> pd.DataFrame:
    """Curves over seeds: :data:`KEYS`, round, and mean, low and high of each quantity, such as
    ``loss_low``.
    """
    found = rounds.groupby([*KEYS, "round"], sort=False, dropna=False)[list(quantities)].agg(
        ["mean", "min", "max"]
    )
    found.columns = [
        f"{quantity}_{end}" for quantity in quantities for end in ("mean", "low", "high")
    ]
    return found.reset_index()


def settled(history: pd.DataFrame) -> str:
    """How soon the curves of :func:`over_seeds` are near their best, in a sentence."""
    reached = history[
        history["test_mean"]
        >= 0.99 * history.groupby(KEYS, dropna=False)["test_mean"].transform("max")
    ]
    first = reached.groupby(KEYS, dropna=False)["round"].min()
    return f"Half of the curves are within 1 % of their best after {first.median():.0f} rounds"


def provenance(recorded: pd.DataFrame, margin: Mapping[str, Any] | None = None) -> str:
    """Where the numbers of a page come from, as a section of it: runs, seeds, dates, data, commits
    and machines; and when the margin of its verdicts was declared.
    """
    first, last = (str(day)[:10] for day in (recorded["time"].min(), recorded["time"].max()))
    lines = [
        f"{len(recorded):,} runs, {recorded['seconds'].sum() / 3600:.1f} hours of training, "
        f"{first} to {last}"
    ]
    for name, of in recorded.groupby(recorded["dataset"].map(variants.base), sort=False):
        seeds = ", ".join(map(str, sorted(of["seed"].unique())))
        lines.append(
            f"{dataset_title(str(name))}: seeds {seeds}; data {', '.join(of['data'].unique())}"
        )
    lines += [f"{what}: {_counted(recorded[what])}" for what in ("commit", "machine")]
    if margin and margin["declared"]:
        when = "before" if margin["declared"] <= first else "after"
        lines.append(
            f"margin ±{margin['accuracy']:g}, stricter ±{margin['strict']:g}, declared "
            f"{margin['declared']}, {when} the runs began"
        )
    return "## Provenance\n\n" + "".join(f"- {line}\n" for line in lines)


def _counted(values: pd.Series) -> str:
    counts = values.fillna("unknown").value_counts()
    return "; ".join(
        f"{value} ({number} runs)" if len(counts) > 1 else str(value)
        for value, number in counts.items()
    )
