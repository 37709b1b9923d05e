"""The command ``feddep rank``: a method gets a row beside the recorded ones of a study of kind
``tuned`` or ``searched``.

It has the trials that FedAvg has there, or those of the study's search in its own space, and is
trained on the seeds of the table with the one best on validation nodes.
"""

import dataclasses
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from feddep.config import entries
from feddep.config.entries import Entry
from feddep.config.loading import Config
from feddep.experiment import plan, runs
from feddep.experiment.plan import Run
from feddep.experiment.verification import Trainer
from feddep.reporting import load, statistics
from feddep.reporting import markdown as md
from feddep.reporting.labels import method_title
from feddep.reporting.studies import tuned
from feddep.training.summary import DIVERGED, summary
from feddep.utils.errors import ConfigError, DivergenceError, nearest
from feddep.utils.progress import track

BASELINE = "fedavg"
"""The method whose trials and seeds another is given: it has no options of its own."""


def ranked(
    config: Config, study: str, dataset: str, method: str, folder: Path
) -> tuple[str, pd.DataFrame]:
    """Search the hyperparameters of a method and train it on the seeds of a study; what is cached
    is not trained again.

    Args:
        config: the configuration.
        study: a study of kind ``tuned`` or ``searched``.
        dataset: one of its datasets, without options.
        method: the method as it is spelled, with parameters or without.
        folder: where public graphs are.

    Returns:
        What was chosen and the method's place, in sentences; and the rows of the dataset, the best
        first, with the columns of :func:`feddep.reporting.studies.tuned.tables`.

    Raises:
        ConfigError: if there is no such study or dataset in it, the method has a row already, or
            every trial diverged.
        DivergenceError: if what a search chose diverges.
    """
    recorded = plan.compared_runs(config, study)
    if dataset not in recorded:
        known = nearest(dataset, recorded)
        raise ConfigError(f"{dataset} is no dataset of studies.{study}; {known}")
    given: dict[str, Any] = config["studies"][study]
    planned = [run for run in plan.study_runs(config, study) if run.dataset.name == dataset]
    entry = entries.one(config, "methods", method, planned[0].dataset)
    if any(run.method.name == entry.name for run in planned):
        raise ConfigError(f"{entry.name} is in studies.{study} already")
    if given["search"]:
        alone = {**given["search"], "datasets": [planned[0].dataset.label], "methods": [method]}
        options = {"reference": given["search"]["methods"][0], **given["options"]}
        changed = {**config["studies"], study: {**given, "search": alone, "options": options}}
        own, chosen = search(Config({**config, "studies": changed}), study, folder)
    else:
        own, chosen = _as_baseline(config, planned, entry, given["search_seeds"], folder)
    final = recorded[dataset] + own
    found = load.assemble(config, study, final, runs.load(config, final))
    table = tuned.compared(found, found.runs)
    table = table.sort_values("mean", ascending=False, kind="stable")
    place = table["method"].tolist().index(entry.name) + 1
    title = method_title(entry.name)
    return f"{chosen} {title} is number {place} of {len(table)} by accuracy.", table


def search(config: Config, study: str, folder: Path) -> tuple[list[Run], str]:
    """Train the trials of a search and what it chooses; returns the runs of what it chose for each
    method on this graph, and in sentences what they are of.

    Raises:
        DivergenceError: if what was chosen diverges.
    """
    for _ in range(3):
        wanted = plan.stages(config, study)[-1]
        if lost := set(wanted) - set(train(config, wanted, folder)):
            raise DivergenceError(f"{min(run.path for run in lost)} was chosen and diverged")
    chosen = [
        f"Best of {row['trials']} trials on validation nodes, with {row['validation']:.4f}: "
        f"{row['chosen_setting']}, {row['chosen_method']}."
        for row in plan.choices(config, study).to_dict("records")
    ]
    return plan.final_runs(config, study)[plan.HERE], " ".join(chosen)


def _as_baseline(
    config: Config, planned: Sequence[Run], method: Entry, searched: Collection[int], folder: Path
) -> tuple[list[Run], str]:
    """The same of a method with the trials of the baseline."""
    of_baseline = [run for run in planned if run.method.label == BASELINE]
    given = [dataclasses.replace(run, method=method) for run in of_baseline]
    trials = [run for run in given if run.seed in searched]
    scores = (
        load.tidy(runs.load(config, train(config, trials, folder)))
        .groupby("setting", sort=False)["validation"]
        .mean()
    )
    if scores.empty:
        raise ConfigError(f"{method} diverged in all {len(trials)} trials on {trials[0].dataset}")
    setting = next(run.setting for run in trials if run.setting.label == scores.idxmax())
    final = [dataclasses.replace(run, setting=setting) for run in given if run.seed not in searched]
    chosen = (
        f"Best of {len(trials)} trials on validation nodes, with {scores.max():.4f}: {setting}."
    )
    return train(config, list(dict.fromkeys(final)), folder), chosen


def train(config: Config, wanted: Sequence[Run], folder: Path) -> list[Run]:
    """Train what is neither recorded nor cached; returns the runs but those that diverged, which of
    a trial of a search is a result.
    """
    diverged, trainer = set(), Trainer(config, folder)
    for run in track(runs.untrained(config, wanted), wanted[0].method.label):
        start = time.perf_counter()
        try:
            measured = summary(trainer.train(run))
        except DivergenceError as error:
            tqdm.write(f"{run.path}: {error}")
            if not run.trial:
                diverged.add(run.key)
                continue
            measured = DIVERGED
        trainer.write(config, run, measured, time.perf_counter() - start)
    return [run for run in wanted if run.key not in diverged]


def page(chosen: str, table: pd.DataFrame) -> str:
    """The rows as Markdown."""
    columns = ["clients", "method", "mean", *statistics.SHOWN, "bytes", "seconds"]
    return md.explained(f"{chosen}\n\n{md.shown(table, columns, [])}")
