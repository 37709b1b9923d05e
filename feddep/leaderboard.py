"""The command ``feddep rank``: a method gets a row beside the recorded ones of a study of tuned
methods.

It has as many trials as FedAvg has there, with FedAvg's settings and points of its own space, or
those of the study's search, and is trained on the seeds of the table with the one best on
validation nodes.
"""

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from tqdm import tqdm

from feddep.config import entries, variants
from feddep.config.entries import Entry
from feddep.config.loading import Config
from feddep.experiment import plan, runs
from feddep.experiment.plan import Run
from feddep.experiment.search import points
from feddep.experiment.verification import Trainer
from feddep.judging import judge, output, rows
from feddep.reporting import load
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.training.summary import DIVERGED, summary
from feddep.utils.errors import ConfigError, DivergenceError, nearest
from feddep.utils.progress import track

BASELINE = "fedavg"
"""The method whose trials and seeds another is given: it has no options of its own."""


class Ranked(NamedTuple):
    """What a search chose for a method on a graph.

    Attributes:
        trials: their number.
        validation: the mean of the best one.
        runs: of what was chosen, on the seeds of the table.
    """

    trials: int
    validation: float
    runs: list[Run]


def ranked(config: Config, study: str, graph: str, method: str, folder: Path) -> Ranked:
    """Search the hyperparameters of a method and train it on the seeds of a study; what is cached
    is not trained again.

    Args:
        config: the configuration.
        study: a study of tuned methods (:func:`feddep.experiment.plan.tuned_studies`).
        graph: one of its datasets, without options.
        method: the method as it is spelled, with parameters or without.
        folder: where public graphs are.

    Raises:
        ConfigError: if there is no such study or dataset in it, the method has a row already, or
            every trial diverged.
        DivergenceError: if what a search chose diverges.
    """
    every = {name: plan.compared_runs(config, name) for name in plan.tuned_studies(config, study)}
    study = next((name for name, graphs in every.items() if graph in graphs), "")
    if not study:
        known = nearest(graph, {name for graphs in every.values() for name in graphs})
        raise ConfigError(f"{graph} is no dataset of studies.{', '.join(every)}; {known}")
    given: dict[str, Any] = config["studies"][study]
    planned = [run for run in plan.study_runs(config, study) if run.dataset.name == graph]
    entry = entries.one(config, "methods", method, planned[0].dataset)
    if any(run.method.name == entry.name for run in planned):
        raise ConfigError(f"{entry.name} is in studies.{study} already")
    if not given["search"]:
        return _as_baseline(config, planned, entry, given["search_seeds"], folder)
    alone = {**given["search"], "datasets": [planned[0].dataset.label], "methods": [method]}
    options = {"reference": given["search"]["methods"][0], **given["options"]}
    changed = {**config["studies"], study: {**given, "search": alone, "options": options}}
    searched = Config({**config, "studies": changed})
    runs = search(searched, study, folder)
    (choice,) = plan.choices(searched, study).to_dict("records")
    return Ranked(choice["trials"], choice["validation"], runs)


def search(config: Config, study: str, folder: Path) -> list[Run]:
    """Train the trials of a search and what it chooses; returns the runs of what it chose for each
    method on this graph.

    Raises:
        DivergenceError: if what was chosen diverges.
    """
    for _ in range(3):
        _train_all(config, plan.stages(config, study)[-1], folder)
    return plan.final_runs(config, study)[plan.HERE]


def _as_baseline(
    config: Config, planned: Sequence[Run], method: Entry, searched: Collection[int], folder: Path
) -> Ranked:
    """The same of a method with the settings of the baseline's trials, each with a point of its own
    space.
    """
    of_baseline = [run for run in planned if run.method.label == BASELINE]
    settings = {run.setting: run for run in of_baseline if run.seed in searched}
    drawn = points(method.configured[0], method.options, method.changes, len(settings))
    trials = []
    for run, point in zip(settings.values(), drawn, strict=True):
        name = variants.format_name(method.name, {**method.changes, **point})
        tried = entries.one(config, "methods", name, run.dataset)
        trials += [dataclasses.replace(run, method=tried, seed=seed) for seed in searched]
    table = load.tidy(runs.load(config, train(config, trials, folder)))
    scores = table.groupby(["setting", "method"], sort=False)["validation"].mean()
    if scores.empty:
        raise ConfigError(f"{method} diverged in all {len(trials)} trials on {trials[0].dataset}")
    chosen = next(run for run in trials if (run.setting.label, run.method.label) == scores.idxmax())
    final = [dataclasses.replace(chosen, seed=run.seed) for run in of_baseline]
    final = [run for run in dict.fromkeys(final) if run.seed not in searched]
    _train_all(config, final, folder)
    return Ranked(len(settings), scores.max(), final)


def _train_all(config: Config, wanted: Sequence[Run], folder: Path) -> None:
    if lost := set(wanted) - set(train(config, wanted, folder)):
        raise DivergenceError(f"{min(run.path for run in lost)} was chosen and diverged")


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


def contents(
    config: Config, study: str, chosen: Mapping[str, Ranked], plugin: Path | None = None
) -> dict[str, Any]:
    """What ``feddep rank`` writes: the files of :func:`feddep.judging.output.contents`.

    Args:
        config: the configuration.
        study: the study that a method was ranked beside.
        chosen: what was chosen on each graph.
        plugin: the file of the method, if it is of one.
    """
    own = [run for each in chosen.values() for run in each.runs]
    method, recorded = own[0].method.configured[0], runs.load(config, own)
    measured = load.tidy(recorded).assign(graph=[run.dataset.name for run in own]).round(6)
    of = {
        graph: records(measured[measured["graph"] == graph].sort_values("seed")[judge.RUN])
        for graph in chosen
    }
    planned = plan.compared_runs(config, study)
    scored = pd.concat([judge.of_runs(of[graph], planned[graph]) for graph in chosen])
    beside = [run for graph in chosen for run in planned[graph]]
    found = load.assemble(config, study, beside, runs.load(config, beside))
    studies = [config["studies"][name] for name in plan.tuned_studies(config, study)]
    searched = {
        "trials": {graph: each.trials for graph, each in chosen.items()},
        "seeds": sorted({seed for each in studies for seed in each["search_seeds"]}),
        "space": {name: str(axis) for name, axis in method.search.items()},
        "chosen": {
            graph: f"{each.runs[0].setting} {each.runs[0].method}" for graph, each in chosen.items()
        },
    }
    row = output.row(
        method.name, study, [each for each, word in judge.USES.items() if word in method.assumes]
    )
    row["method"] |= {
        "title": method.title,
        "class": "shared" if method.evaluation == "global" else "personalised",
    }
    row.update(search=searched, runs=of, machine=recorded["machine"].unique().tolist())
    if plugin:
        row["plugin"] = rows.plugin(plugin)
        row["code"]["command"] = f"feddep rank {plugin.name} --graph {' '.join(chosen)}"
    table = pd.DataFrame(
        {
            "dataset": graph,
            "trials": each.trials,
            "validation": each.validation,
            "chosen_setting": str(each.runs[0].setting),
            "chosen_method": str(each.runs[0].method),
        }
        for graph, each in chosen.items()
    )
    notes = (
        "Trained here: on each graph the best of its trials on validation nodes of another seed, "
        f"and that on the seeds of the table.\n\n{md.shown(table, [*table], [])}"
    )
    return output.contents(found, judge.compare(found, method.name, scored), scored, row, notes)
