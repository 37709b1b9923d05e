"""The frameworks of the benchmark: one module a row of the main table.

A framework is a module ``feddep/frameworks/NAME.py`` with

* ``TITLE``: its name in tables and figures;
* ``PARTITIONED``: whether it works on clients' subgraphs, or on the whole graph;
* ``Parameters``: a frozen dataclass of the framework's own parameters, with defaults, set under ``frameworks.NAME`` in
  the configuration;
* ``run(problem, parameters)``: from a :class:`feddep.problem.Problem` to a :class:`feddep.problem.Outcome`;
* ``steps(parameters)``, where the framework computes something before it trains its classifier that is worth a cache of
  its own: the list of these :class:`feddep.steps.Step`;
* a docstring that ends with what the framework assumes beyond FedAvg: ``Assumes: …; ….``, or ``Assumes: nothing.``

Nothing else needs to know of it.
"""

import importlib
import keyword
import pkgutil
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from feddep.errors import ConfigError


def module_name(name: str) -> str:
    """The module of a framework; a name that is a Python keyword (``global``) has an underscore behind it."""
    return f"feddep.frameworks.{name}_" if keyword.iskeyword(name) else f"feddep.frameworks.{name}"


def available() -> list[str]:
    """The names of all frameworks, sorted."""
    return sorted(module.name.removesuffix("_") for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(name: str) -> ModuleType:
    """The framework's module.

    Raises:
        ConfigError: if there is no such framework.
    """
    if name not in available():
        raise ConfigError(f"frameworks.{name} is not a known framework; known are {', '.join(available())}")
    return importlib.import_module(module_name(name))


def configured(options: Mapping[str, Any]) -> tuple[ModuleType, Any]:
    """A framework's module and its parameters, from ``{"name": …, parameter: value, …}``."""
    module = load(options["name"])
    return module, module.Parameters(**{key: value for key, value in options.items() if key != "name"})


def steps(options: Mapping[str, Any]) -> Sequence[Any]:
    """The :class:`feddep.steps.Step` of a framework with these options, as for :func:`configured`; often none."""
    module, parameters = configured(options)
    return module.steps(parameters) if hasattr(module, "steps") else ()
