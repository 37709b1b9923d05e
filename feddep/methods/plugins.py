"""Methods and encoders from outside this package: of files that a configuration names, and of
installed distributions.

A plugin declares its methods as the methods here do, in ``METHODS``; a class in it can be the
setting's encoder, as ``plugins.FILE.CLASS``.  It is code that the user runs, and has no revision
that anybody must raise: keys hold the digest of its file, or the name and version of its
distribution.
"""

import functools
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType

from feddep.methods import registry
from feddep.methods.method import Method
from feddep.utils.errors import ConfigError, one_line

GROUP = "feddep.methods"
"""The group of entry points by which a distribution offers methods; each names a module with
``METHODS``.
"""
PREFIX = "plugins"
"""What the names of encoders in plugins begin with."""


@dataclass(frozen=True)
class Plugin:
    """A module that declares methods, what keys know its code by, and what sentences call it."""

    module: ModuleType
    identity: dict[str, str]
    title: str


_LOADED: dict[str, Plugin] = {}
"""By the path of a file, or the value of an entry point."""


def use(files: Sequence[str] = ()) -> None:
    """Make the methods of plugins known to :mod:`feddep.methods.registry`, for the rest of the
    process.

    Args:
        files: Python files; a file that has changed since is loaded again.

    Raises:
        ConfigError: if a file is missing, cannot be imported, or declares no methods, or the name
            of one is taken.
    """
    for point in metadata.entry_points(group=GROUP):
        if point.value not in _LOADED and point.dist is not None:
            identity = {"distribution": point.dist.name, "version": point.dist.version}
            _load(
                point.value,
                f"the plugin {point.dist.name} {point.dist.version}",
                identity,
                point.load,
            )
    for number, file in enumerate(files):
        title, path = f"plugins.{number}, {file},", Path(file)
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{title} cannot be read: {one_line(str(error))}") from None
        digest = hashlib.sha256(content).hexdigest()
        if all(plugin.identity != {"sha256": digest} for plugin in _LOADED.values()):
            execute = functools.partial(_execute, path, content, digest)
            _load(str(path.resolve()), title, {"sha256": digest}, execute)


def _execute(path: Path, content: bytes, digest: str) -> ModuleType:
    module = ModuleType(f"feddep_plugin_{digest[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = sys.modules[f"{PREFIX}.{path.stem}"] = module
    exec(compile(content, path, "exec"), module.__dict__)
    return module


def _load(place: str, title: str, identity: dict[str, str], load: Callable[[], ModuleType]) -> None:
    try:
        module = load()
    except Exception as error:
        raise ConfigError(
            f"{title} cannot be imported: {one_line(f'{type(error).__name__}: {error}')}"
        ) from error
    declared = getattr(module, "METHODS", None)
    if not isinstance(declared, tuple) or not all(isinstance(each, Method) for each in declared):
        raise ConfigError(
            f"{title} must declare its methods, METHODS = (Method(...),), but METHODS is "
            f"{declared!r}"
        )
    others = {key: plugin for key, plugin in _LOADED.items() if key != place}
    taken = {
        *registry.built_in(),
        *(method.name for plugin in others.values() for method in plugin.module.METHODS),
    }
    if clash := taken.intersection(method.name for method in declared):
        raise ConfigError(
            f"{title} declares {', '.join(sorted(clash))}, a name that is taken; choose another"
        )
    _LOADED.clear()
    _LOADED.update(others | {place: Plugin(module, identity, title)})
    registry.ADDED.clear()
    registry.ADDED.update(
        {method.name: method for plugin in _LOADED.values() for method in plugin.module.METHODS}
    )


def declared_in(file: str | Path) -> list[str]:
    """Names of the methods of a file that is in use."""
    return [method.name for method in _LOADED[str(Path(file).resolve())].module.METHODS]


def plugin_of(method: str) -> Plugin | None:
    """The plugin that a method comes from; None for one of this package."""
    return next(
        (
            each
            for each in _LOADED.values()
            if any(method == one.name for one in each.module.METHODS)
        ),
        None,
    )


def identity_of(method: str, function: str = "", encoder: str = "") -> dict[str, dict[str, str]]:
    """What a key holds beside revisions: ``plugin`` and ``encoder``, where these are not of this
    package.

    Args:
        method: name of the method.
        function: ``"module:function"`` of one of its steps; one of this package is known by its
            revision, whoever uses it.
        encoder: the setting's encoder, where it is read.
    """
    found, plugin = {}, plugin_of(method)
    if plugin is not None and not function.startswith("feddep."):
        found["plugin"] = plugin.identity
    for each in _LOADED.values() if encoder.startswith(f"{PREFIX}.") else ():
        if each.module is sys.modules.get(encoder.rpartition(".")[0]):
            found["encoder"] = each.identity
    return found
