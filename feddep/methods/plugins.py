"""Methods, encoders and partitioners from outside this package: of files that a configuration
names, and of installed distributions.

A plugin declares its methods as the methods here do, in ``METHODS``, its encoders in ``ENCODERS``,
their classes by name, and its partitioners in ``PARTITIONERS``, functions by name
(:data:`feddep.graph.partitioners.ADDED`).  It is code that the user runs, and has no revision that
anybody must raise: keys hold the digest of its file, or the name and version of its distribution.
"""

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from feddep.graph import partitioners
from feddep.methods import registry
from feddep.methods.method import Method, load
from feddep.nn import encoder_names
from feddep.utils.errors import ConfigError, one_line

GROUP = "feddep.methods"
"""The group of entry points by which a distribution offers methods; each names a module with
``METHODS``.
"""


@dataclass(frozen=True)
class Plugin:
    """The methods, encoders and partitioners of a module by name, what keys know its code by, and
    what sentences call it.
    """

    methods: dict[str, Method]
    encoders: dict[str, Callable[..., Any]]
    partitioners: dict[str, Callable[..., Any]]
    identity: dict[str, str]
    title: str


_BY_NAME = {"ENCODERS": "Class", "PARTITIONERS": "function"}
"""Further declarations of a plugin, and the kind of their values."""
_LOADED: dict[str, Plugin] = {}
"""By the path of a file, or the value of an entry point."""


def use(files: Sequence[str] = ()) -> None:
    """Make the methods of plugins known to :mod:`feddep.methods.registry`, their encoders to
    :mod:`feddep.nn.encoder_names` and their partitioners to :mod:`feddep.graph.partitioners`, for
    the rest of the process.

    Args:
        files: Python files; a file that has changed since is loaded again.

    Raises:
        ConfigError: if a file is missing, cannot be imported, or declares nothing, or the name of
            what it declares is taken.
    """
    for point in metadata.entry_points(group=GROUP):
        if point.value not in _LOADED and point.dist is not None:
            _load(
                point.value,
                f"the plugin {point.dist.name} {point.dist.version}",
                {"distribution": point.dist.name, "version": point.dist.version},
                point.load,
            )
    for number, file in enumerate(files):
        title, path = f"plugins.{number}, {file},", Path(file)
        if path.exists() and not path.is_file():
            raise ConfigError(f"{title} is no file; it must be a Python file")
        try:
            if path.exists() and not path.is_file():
                raise ValueError("it is no file")
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{title} cannot be read: {one_line(str(error))}") from None
        digest = hashlib.sha256(content).hexdigest()
        if all(plugin.identity != {"sha256": digest} for plugin in _LOADED.values()):
            _load(
                str(path.resolve()),
                title,
                {"sha256": digest},
                functools.partial(_execute, path, content, digest),
            )


def _execute(path: Path, content: bytes, digest: str) -> ModuleType:
    module = ModuleType(f"feddep_plugin_{digest[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(content, path, "exec"), module.__dict__)
    return module


def _load(place: str, title: str, identity: dict[str, str], run: Callable[[], ModuleType]) -> None:
    try:
        module = run()
    except Exception as error:
        raise ConfigError(
            f"{title} cannot be imported: {one_line(f'{type(error).__name__}: {error}')}"
        ) from error
    plugin = _declared(module, identity, title)
    others = {key: other for key, other in _LOADED.items() if key != place}
    taken = {*registry.built_in(), *encoder_names.ENCODERS, *partitioners.METHODS}.union(
        *map(_names, others.values())
    )
    if clash := taken & _names(plugin):
        raise ConfigError(
            f"{title} declares {', '.join(sorted(clash))}, a name that is taken; choose another"
        )
    _LOADED.clear()
    _LOADED.update(others | {place: plugin})
    for known in (registry.ADDED, encoder_names.ADDED, partitioners.ADDED):
        known.clear()
    for each in _LOADED.values():
        registry.ADDED.update(each.methods)
        encoder_names.ADDED.update(each.encoders)
        partitioners.ADDED.update(each.partitioners)


def _names(plugin: Plugin) -> set[str]:
    return {*plugin.methods, *plugin.encoders, *plugin.partitioners}


def _declared(module: ModuleType, identity: dict[str, str], title: str) -> Plugin:
    if not any(hasattr(module, name) for name in ("METHODS", *_BY_NAME)):
        raise ConfigError(
            f"{title} must declare METHODS, {' or '.join(_BY_NAME)}, but has none of them"
        )
    methods = getattr(module, "METHODS", ())
    if not isinstance(methods, tuple) or not all(isinstance(each, Method) for each in methods):
        raise ConfigError(
            f"{title} must declare its methods as METHODS = (Method(...),), but METHODS is "
            f"{methods!r}"
        )
    for method in methods:
        try:
            inspect.signature(load(method.function)).bind("task", "parameters", "steps")
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{title} declares {method.function} for {method.name}, which is no function of "
                f"(task, parameters, steps): {one_line(str(error))}"
            ) from None
    for name, example in _BY_NAME.items():
        found = getattr(module, name, {})
        if not isinstance(found, dict) or not all(
            isinstance(key, str) and key.isidentifier() and callable(made)
            for key, made in found.items()
        ):
            raise ConfigError(
                f'{title} must declare {name} = {{"name": {example}}}, but {name} is {found!r}'
            )
    encoders, divisions = (getattr(module, name, {}) for name in _BY_NAME)
    return Plugin({each.name: each for each in methods}, encoders, divisions, identity, title)


def declared_in(file: str | Path) -> list[str]:
    """Names of the methods of a file that is in use."""
    return list(_LOADED[str(Path(file).resolve())].methods)


def identity_of(
    method: str = "", function: str = "", encoder: str = "", partitioner: str = ""
) -> dict[str, dict[str, str]]:
    """Entries of a key beside revisions: ``plugin``, ``encoder`` and ``partitioner``, where these
    are not of this package.

    Args:
        method: name of the method.
        function: ``"module:function"`` of one of its steps; one of this package is known by its
            revision, whoever uses it.
        encoder: the setting's encoder, where it is read.
        partitioner: method of the partition.
    """
    found = {}
    for each in _LOADED.values():
        if method in each.methods and not function.startswith("feddep."):
            found["plugin"] = each.identity
        if encoder in each.encoders:
            found["encoder"] = each.identity
        if partitioner in each.partitioners:
            found["partitioner"] = each.identity
    return found
