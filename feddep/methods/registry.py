"""All frameworks, collected from the methods: each is a package in this folder whose ``__init__.py`` has ``FRAMEWORKS``."""

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from feddep import methods
from feddep.methods.framework import Framework
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import Parameters

ORACLE = "oracle"
"""The assumption of a framework that is given what no client could know."""


@cache
def frameworks() -> Mapping[str, Framework]:
    """Every framework by its name, sorted."""
    packages = [name for _, name, is_package in pkgutil.iter_modules(methods.__path__) if is_package]
    found = [importlib.import_module(f"{methods.__name__}.{name}") for name in packages]
    declared = {each.name: each for method in found for each in getattr(method, "FRAMEWORKS", ())}
    return dict(sorted(declared.items()))


def find(name: str) -> Framework:
    """The framework of that name.

    Raises:
        ConfigError: if there is none; the sentence has the nearest names.
    """
    known = frameworks()
    if name not in known:
        nearest = ", ".join(difflib.get_close_matches(name, known, cutoff=0))
        raise ConfigError(f"frameworks.{name} is not a known framework; of the {len(known)} that are, the nearest are {nearest}")
    return known[name]


def configured(options: Mapping[str, Any]) -> tuple[Framework, Parameters]:
    """A framework and its parameters, from ``{"name": …, parameter: value, …}``."""
    framework = find(options["name"])
    return framework, framework.parameters(**{key: value for key, value in options.items() if key != "name"})
