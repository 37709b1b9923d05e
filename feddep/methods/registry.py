"""All methods, collected from the modules and packages in this folder that have ``METHODS``.

Planning imports them: where declarations are in the ``__init__.py`` of a package, and the code
beside it, it needs no PyTorch.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import feddep.methods
from feddep.methods.method import Method
from feddep.utils.errors import ConfigError, nearest
from feddep.utils.parameters import Parameters

GROUPS = (
    "References",
    "Optimisation",
    "Personalised",
    "Mixing of clients",
    "Distillation",
    "Generated neighbours",
    "Exchange between clients",
    "Oracles",
    "Vertical",
)
"""The groups of methods in the order of pages; each package here names its own as ``GROUP``."""
ADDED: dict[str, Method] = {}
"""The methods of plugins, by name: :func:`feddep.methods.plugins.use` adds them."""


def methods() -> dict[str, Method]:
    """Every method by its name, sorted."""
    return dict(sorted({**built_in(), **ADDED}.items()))


@cache
def built_in() -> Mapping[str, Method]:
    """Every method of this package by its name, sorted."""
    found = {method.name: method for methods in groups().values() for method in methods}
    return dict(sorted(found.items()))


@cache
def groups() -> Mapping[str, Sequence[Method]]:
    """The methods of this package by their group, in the order of :data:`GROUPS`, then of
    declarations.
    """
    found: dict[str, list[Method]] = {group: [] for group in GROUPS}
    for _, name, _ in pkgutil.iter_modules(feddep.methods.__path__):
        module = importlib.import_module(f"feddep.methods.{name}")
        if hasattr(module, "METHODS"):
            found[module.GROUP] += module.METHODS
    return found


def find(name: str) -> Method:
    """The method of that name.

    Raises:
        ConfigError: if there is none; the sentence has the nearest names.
    """
    method = ADDED.get(name) or built_in().get(name)
    if method is None:
        raise ConfigError(f"methods.{name} is not a known method; {nearest(name, methods())}")
    return method


def configured(options: Mapping[str, Any]) -> tuple[Method, Parameters]:
    """A method and its parameters, from ``{"name": …, parameter: value, …}``."""
    method = find(options["name"])
    return method, method.parameters(
        **{key: value for key, value in options.items() if key != "name"}
    )
