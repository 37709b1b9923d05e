"""The recorded runs as a table: what each run is of, in full, and what it measured."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel

from feddep.config.loading import Config
from feddep.config.models import Dataset, PartitionOptions, SplitOptions
from feddep.experiment import plan, runs
from feddep.experiment.plan import Run
from feddep.experiment.runs import Column
from feddep.methods import registry
from feddep.reporting import load
from feddep.reporting.labels import graph_family
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError, nearest

SEARCH, FINAL = "search", "final"
"""What runs are for: to choose hyperparameters by, or to be reported."""
MAIN = "main"
"""The study that the main tables stand for."""
_OWN = {
    "study": Column("string", "the study that has the run; `main` for the main tables"),
    "role": Column("string", "`search`, to choose hyperparameters by, or `final`"),
    "family": Column("string", "what the edges of the graph are, such as `citation`"),
    "accuracy": Column(
        "float64",
        "what the run is judged by: `test`, or where the evaluation is `owners` the better on "
        "validation nodes of `local_before` and `local_after`",
        "0–1",
    ),
    "worst_client": Column(
        "float64", "least accuracy of a client that has a model of its own", "0–1"
    ),
    "unfinished": Column("boolean", "whether more rounds might be better"),
    "setting_label": Column("string", "the setting with what differs from the configuration's"),
    "dataset_label": Column("string", "the dataset with its split and partition likewise"),
    "method_label": Column("string", "the method likewise"),
}
_SUMMARIES = ("training", "data_options", "split", "partition", "parameters")
"""Columns of the table of runs that others have in full here."""
_ELSEWHERE = ("dataset.split", "dataset.partition", "dataset.path")
"""Options of a dataset that are a run's own, or no property of it."""
_PARTS: dict[str, type[BaseModel]] = {
    "setting": TrainingConfig,
    "dataset": Dataset,
    "split": SplitOptions,
    "partition": PartitionOptions,
}
_TYPES = {"integer": "Int64", "number": "float64", "boolean": "boolean", "string": "string"}


def schema() -> dict[str, Column]:
    """Every column that :func:`results` may have: its own, those of the table of runs, and
    ``PART.OPTION`` for each option of a setting, dataset, split, partition and method.
    """
    parts: dict[str, list[type[BaseModel]]] = {part: [model] for part, model in _PARTS.items()}
    parts["method"] = [method.parameters for method in registry.methods().values()]
    tables = _OWN, runs.SCHEMA, *(_options(part, models) for part, models in parts.items())
    return {
        name: column
        for table in tables
        for name, column in table.items()
        if name not in (*_SUMMARIES, *_ELSEWHERE)
    }


def _options(part: str, models: Sequence[type[BaseModel]]) -> dict[str, Column]:
    """A column for each option of these models; of a name that has several types, any object."""
    found: dict[str, Column] = {}
    for model in dict.fromkeys(models):
        for option, rule in model.model_json_schema().get("properties", {}).items():
            kind = rule.get("type") or rule["anyOf"][0].get("type")
            column = Column(_TYPES.get(kind, "object"), " ".join(rule["description"].split()))
            former = found.setdefault(f"{part}.{option}", column)
            if former.type != column.type:
                found[f"{part}.{option}"] = former._replace(type="object")
    return found


def results(config: Config, protocol: str) -> pd.DataFrame:
    """The recorded runs of a protocol, a row for each study that has a run.

    Args:
        config: a configuration, whose main tables and studies name the runs.
        protocol: one of its settings, with whatever a study changes of it.

    Returns:
        Those columns of :func:`schema` that these runs have.

    Raises:
        ConfigError: if there is no such setting.
        DataError: if a table of runs is damaged.
    """
    if protocol not in config["settings"]:
        raise ConfigError(
            f"protocol is {protocol}, which is no setting; {nearest(protocol, config['settings'])}"
        )
    known = runs.published(Path(config["records"]["directory"]))
    found = [
        (study, role, run)
        for study, role, run in _planned(config)
        if run.setting.name == protocol and run.key in known
    ]
    recorded = runs.load(config, [run for *_, run in found])
    judged = load.tidy(recorded)
    labels = {name: f"{name}_label" for name in load.PARTS}
    table = pd.DataFrame([_described(*each) for each in found]).join(
        recorded.rename(columns=labels).drop(columns=list(_SUMMARIES))
    )
    table = table.assign(accuracy=judged["test"], **judged[["worst_client", "unfinished"]])
    columns = {name: column.type for name, column in schema().items() if name in table}
    return table[list(columns)].astype(columns)


def _planned(config: Config) -> Iterator[tuple[str, str, Run]]:
    """The runs of the main tables and studies, with the study and what they are for there."""
    for run in plan.runs(config):
        yield MAIN, FINAL, run
    for name, study in config["studies"].items():
        searched = study["search_seeds"] or ()
        for run in () if plan.has_code(study["kind"]) else chain(*plan.stages(config, name)):
            yield name, SEARCH if run.seed in searched else FINAL, run


def _described(study: str, role: str, run: Run) -> dict[str, Any]:
    """What a row is of."""
    parts = [*_PARTS, "method"]
    if run.clients is None:
        parts.remove("partition")
    options = {
        f"{part}.{option}": value
        for part in parts
        for option, value in getattr(run, part).options.items()
    }
    return {
        "study": study,
        "role": role,
        "family": graph_family(run.dataset.name),
        **{part: getattr(run, part).name for part in load.PARTS},
        **options,
    }
