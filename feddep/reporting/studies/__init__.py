"""Studies beside the main table, such as a sweep over one option: the kinds that there are, one module a kind.

A kind is a module ``feddep/reporting/studies/KIND.py`` with

* ``SHOWS``: what its table shows and how to read it, Markdown;
* ``tables(study)``: its tables by file name, the main one called ``table``;
* ``markdown(study, tables)``: these tables for people to read, below the heading;
* ``figure(study, tables)``: its figure.

``study`` is a :class:`feddep.reporting.study_data.Study`: the finished runs, one row a run, with a column for every option
that differs between them.  Nothing else needs to know of a kind.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Any

from feddep.utils.errors import ConfigError

if TYPE_CHECKING:
    from feddep.config.loading import Config

FURTHER_TABLES = {
    "curves": ("rounds",),
    "grid": ("main_effects",),
    "recovery": ("cells", "summary"),
    "tuned": ("choices",),
}
"""Tables that a kind has beside ``table``."""
_SPREAD = ", mean ± sample standard deviation over the seeds"
"""What ``SHOWS`` says of accuracies; a single seed has no standard deviation."""


def available() -> list[str]:
    """The names of all kinds, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def module_name(study: str, kind: str) -> str:
    """The module that makes a study of this kind; it is not imported.

    Raises:
        ConfigError: if there is no such kind; it names the study whose kind it is.
    """
    if kind not in available():
        raise ConfigError(f"studies.{study}.kind is {kind}, which is not a known kind; known are {', '.join(available())}")
    return f"{__name__}.{kind}"


def load(study: str, kind: str) -> ModuleType:
    """The module that makes a study of this kind.

    Raises:
        ConfigError: if there is no such kind.
    """
    return importlib.import_module(module_name(study, kind))


def contents(config: "Config", name: str, table: str | None = None) -> dict[str, Any]:
    """What is made of a study, by file name, for :func:`feddep.reporting.files.write`.

    Args:
        config: the configuration.
        name: the study's name there.
        table: a further table, to be made alone; without it the main table, its page, the figure and the provenance.

    Raises:
        ConfigError: if there is no such study, kind or table.
        DataError: if a run has not finished, its file is damaged, or it was made from something else than is asked for now.
    """
    from feddep.reporting import provenance_summary, study_data, undertrained

    study = study_data.load(config, name)
    kind = load(name, config["studies"][name]["kind"])
    tables = kind.tables(study)
    if (table or "table") not in tables:
        raise ConfigError(f"--table is {table}; the study {name} has {', '.join(tables)}")
    if table:
        return {f"{table}.csv": tables[table]}
    shows = kind.SHOWS.strip()
    if study.runs["seed"].nunique() == 1:
        shows = shows.replace(_SPREAD, "")
    body = kind.markdown(study, tables)
    parts = [f"# {study.title}", shows, f"{study.size()}.", undertrained.note(body), body]
    return {
        "table.csv": tables["table"],
        "table.md": "\n\n".join(part for part in parts if part),
        "figure": kind.figure(study, tables),
        "provenance.json": provenance_summary.summarise(config, study.finished, name),
    }
