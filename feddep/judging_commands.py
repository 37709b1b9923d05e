"""The commands ``feddep rank``, ``export``, ``judge`` and ``submit``: a method beside recorded
runs, divisions for other code and its predictions beside them, and rows of the leaderboard.
"""

import argparse
import dataclasses
import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from feddep import api, leaderboard
from feddep.config import loading, variants
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment import plan, runs
from feddep.experiment.plan import Run
from feddep.experiment.verification import Trainer
from feddep.judging import divisions, judge, output, rows
from feddep.reporting import load
from feddep.reporting.output import write
from feddep.utils.csv_files import write_csv
from feddep.utils.errors import ConfigError, DataError, nearest
from feddep.utils.parameters import key_values


def rank(given: argparse.Namespace) -> None:
    """Run ``feddep rank``."""
    config = loading.load(*given.config)
    plugin = Path(given.method) if given.method.endswith(".py") else None
    graphs = plan.compared_runs(config, given.study) if given.graph == ["all"] else given.graph
    for name in api.named([given.method]):
        method, chosen = variants.format_name(name, key_values(given.parameter)), {}
        for graph in graphs:
            found = leaderboard.ranked(config, given.study, graph, method, given.work)
            chosen[graph], first = found, found.runs[0]
            print(
                f"{graph}: best of {found.trials} trials on validation nodes, with "
                f"{found.validation:.4f}: {first.setting}, {first.method}",
                flush=True,
            )
        contents = leaderboard.contents(config, given.study, chosen, plugin)
        write(given.output / name, contents)
        if plugin:
            (given.output / name / plugin.name).write_bytes(plugin.read_bytes())
        print(contents["page.md"])


def export(given: argparse.Namespace) -> None:
    """Run ``feddep export``."""
    chosen = divisions.seeds(given.seeds) if given.seeds else []
    every = given.graph == "all"
    recorded = (
        plan.compared_runs(loading.load(*given.config), given.study) if every or not chosen else {}
    )
    for graph in recorded if every else [given.graph]:
        name = graph if graph in REGISTRY else Path(graph).stem
        if not chosen and name not in recorded:
            raise ConfigError(f"--seeds is missing; {name} is no graph of studies.{given.study}")
        divisions.export(
            api.load_dataset(graph) if graph in REGISTRY else api.load_graph(graph),
            name,
            given.protocol,
            chosen or [*judge.one_a_seed(recorded[name])],
            given.folder,
            given.clients,
        )
        print(given.folder / name)


def judge_files(given: argparse.Namespace) -> None:
    """Run ``feddep judge``."""
    files = sorted(given.predictions.glob("*.npz")) or [given.predictions]
    if not given.predictions.exists():
        raise DataError(f"{given.predictions} is missing; api.save_predictions writes it")
    config = loading.load(*given.config)
    recorded = plan.compared_runs(config, given.study)
    if unknown := {file.stem for file in files} - {*recorded}:
        raise ConfigError(
            f"{min(unknown)}.npz is named after no graph of studies.{given.study}; "
            f"{nearest(min(unknown), recorded)}"
        )
    beside = {file: recorded[file.stem] for file in files}
    if given.seeds:
        beside = {file: _on_seeds(planned, given.seeds) for file, planned in beside.items()}
    with judge.named(given.name, given.uses):
        trainer, planned = Trainer(config, given.work), list(itertools.chain(*beside.values()))
        scored = pd.concat([judge.score_seeds(file, beside[file], trainer) for file in files])
        if absent := runs.untrained(config, planned):
            seconds, _ = runs.estimate(config, absent)
            print(f"{len(absent)} runs of recorded methods are trained: {seconds / 60:.0f} minutes")
            planned = leaderboard.train(config, planned, given.work)
        found = load.assemble(config, given.study, planned, runs.load(config, planned))
        row = output.row(given.name, given.study, given.uses, files)
        compared = judge.compare(found, given.name, scored)
        contents = output.contents(found, compared, scored, row)
    write(given.output, contents)
    for file in files:
        (given.output / file.name).write_bytes(file.read_bytes())
    print(contents["page.md"])


def submit(given: argparse.Namespace) -> None:
    """Run ``feddep submit``."""
    if not given.check:
        print(rows.prepare(given.folder, Path("submissions")))
        return
    config = loading.load(*given.config)
    trainer = Trainer(config, given.work)
    if given.base is None:
        names = sorted(file.parent.name for file in given.folder.glob(f"*/{rows.ROW}"))
    else:
        names = rows.changed(given.base, given.folder)
    found = []
    for name in names:
        folder = given.folder / name
        grades, submitted = rows.grades(config, folder, trainer), rows.read(folder / rows.ROW)
        if given.retrain and submitted.plugin:
            for line in rows.retrain(config, folder, trainer):
                print(line, flush=True)
            grades |= dict.fromkeys(submitted.shown, "retrained")
        for graph, grade in grades.items():
            print(f"{name}, {graph}: {grade}")
        row = hashlib.sha256((folder / rows.ROW).read_bytes()).hexdigest()
        found += [(name, graph, grade, row) for graph, grade in grades.items()]
    if given.record:
        table = pd.DataFrame(found, columns=["method", "graph", "grade", "row"])
        write_csv(given.record, table)


def _on_seeds(recorded: Sequence[Run], seeds: str) -> list[Run]:
    """The recorded runs with other seeds."""
    chosen = divisions.seeds(seeds)
    return list(
        dict.fromkeys(dataclasses.replace(run, seed=seed) for run in recorded for seed in chosen)
    )
