"""What studies with code of their own share: each run is measured into a file of the cache, and a
page is made of all of them.

The kind of such a study is a package ``GROUP/KIND`` of this folder with

* ``measure.py``: ``measure(case)`` measures a run and returns tables of rows by name;
* ``page.py``: ``page(tables)`` makes from the tables of all runs the contents of files by name;
* ``page.md.jinja``: the text of the page.

A line of ``measuring.smk`` says what of a run is read, and which files the page has.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pandas as pd
import torch
from torch import Tensor

from feddep.config.loading import Config
from feddep.experiment.plan import Run
from feddep.experiment.training_stages import read_task
from feddep.methods.method import Method, StepResult
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from feddep.utils.files import read_arrays, read_json, write_json

Tables = dict[str, list[dict[str, Any]]]
"""Rows of tables, by the name of the table."""
DIGITS = 6
"""Significant digits of numbers that are kept of a run, where a study does not say otherwise in its
own ``DIGITS``.
"""


@dataclass(frozen=True, eq=False)
class Case:
    """A run to be measured: its task with the results of its steps, its method with parameters, the
    weights of the best round by name.
    """

    run: Run
    task: Task
    method: Method
    parameters: Any
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    def step(self, stage: str) -> StepResult:
        """The result of a step; a :class:`ConfigError` if the method has no such step."""
        if stage not in self.task.step_results:
            raise ConfigError(
                f"the method {self.method.name} has no step {stage}, so there is nothing to measure"
            )
        result: StepResult = self.task.step_results[stage]
        return result


def measure_run(
    config: Config, study: str, run: Run, files: Mapping[str, Any], output: Path
) -> None:
    """Measure a run of a study, and write its tables as a text of JSON, whose order is kept.

    ``files`` are graph, split, partition, the results of steps by stage, and ``model``, the
    weights, as far as they are read.
    """
    task, _ = read_task(config, run, files)
    method, parameters, _ = run.method.configured
    arrays = read_arrays(files["model"], run.key) if "model" in files else {}
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    tables = tables_of(
        config["studies"][study]["kind"], Case(run, task, method, parameters, weights)
    )
    write_json(output, {"tables": json.dumps(tables)}, run.key)


def read_measured(file: Path) -> Tables:
    """The tables that :func:`measure_run` has written to a file of the run's key."""
    tables: Tables = json.loads(read_json(file, file.stem)["tables"])
    return tables


def _folder(kind: str) -> Path:
    """The folder ``GROUP/KIND`` of a kind."""
    return next(Path(__file__).parent.glob(f"*/{kind}/measure.py")).parent


def _module(kind: str, name: str) -> ModuleType:
    return import_module(f"studies.{_folder(kind).parent.name}.{kind}.{name}")


def tables_of(kind: str, case: Case) -> Tables:
    """The tables of a run: each row with the columns of its run, numbers rounded."""
    module, of_run = _module(kind, "measure"), case.run.columns
    digits = getattr(module, "DIGITS", DIGITS)

    def rounded(value: Any) -> Any:
        return float(f"{value:.{digits}g}") if isinstance(value, float) else value

    tables: Tables = module.measure(case)
    return {
        name: [{**of_run, **{key: rounded(value) for key, value in row.items()}} for row in rows]
        for name, rows in tables.items()
    }


def page_of(kind: str, measured: Iterable[Tables]) -> dict[str, Any]:
    """The files of a page by name: a text, which shows the figure below its title; tables; and the
    figure, which has no suffix.
    """
    tables: Tables = {}
    for of_run in measured:
        for name, rows in of_run.items():
            tables.setdefault(name, []).extend(rows)
    contents: dict[str, Any] = _module(kind, "page").page(
        {name: frame(rows) for name, rows in tables.items()}
    )
    shown = f"\n\n![{contents['figure'].get_label()}](figure.svg)\n\n"
    return {**contents, "page.md": contents["page.md"].replace("\n\n", shown, 1)}


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table; NaN for None, but NA for the number of clients."""
    known = [
        {key: math.nan if value is None else value for key, value in row.items()} for row in rows
    ]
    return pd.DataFrame(known).astype({"clients": "Int64"})


def text(kind: str, **values: Any) -> str:
    """The text of a study's page, filled in."""
    loader = jinja2.FileSystemLoader(_folder(kind))
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False
    )
    return environment.get_template("page.md.jinja").render(values)
