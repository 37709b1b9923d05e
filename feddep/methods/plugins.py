"""Methods and encoders from outside this package: of files that a configuration names, and of
installed distributions.

A plugin declares its methods as the methods here do, in ``METHODS``, and its encoders in
``ENCODERS``, their classes by name.  It is code that the user runs, and has no revision that
anybody must raise: keys hold the digest of its file, or the name and version of its distribution.
"""

import functools
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from feddep.methods import registry
from feddep.methods.method import Method
from feddep.nn.encoder_names import ADDED, ENCODERS
from feddep.utils.errors import ConfigError, one_line

GROUP = "feddep.methods"
"""The group of entry points by which a distribution offers methods; each names a module with
``METHODS``.
"""


@dataclass(frozen=True)
class Plugin:
    """The methods and encoders of a module by name, what keys know its code by, and what sentences
    call it.
    """

    methods: dict[str, Method]
    encoders: dict[str, Callable[..., Any]]
    identity: dict[str, str]
    title: str


_LOADED: dict[str, Plugin] = {}
"""By the path of a file, or the value of an entry point."""


def use(files: Sequence[str] = ()) -> None:
    """Make the methods of plugins known to :mod:`feddep.methods.registry`, and their encoders to
    :mod:`feddep.nn.encoder_names`, for the rest of the process.

    Args:
        files: Python files; a file that has changed since is loaded again.

    Raises:
        ConfigError: if a file is missing, cannot be imported, or declares neither methods nor
            encoders, or the name of one is taken.
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
    sys.modules[module.__name__] = module
    exec(compile(content, path, "exec"), module.__dict__)
    return module


def _load(place: str, title: str, identity: dict[str, str], load: Callable[[], ModuleType]) -> None:
    try:
        module = load()
    except Exception as error:
        raise ConfigError(
            f"{title} cannot be imported: {one_line(f'{type(error).__name__}: {error}')}"
        ) from error
    methods, encoders = _declared(module, title)
    others = {key: plugin for key, plugin in _LOADED.items() if key != place}
    taken = {*registry.built_in(), *ENCODERS}.union(
        *(plugin.methods | plugin.encoders for plugin in others.values())
    )
    if clash := taken & {*methods, *encoders}:
        raise ConfigError(
            f"{title} declares {', '.join(sorted(clash))}, a name that is taken; choose another"
        )
    _LOADED.clear()
    _LOADED.update(others | {place: Plugin(methods, encoders, identity, title)})
    registry.ADDED.clear()
    ADDED.clear()
    for plugin in _LOADED.values():
        registry.ADDED.update(plugin.methods)
        ADDED.update(plugin.encoders)


def _declared(
    module: ModuleType, title: str
) -> tuple[dict[str, Method], dict[str, Callable[..., Any]]]:
    """The methods and the encoders of a module by name."""
    methods, encoders = getattr(module, "METHODS", ()), getattr(module, "ENCODERS", {})
    if not isinstance(methods, tuple) or not all(isinstance(each, Method) for each in methods):
        raise ConfigError(
            f"{title} must declare its methods as METHODS = (Method(...),), but METHODS is "
            f"{methods!r}"
        )
    if not isinstance(encoders, dict) or not all(
        isinstance(name, str) and name.isidentifier() and callable(made)
        for name, made in encoders.items()
    ):
        raise ConfigError(
            f'{title} must declare its encoders as ENCODERS = {{"name": Class}}, but ENCODERS is '
            f"{encoders!r}"
        )
    if not hasattr(module, "METHODS") and not hasattr(module, "ENCODERS"):
        raise ConfigError(f"{title} must declare METHODS or ENCODERS, but has neither")
    return {method.name: method for method in methods}, encoders


def declared_in(file: str | Path) -> list[str]:
    """Names of the methods of a file that is in use."""
    return list(_LOADED[str(Path(file).resolve())].methods)


def plugin_of(method: str) -> Plugin | None:
    """The plugin that a method comes from; None for one of this package."""
    return next((each for each in _LOADED.values() if method in each.methods), None)


def identity_of(method: str, function: str = "", encoder: str = "") -> dict[str, dict[str, str]]:
    """Entries of a key beside revisions: ``plugin`` and ``encoder``, where these are not of this
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
    for each in _LOADED.values():
        if encoder in each.encoders:
            found["encoder"] = each.identity
    return found
