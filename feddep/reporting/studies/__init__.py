"""Studies beside the main table, such as a sweep over one option: the kinds that there are, one module a kind.

A kind is a module ``feddep/reporting/studies/KIND.py`` with

* ``SHOWS``: what its table shows and how to read it, Markdown;
* ``tables(study)``: its tables by file name, the main one called ``table``;
* ``markdown(study, tables)``: these tables for people to read, below the heading;
* ``figure(study, tables)``: its figure.

``study`` is a :class:`feddep.reporting.studies.common.study.Study`: the finished runs, one row a run, with a column for
every option that differs between them.  Nothing else needs to know of a kind.
"""

import importlib
import pkgutil
from types import ModuleType

from feddep.errors import ConfigError


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
