"""What comes from outside this package: from files that a configuration names, and from installed
distributions.

A plugin declares its methods as the methods here do, in ``METHODS``, and whatever else it brings in
a dictionary by name (:data:`DECLARATIONS`).  It is code that the user runs, and has no revision
that anybody must raise: keys hold the digest of its file, or the name and version of its
distribution.
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

from feddep.datasets import own_files
from feddep.graph import partitioners, split
from feddep.methods import registry
from feddep.methods.method import Method, load
from feddep.nn import encoder_names
from feddep.utils.errors import ConfigError, one_line

GROUP = "feddep.methods"
"""The group of entry points by which a distribution offers plugins; each names a module."""
KINDS: dict[str, Any] = {}
"""Kinds of studies of plugins by name: classes with :data:`PARTS_OF_KIND`."""
PARTS_OF_KIND = ("SHOWS", "tables", "markdown", "figure")
"""What a kind of study has (:mod:`feddep.reporting.studies`)."""
DECLARATIONS: dict[str, dict[str, Any]] = {
    "METHODS": registry.ADDED,
    "ENCODERS": encoder_names.ADDED,
    "PARTITIONERS": partitioners.ADDED,
    "SPLITTERS": split.ADDED,
    "READERS": own_files.ADDED,
    "KINDS": KINDS,
}
"""What a plugin may declare, and what all plugins have declared by name."""


@dataclass(frozen=True)
class Plugin:
    """What a module declares, by :data:`DECLARATIONS` and name, what keys know its code by, and
    what sentences call it.
    """

    declared: dict[str, dict[str, Any]]
    identity: dict[str, str]
    title: str


_LOADED: dict[str, Plugin] = {}
"""By the path of a file, or the value of an entry point."""


def use(files: Sequence[str] = ()) -> None:
    """Make what plugins declare known in :data:`DECLARATIONS`, for the rest of the process.

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
    taken = {
        *(*registry.built_in(), *encoder_names.ENCODERS, *partitioners.METHODS),
        *(*split.METHODS, *own_files.ENDINGS),
    }.union(*map(_names, others.values()))
    if clash := taken & _names(plugin):
        raise ConfigError(
            f"{title} declares {', '.join(sorted(clash))}, a name that is taken; choose another"
        )
    _LOADED.clear()
    _LOADED.update(others | {place: plugin})
    for name, known in DECLARATIONS.items():
        known.clear()
        for each in _LOADED.values():
            known.update(each.declared[name])


def _names(plugin: Plugin) -> set[str]:
    return {name for declared in plugin.declared.values() for name in declared}


def _declared(module: ModuleType, identity: dict[str, str], title: str) -> Plugin:
    if not any(hasattr(module, name) for name in DECLARATIONS):
        raise ConfigError(
            f"{title} must declare one of {', '.join(DECLARATIONS)}, but has none of them"
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
    declared = {name: getattr(module, name, {}) for name in DECLARATIONS if name != "METHODS"}
    for name, found in declared.items():
        if not isinstance(found, dict) or not all(
            isinstance(key, str) and key.isidentifier() and callable(made)
            for key, made in found.items()
        ):
            raise ConfigError(
                f'{title} must declare {name} = {{"name": function or class}}, but it is {found!r}'
            )
    for name, kind in declared["KINDS"].items():
        if missing := [part for part in PARTS_OF_KIND if not hasattr(kind, part)]:
            raise ConfigError(
                f"{title} declares the kind {name} without {', '.join(missing)}; a kind needs "
                f"{', '.join(PARTS_OF_KIND)}"
            )
    declared["METHODS"] = {each.name: each for each in methods}
    return Plugin(declared, identity, title)


def declared_in(file: str | Path) -> list[str]:
    """Names of the methods of a file that is in use."""
    return list(_LOADED[str(Path(file).resolve())].declared["METHODS"])


def identity_of(method: str = "", function: str = "", **used: str) -> dict[str, dict[str, str]]:
    """Entries of a key beside revisions, for what is not of this package: ``plugin`` of the method,
    and those of ``used``.

    Args:
        method: name of the method.
        function: ``"module:function"`` of one of its steps; one of this package is known by its
            revision, whoever uses it.
        used: names of what else is used, as ``encoder``, ``partitioner``, ``splitter`` or
            ``reader``.
    """
    found = {}
    for each in _LOADED.values():
        if method in each.declared["METHODS"] and not function.startswith("feddep."):
            found["plugin"] = each.identity
        found |= {
            kind: each.identity
            for kind, name in used.items()
            if name in each.declared[f"{kind.upper()}S"]
        }
    return found
